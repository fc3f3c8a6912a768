//! What is found in each format, what is left alone, and laws for any bytes at all.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::{STEMS, SecretCandidate, is_placeholder};
use crate::keywords::{Keyword, Keywords};

fn find(text: &[u8], found: &mut Vec<SecretCandidate>) {
    static WORDS: LazyLock<Keywords> =
        LazyLock::new(|| Keywords::new(STEMS.iter().filter_map(|stem| Keyword::new(stem, 0))));
    let (mut stems, mut runs) = (Vec::new(), Vec::new());
    WORDS.for_each_hit(text, &mut runs, &mut |_, stem| stems.push(stem));
    super::find_candidates(text, &stems, &runs, found);
}

fn found(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    find(text.as_bytes(), &mut found);
    found.iter().map(|place| text[place.start..place.end].to_owned()).collect()
}

fn assert_found(text: &str, secret: &str) {
    assert_eq!(found(text), [secret], "{text}");
}

fn assert_nothing(text: &str) {
    assert_eq!(found(text), [""; 0], "{text}");
}

#[test]
fn finds_assignments_in_programs() {
    for line in [
        "password = \"zq7Tn4xwKv\"",
        "    self.db_password = 'zq7Tn4xwKv'",
        "const apiSecret = 'zq7Tn4xwKv';",
        "dbPassword := \"zq7Tn4xwKv\"",
        "private static final String DB_PASSWORD = \"zq7Tn4xwKv\";",
        "let password: &str = \"zq7Tn4xwKv\";",
        "'password' => 'zq7Tn4xwKv',",
        "  Password:    \"zq7Tn4xwKv\",",
        "$password = \"zq7Tn4xwKv\";",
        "Password: []byte(\"zq7Tn4xwKv\"),",
        "os.environ[\"DB_PASSWORD\"] = \"zq7Tn4xwKv\"",
        "if (password == \"zq7Tn4xwKv\") {",
        "setPassword(\"zq7Tn4xwKv\");",
        "client.login(\"admin\", \"zq7Tn4xwKv\")",
    ] {
        assert_found(line, "zq7Tn4xwKv");
    }
}

#[test]
fn finds_assignments_in_configuration() {
    for line in [
        "db_password: zq7Tn4xwKv",
        "  password: 'zq7Tn4xwKv'",
        "{\"db_password\": \"zq7Tn4xwKv\"}",
        "{\\\"password\\\":\\\"zq7Tn4xwKv\\\"}",
        "DB_PASSWORD=zq7Tn4xwKv",
        "export DB_PASSWORD=zq7Tn4xwKv",
        "    -e MYSQL_PASSWORD=zq7Tn4xwKv \\",
        "spring.datasource.password=zq7Tn4xwKv",
        "<password>zq7Tn4xwKv</password>",
        "<add key=\"Password\" value=\"zq7Tn4xwKv\" />",
        "  - name: DB_PASSWORD\n    value: zq7Tn4xwKv\n",
        "variable \"db_password\" {\n  default = \"zq7Tn4xwKv\"\n}",
        "ALTER USER app WITH PASSWORD 'zq7Tn4xwKv';",
        "CREATE USER 'app'@'%' IDENTIFIED BY 'zq7Tn4xwKv';",
    ] {
        assert_found(line, "zq7Tn4xwKv");
    }
}

#[test]
fn finds_secrets_in_prose_and_comments() {
    assert_found("# password: zq7Tn4xwKv", "zq7Tn4xwKv");
    assert_found("the password is zq7Tn4xwKv", "zq7Tn4xwKv");
    assert_found("my token: 8fKq2Lw9ZtR4vXn7", "8fKq2Lw9ZtR4vXn7");
}

#[test]
fn leaves_references_alone() {
    for line in [
        "password = get_password()",
        "def connect(host: str, token: str, password: str) -> None:",
        "token = os.environ[\"API_TOKEN\"]",
        "DB_PASSWORD=${DB_PASSWORD}",
        "password: $PASSWORD",
        "apiKey: process.env.API_KEY,",
        "this.password = password;",
        "let secret = config.secrets.signing_secret;",
        "password: ${{ secrets.NPM_TOKEN }}",
        "const token: Option<String> = None;",
        "if password == expected_password {",
        "key: &'static str,",
    ] {
        assert_nothing(line);
    }
}

