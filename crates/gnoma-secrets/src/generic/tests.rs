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
    WORDS.each(text, &mut runs, &mut |_, stem| stems.push(stem));
    super::find(text, &stems, &runs, found);
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
fn a_secret_that_is_also_a_name_is_found_in_both_places() {
    assert_eq!(found("{\"login\": \"qzvtkwxp\", \"password\": \"qzvtkwxp\"}"), ["qzvtkwxp"; 2]);
}

#[test]
fn placeholders_are_told_from_secrets() {
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
    fn what_is_found_lies_in_order_within_the_text(text in texts()) {
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
fn keys_that_tell_entries_of_a_list_apart_stay() {
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
