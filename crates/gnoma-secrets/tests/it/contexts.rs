//! Secrets in the places where agents meet them, each of which hides them in its own way.

use gnoma_secrets::{Scanner, ScannerOptions};

/// Asserts that what stands between `⟦` and `⟧` is blanked and, if there is none, that nothing is.
fn check(marked: &str) {
    let scanner = Scanner::new(ScannerOptions::default()).unwrap();
    let start = marked.find('⟦');
    let end = marked.find('⟧').map(|end| end - '⟦'.len_utf8());
    let text = marked.replace(['⟦', '⟧'], "");
    let found = scanner.scan(text.as_bytes());
    match start.zip(end) {
        Some((start, end)) => {
            let covers = found.iter().any(|f| f.start <= start && f.end >= end);
            assert!(covers, "{marked}\nfound {found:?}, wanted {start}..{end}");
        }
        None => assert!(found.is_empty(), "{marked}\nfound {found:?}"),
    }
}

/// A GitHub token made of parts, so that no scanner of repositories takes offence.
fn token() -> String {
    format!("gh{}", "p_Zq8Lk2Vb7Nx4Rt9Ws1Ym6Pd3Hf5Jg0Ca8EeQ")
}

#[test]
fn passwords_in_urls() {
    check("redis://:⟦t0psecretvalue⟧@cache:6379/0");
    check("postgres://app:⟦p@ss/w0rd#x⟧@db.internal:5432/prod");
    check("fatal: unable to access 'https://bot:⟦h7Gk2mPq⟧@git.internal/x.git': timed out");
    check("http://localhost:8080/path@2x.png");
    check("amqp://guest:guest@localhost:5672/ postgres://postgres:postgres@db:5432/test");
    check("https://user:password@host/ postgres://${USER}:${PASSWORD}@db/app");
    check("https://registry.npmjs.org/@scope/package and http://[::1]:80/@x");
}

#[test]
fn passwords_in_sentences() {
    check("echo \"The password is '⟦Secret123⟧'\"");
    check("the password is ⟦hunter2⟧.");
    check("log in as admin with password ⟦S3cr3tP@ss⟧, then look");
    check("use password ⟦Tr0ub4dor&3⟧ to log in");
    check("set the passphrase to ⟦Blue7Monkey9⟧");
    check("das Passwort ist ⟦Geheim99⟧");
    check("my password ⟦Kx9fQ2Lm⟧");
    check("the password is sha256 of it; password Argon2id; password hashing algorithm2");
    check("the password is base64-encoded; password reset is easy; a password field2");
    check("the password expires in 30days; password authentication v2; password is 8 letters");
    check("assert_eq!(password is_some(), true) // password foo1.bar2() password is f(x1)");
}

#[test]
fn passwords_in_sentences_of_other_languages() {
    check("das Passwort für den Testserver lautet ⟦Bk2XhmqZYjt_XY⟧, bitte nicht weitergeben.");
    check("the password for the staging server is ⟦Bk2XhmqZYjt⟧.");
    check("le mot de passe du serveur est : ⟦6xfh0BN0K8m5yd⟧");
    check("La contraseña es ⟦K*9jdE3MkfYuVq⟧");
    check("senha do banco: ⟦9_hd9#jVa6r39K⟧");
    check("la password di root è ⟦CE0nyTwgZDSFS-⟧");
    check("wachtwoord = ⟦805vub!zjQ8LG8⟧");
    check("hasło: ⟦D!1PnNZO3r_FB⟧");
    check("şifre: ⟦d7QFsMPIPDJcQA⟧");
    check("Пароль от сервера: ⟦M8NtfppKeNyW6F⟧");
    check("数据库密码：⟦W9AnL73TsjH6Ls⟧。");
    check("パスワードは「⟦ewTbwoey1laQiC⟧」です");
    check("비밀번호: ⟦yiM3wNlQ0MdJ!a⟧");
    check("user admin and pass ⟦t7E8BDw#5aXqP0⟧");
    check("Пароль должен содержать 8 символов: буквы и цифры");
    check("le mot de passe est obligatoire; la contraseña es incorrecta; senha: obrigatória");
    check("the password for the Http2Server is checked by OAuth2; password policy: Level2Strict");
}