#[test]
fn leaves_labels_and_translations_alone() {
    for line in [
        "\"LABEL_PASSWORD\": \"Contraseña\",",
        "\"FORGOT_PASSWORD\": \"Forgot your password?\",",
        "\"PASSWORD_CHANGED\": \"Пароль изменён.\",",
        "password = PasswordField(label=_(\"Password\"))",
        "<label for=\"password\">Password</label>",
        "The password for the admin account is set in the next step.",
        "\"token_hint\": \"Enter the token from your mail\",",
    ] {
        assert_nothing(line);
    }
}

#[test]
fn leaves_ids_and_hashes_alone() {
    for line in [
        "request_id=91ea57e3-e489-403f-abbe-30c32fad888e",
        "\"integrity\": \"sha512-5U0rVMU5Y2n2+ykNLQqMoqklN9ICBTKsvC1Gz6vqHbz2AXXGkG+Pm5rMWkA==\"",
        "checksum = \"8b52af3cb4058c895d37317bb27508dccc8e5f2d39454016b297bf4a400597b8\"",
        "etag: \"1c4166c5dce4b7d3b19f6a21581f8a15\"",
        "commit ba324d85ebc3c210c445b93c86daa72f1ee57191",
        "PASS: $2b$12$WApznUOJfkEGSmYRfnkrPOr466oFDCaj4b6HY3EXGvfxm43seyhgC",
        "fn assert_partial_range_of_cache_key_matches_x86_64(",
    ] {
        assert_nothing(line);
    }
}

#[test]
fn password_equal_to_the_login_is_found_in_both_fields() {
    assert_eq!(found("{\"login\": \"qzvtkwxp\", \"password\": \"qzvtkwxp\"}"), ["qzvtkwxp"; 2]);
}

#[test]
fn placeholder_values_are_not_secrets() {
    for value in [
        "",
        "changeme",
        "<your-token>",
        "YOUR_API_KEY",
        "xxxxxxxx",
        "****",
        "${TOKEN}",
        "{{ token }}",
        "%TOKEN%",
        "$TOKEN",
        "sk-ant-....",
        "AKIAIOSFODNN7EXAMPLE",
        "0000000000000000",
        "abcdefghijkl",
        "123456789",
        "op://vault/item/field",
        "REDACTED",
        "[REDACTED]",
        "password",
        "your-password-here",
    ] {
        assert!(is_placeholder(value.as_bytes()), "{value}");
    }
    for value in ["zq7Tn4xwKv", "hunter2value", "8fKq2Lw9ZtR4vXn7", "p@ss$w0rd!9"] {
        assert!(!is_placeholder(value.as_bytes()), "{value}");
    }
}

#[test]
fn hostile_text_takes_linear_time() {
    const BYTES: usize = 1 << 17;
    for unit in [
        "=",
        "password",
        "password=",
        "pass",
        "_",
        "a1",
        "key:",
        "key=\"",
        "\\",
        "(",
        "password(",
        "secret b(",
        "token, \"",
        "A1b/",
        "é",
        "key .{",
    ] {
        let text = unit.repeat(BYTES / unit.len());
        let begun = Instant::now();
        find(text.as_bytes(), &mut Vec::new());
        assert!(begun.elapsed() < Duration::from_secs(5), "{unit}");
    }
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "password",
        "api_key",
        "token",
        "=",
        ":",
        "\"",
        "'",
        "\\",
        "(",
        ")",
        " ",
        "\n",
        "{",
        "}",
        "zq7Tn4xwKv",
        "8fKq2Lw9ZtR4vXn7Pd3M",
        "value",
        "is",
        "<",
        ">",
        ",",
        "é",
        "secret",
        "b",
        "login",
        "=>",
        "==",
        "[",
        "]",
    ]);
    let words = prop::collection::vec(pieces, 0..40).prop_map(|words| words.concat().into_bytes());
    prop_oneof![words, prop::collection::vec(any::<u8>(), 0..400)]
}

proptest! {
    #[test]
    fn found_secrets_are_ordered_and_within_the_text(text in texts()) {
        let mut found = vec![SecretCandidate { start: 7, end: 9, rule: "before" }];
        find(&text, &mut found);
        prop_assert_eq!(found[0].rule, "before");
        let mut last_end = 0;
        for place in &found[1..] {
            prop_assert!(last_end <= place.start && place.start < place.end && place.end <= text.len());
            last_end = place.end;
        }
    }

    #[test]
    fn placeholders_are_never_found(
        name in prop::sample::select(vec!["password", "API_KEY", "secret_token", "db.pass"]),
        operator in prop::sample::select(vec!["=", ": ", " = ", " => "]),
        value in prop::sample::select(vec!["changeme", "<your-token>", "${SECRET}", "xxxxxxxxxxxx", "YOUR_API_KEY", "{{token}}", "********"]),
        quote in prop::sample::select(vec!["", "'", "\""]),
    ) {
        let text = format!("{name}{operator}{quote}{value}{quote}");
        prop_assert!(found(&text).is_empty(), "{}", text);
    }
}

#[test]
fn list_item_keys_of_html_and_json_are_not_secrets() {
    for text in [
        "<Row key=\"f4Xk2Lq9Zb7w\" label=\"One\" />",
        "{ key: \"k3J9xQ2mWv8t\", type: \"paragraph\", children: [] }",
        "{\"_key\":\"a1b2c3d4e5f6\",\"_type\":\"block\"}",
        "<div data-key=\"b7Qz9LkPx3Vn\">",
    ] {
        assert_nothing(text);
    }
    assert_found("{ apiKey: \"k3J9xQ2mWv8tZb7wLq9f\", label: \"One\" }", "k3J9xQ2mWv8tZb7wLq9f");
    assert_found("<add key=\"ApiKey\" value=\"k3J9xQ2mWv8tZb7wLq9f\" />", "k3J9xQ2mWv8tZb7wLq9f");
}

#[test]
fn unquoted_password_extends_to_the_end_of_its_setting() {
    for value in ["c1:[mx(LpQ$2$}yM", "r;iGp#58]WAm!dX3", "S=T6I{._aX%q:A2", "Rq7&xKd,5)mW|t"] {
        for line in [
            format!("password={value}\n"),
            format!("spring.datasource.password = {value}\n"),
            format!("mail:\n  user: bot\n  password: {value}\n"),
            format!("A=b\r\nDB_PASSWORD={value}\r\n"),
            format!("- MYSQL_ROOT_PASSWORD={value}\n"),
            format!("admin_password: {value} # rotated in may\n"),
            format!("2026-03-01 INFO starting with password={value}"),
        ] {
            assert_eq!(found(&line), [value], "{line}");
        }
        let element = format!("<dbPassword>{}</dbPassword>", value.replace('&', "+"));
        assert_eq!(found(&element), [value.replace('&', "+")], "{element}");
    }
    assert_found("password=Wq7)xK&5dZm!&next=/home", "Wq7)xK&5dZm!");
    assert_found("Password=Wq7)xK,5dZm!;Encrypt=true", "Wq7)xK,5dZm!");
}

#[test]
fn code_expression_assigned_to_a_password_is_not_a_secret() {
    for line in [
        "if (password=getPass() && user) { login(user, password); }",
        "let password=prompt.next(), user=name;",
        "foo(password=hashed, user=name)",
        "password=$(pass show db/Prod1)",
        "DB_PASSWORD=${DB_PASSWORD:-Changeme1}",
        "password = data.aws_ssm_parameter.Db1[0].value",
        "const pass=a1&&B2||c3;",
        "password: Option<String1>,",
        "<password>${env.CI_PASSWORD1}</password>",
        "<h2>Password: requirements & limits</h2>",
        "password: process.env.DB_PASSWORD1||'',",
        "passwords = [Aa1(), Bb2()]",
        "password=@DbPassword1",
        "password: Settings.DB_PASS1",
        "password: config.dbPass1!!",
        "password = $config->dbPass12",
    ] {
        assert_nothing(line);
    }
}

#[test]
fn arns_nonces_session_ids_and_public_keys_are_not_secrets() {
    for text in [
        "secret_arn = arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf",
        "data-key=\"V1StGXR8_Z5jdHi6B-myT\"",
        "<tr data-row-key=\"cwHVqK0HK1J3Q_B_Z2liq\" tabindex=0>",
        "INFO session_id=01D9E16G9Y6SB05V3DVP36T7GH user=42 opened",
        "<script nonce=\"EStrFnFxMEpvlMWlV4LSCI\">init()</script>",
        "<style nonce=\"TB2mRW2h/PWoPEFHg3MtGQ==\">p{}</style>",
        "v=DKIM1; h=sha256; k=ed25519; p=9naJE1V30ozXzIv8MkJfCOgW+m3JrHwwJxXY4mBYYcU=",
    ] {
        assert_nothing(text);
    }
    assert_found("session_id=f8Kq2Lw9ZtR4vXn7Pd3MbQ6s", "f8Kq2Lw9ZtR4vXn7Pd3MbQ6s");
}