#[test]
fn passwords_in_positional_arguments_are_found() {
    check("sqlplus system/⟦NeofdlXfA4DVHq⟧@//db.internal:1521/ORCL");
    check("db, err := sql.Open(\"mysql\", \"root:⟦lgh5JYtyoszH⟧@tcp(10.0.0.4:3306)/app\")");
    check("echo ⟦0tf%eUA4y5dquN⟧ | sudo -S apt update");
    check("echo 'deploy:⟦8jC7djOLuR0Sg⟧' | chpasswd");
    check("net use \\\\srv\\share /user:ACME\\bob ⟦ZR5DXGd8mZkoY⟧");
    check("$db = new mysqli('localhost', 'root', '⟦gGpwxerjyJPd2⟧', 'app');");
    check("DriverManager.getConnection(url, \"root\", \"⟦L2SQA4FR6va⟧\");");
    check("username admin password 0 ⟦1ITX0azh3e14BC⟧");
    check("echo \"$PASS\" | sudo -S true; getConnection(url, user, password); root:$PW@tcp(db)");
    check("sqlplus / as sysdba; net use; new mysqli($host, $user, $pass); reset password 0 times");
}

#[test]
fn passwords_of_configuration_directives_are_found() {
    check("port 6379\nrequirepass ⟦R1yHnG%A_3[cC&ye⟧\nmaxmemory 2gb");
    check("masterauth ⟦Y<=P{(2hMqBgNjjN⟧");
    check("127.0.0.1:6379> ok\nCONFIG SET requirepass ⟦q8;Zt|4x⟧");
    check("binddn cn=ro,dc=corp\nbindpw ⟦Harbor)LmFg85⟧");
    check("SetEnv DB_PASS ⟦Ro~@Wj=.C;kIUL;+⟧");
    check("SetEnv APP_PASSWORD \"⟦Rocket!k6In34⟧\"");
    check("enable password ⟦Kestrel*9xQ2⟧");
    check("<server><username>ci</username><password>⟦Winter*iuXb243⟧</password></server>");
    check("# requirepass foobared\nrequirepass ${REDIS_PASSWORD}\nbindpw secret");
    check("the option requirepass sets the password\nrequirepass sets the password");
    check("SetEnv APP_ENV production\nSetEnv DB_PASS ${DB_PASS}");
}

#[test]
fn quoted_passwords_of_command_line_options_are_found() {
    check("$ mysql -uroot -p'⟦Mu1;Gqb:e@B;6v|%⟧' shop < dump.sql");
    check("mysqldump -h db -u app -p\"⟦Sommer)mwgn73⟧\" shop > d.sql");
    check("mysql -u root -p'$MYSQL_PWD' shop; mysql -p shop; mysql -port 3306");
}

#[test]
fn putty_keys_and_seed_phrases_are_found() {
    check(
        "Public-Lines: 1\nAAAAB3NzaC1yc2E=\nPrivate-Lines: 2\n⟦c2Vjcm9ldCBrZXkgbGluZXM\nbW9yZSBvZiBpdA==⟧\nPrivate-MAC: x",
    );
    check(
        "mnemonic: \"⟦crumble velvet orbit shallow picnic hunt ladder vivid senior absent goat lyrics⟧\"",
    );
    check("a mnemonic: twelve words that help you to remember the order of the planets here");
}

#[test]
fn public_site_keys_and_page_tokens_are_not_redacted() {
    check("data-sitekey=\"6LFBBrxP1nwuYnoKvrY1hxRVK4sWAutvbJHXcDxZ\"");
    check("\"nextPageToken\": \"b2Zmc2V0PTIwMCZsaW1pdD0xMDA=\"");
    check("statuspage_token = ⟦1fb2c3d4-e5f6-7abc-8912-abcdef123456⟧");
    check("Sec-WebSocket-Key: rUGvXLtfFxB60zQv2mT1WA==");
    check("google-site-verification=9sJ4n183P063S4uXVCsn4QDwnFaJQiQCUJxzuW1omEf");
}

#[test]
fn recovery_codes_alone_and_in_lists() {
    check("my recovery code is ⟦1c59d-4868c⟧, keep it");
    check("GitHub recovery codes\n⟦337e1-93a86⟧\n0c586-9f371\n");
    check("GitHub recovery codes\n337e1-93a86\n⟦0c586-9f371⟧\n");
    check("Backup codes for bob@example.com:\n1. ⟦9225 8843⟧\n2. 1893 9328\n");
    check("BACKUP_CODES = [\"⟦adqmqdrg⟧\", \"5zs4vkbx\", \"8j38lpbn\"]");
    check("Use backup code ⟦27231591⟧ to sign in");
    check("| backup code | ⟦5670-9369⟧ |");
    check("# scratch codes\n03826351\n⟦12345670⟧\n");
    check("Wiederherstellungscode: ⟦5K3G-AM8A-9RL8-BZN6-1E34-IVQE⟧");
    check("BitLocker Recovery Key: ⟦348006-705325-681700-395232⟧");
    check("If you cannot scan it, enter this setup key: ⟦tb7l cwnm ima3 3hmo t3a2 dxwq⟧");
    check("backup codes are stored in the table user_backup_codes since 2024-01-15");
    // A log has commits behind words about codes.
    check("* 3f9a1c7 Add recovery codes\n* 8bd02e4f1a Fix login\n* c71f9aa02b Bump\n");
    check("feat: recovery codes\n\n9f2c4e1a7b3d5f60819a2c4e6f8071a2b3c4d5e6\n");
    check(
        "Revert backup codes 4be19c07d2, recovery codes: 9f2c4e1a7b3d5f60819a2c4e6f8071a2b3c4d5e6",
    );
    check("error recovery code 0x80004005 at 12:30:45; recovery code: 0x80004005");
    check("recovery code: see page 12; backup codes: none; recovery key: docs/keys.md");
    check("const backupCodes = generateBackupCodes(10); // 8 digits, see two-step-login");
    check("Recovery codes\n==============\nEach user has ten codes of eight letters.\n");
}

#[test]
fn api_keys_in_sentences_are_found() {
    let hex = "ad758c50c7e0c2b837fa04df4db5240d";
    check(&format!("my api key for the weather thing: ⟦{hex}⟧"));
    check(&format!("the access key of the sensor is ⟦{hex}⟧."));
    let random = "OcbX+FxPfhzNj3KVtOlP0evRkaSCFRuifa1nA0YQ";
    check(&format!("the secret for the build user is ⟦{random}⟧"));
    check(&format!("password hash (md5): ⟦{hex}⟧"));
    check("ConvertTo-SecureString \"⟦Tr0ub4eF3ejKyR⟧\" -AsPlainText -Force");
    check("ConvertTo-SecureString $env:PW -AsPlainText; ConvertTo-SecureString -String $x");
    check("the api key is read from the environment; an access token is needed for /v1/users/me");
    check(&format!("the api key is checked by its commit {hex}"));
}

#[test]
fn cache_keys_object_keys_and_page_tokens_are_not_redacted() {
    let random = "kdCA0VchT1HB3DpieCU60ukcWsMseIse2NT3xGiy0to9y";
    for text in [
        format!("cache key: npm-Linux-{}", "fa88e8ec68681f42459856de8a7b90885fdb882b4e4e47cf50bd16cb2165d836"),
        format!("Cache restored from key: cargo-{}", "e6de712249f0b454f30764049f29ed6677a35242"),
        "object key: uploads/2ce20018-ca61-45de-b6b8-05dc8b1e69ee/ae5010533855fd0fb41cc3399365.png"
            .to_owned(),
        "Idempotency-Key: 840125b4e8fda1fc47d6508a164df4cc".to_owned(),
        "pagination token vYVfFXRgx5lwtx+hj2p0sY7sBpEDpn7E".to_owned(),
        format!("\"cacheKey\": \"{}\"", "17bb65a54ea4aacca05f32567f9fa354"),
        format!("STRIPE_PUBLISHABLE_KEY=pk_live_{}", &random[..24]),
        format!("posthog.init(\"phc_{}\")", &random[..43]),
        format!("VAPID public key: B{random}{random}"),
        format!("did:key:z6M{random}"),
        "recaptcha site key: 6L_Noot49e7PpTbxiDwim1Mz0PvDMA962QJgOGt6".to_owned(),
        "Key = 000102030405060708090a0b0c0d0e0f\nPlaintext = 00112233445566778899aabbccddeeff"
            .to_owned(),
        "$ANSIBLE_VAULT;1.1;AES256\nb456a890670d46fe8f833a520c44651bdab197a675fc55af0c5d72dd8af28649\n"
            .to_owned(),
        "script-src 'nonce-+vzr4ZFWJNdr7mj7Kp0UJQ==' 'sha256-TrqJSUy0A63n8JtnAhTB8dnVGzRoUhE/3qY/PQVfHzU='"
            .to_owned(),
    ] {
        check(&text);
    }
}

#[test]
fn private_key_bodies_without_pem_header_are_found() {
    let line = "Qk7xP2mZt9vLw4RbYc8NfHsJd6GaEuTq1Xo5Ki3CzVyMhWnDpBrSlFgUjAe0/+Xw";
    for start in [
        "MIIEpAIBAAKCAQEA",
        "MIIJKAIBAAKCAgEA",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ",
        "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ",
    ] {
        let first = format!("{start}{}", &line[start.len().min(48) - 16..]);
        check(&format!("⟦{first}\n{line}\n{line}⟧\n"));
        check(&format!("in a manual: {start}... and so on"));
    }
    // A certificate and a public key.
    check(&format!("MIIDXTCCAkWgAwIBAgIJAKoK/heBjcOuMA0GCSqGSIb3DQEBBQUAMEUxCzAJBgNV\n{line}\n"));
    check(&format!("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA{}\n{line}\n", &line[44..]));
}

#[test]
fn headers() {
    check("authorization: Bearer ⟦Zm9vYmFy0123456789abcdXYZ⟧ user-agent: curl/8.5.0");
    check("-H \"Authorization: Basic ⟦QWxhZGRpbjpvcGVuc2VzYW1l⟧\" https://x");
    check("Authorization: token ⟦9f86d081884c7d659a2feaa0c55ad015⟧\r\nHost: x");
    check("Set-Cookie: lang=de; sessionid=⟦k3j4h5g6f7d8s9a0q1w2⟧; Path=/");
    check("Authorization: Bearer ${TOKEN}\nheaders.authorization = authorization_header(request)");
    check("Cookie: theme=dark; lang=de-DE-2024");
}

#[test]
fn credential_files() {
    check("machine api.example.org\n  login me\n  password ⟦k8Hs2mQz⟧\n");
    check("db.internal:5432:app:me:⟦s3cretPassw0rd⟧\n");
    check("{\"auths\": {\"ghcr.io\": {\"auth\": \"⟦dXNlcjpwYXNzd29yZDEyMw==⟧\"}}}");
    check("Server=db;Database=app;User Id=sa;Password=⟦Tr0ub4dor⟧;Encrypt=yes");
    check("the state machine goes from login to password reset");
}

#[test]
fn command_lines() {
    check("mysql -h db -uroot -p⟦nk3l9sLLq⟧ app < dump.sql");
    check("+ docker login -u ci -p ⟦kZ83hsLLq02m⟧ registry.example.com");
    check("sshpass -p '⟦ab c9!x⟧' ssh me@host");
    check("curl -sS -u ⟦bot:kZ83hsLLq02m⟧ https://x");
    check("curl -u user:password https://x; mysql -p app; mkdir -p kZ83hsLLq02m");
}

#[test]
fn private_keys_in_any_wrapping() {
    let body = [
        "MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf",
        "9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+",
        "CqvjWYzvQwECAwEAAQ==",
    ];
    let head = ["-----BEGIN RSA ", "PRIVATE KEY-----"].concat();
    let tail = ["-----END RSA ", "PRIVATE KEY-----"].concat();
    let wrap = |before: &str, between: &str| {
        let lines = [&[head.as_str()], &body[..], &[tail.as_str()]].concat();
        format!("{before}⟦{}⟧", lines.join(between))
    };
    check(&wrap("", "\n"));
    check(&wrap("key: |\n    ", "\n    "));
    check(&wrap("KEY=\"", "\\n"));
    check(&wrap("{\\\"key\\\": \\\"", "\\\\n"));
    check(&wrap("     1\t", "\n     2\t"));
    check(&wrap("+", "\n+"));
    check(&wrap("> ", "\r\n> "));
    check(&wrap("key = \"", "\\n\" +\n  \""));
    check(&wrap("one line ", " "));
    check(&format!("$ cat id\n⟦{head}\n{}⟧\n$ ls", body[..2].join("\n")));
    check(&format!("if text.contains(\"{head}\") {{ return true; }}\nlet end = \"{tail}\";"));
}

#[test]
fn secrets_in_nested_encodings_are_found() {
    let token = token();
    check(&format!(
        "{{\"content\": \"{{\\\"out\\\": \\\"T=\\\\\\\"⟦{token}⟧\\\\\\\"\\\\n\\\"}}\"}}"
    ));
    check(&format!("GET /x?q=T%3D⟦{token}⟧%26y"));
    check(&format!("T=&quot;⟦{token}⟧&quot;"));
    check(&format!("\u{1b}[32mT\u{1b}[0m=\u{1b}[1m⟦{}\u{1b}[0m{}⟧ok", &token[..9], &token[9..]));
    let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    check(&format!("blob ⟦{hex}⟧"));
    check("kind: Secret\nmetadata:\n  name: app\ndata:\n  user: ⟦c29tZXRoaW5n⟧\n");
}

#[test]
fn identifiers_and_hashes_stay() {
    check(
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8\nid 3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    );
    check(
        "integrity sha512-9NET910DNaIPngYnLLPeg+Ogzqsi9uM4mSboU5y6p8S5DzMTVEsJZrawi+BoDNUVBa2DhJqQYUFvMDfgU062LQ==",
    );
    check("checksum = \"d9fb05f3d5b8f9f1a1f5a7ab2c5d0a7b5be6ca3ef0c0c1b6b6a6d46fbb3d5e8c\"");
    check("ETag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"");
}
