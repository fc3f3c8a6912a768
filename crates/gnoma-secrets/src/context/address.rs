//! Credentials in one address or connection string, such as the value of `DATABASE_URL` or `HTTPS_PROXY`: for texts of
//! which it is known that they are addresses. It needs no scanner.

use std::ops::Range;

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::{
    secret_context::SecretContext,
    url::USER_INFO,
    value::{end_at, is_password, is_token},
};

/// Names behind which connection strings and queries have a secret, without `_`, `-` and blanks.
const NAMES: [&[u8]; 20] = [
    b"accesskey",
    b"accesstoken",
    b"accountkey",
    b"apikey",
    b"apitoken",
    b"auth",
    b"authtoken",
    b"clientsecret",
    b"key",
    b"pass",
    b"passphrase",
    b"passwd",
    b"password",
    b"pwd",
    b"secret",
    b"sharedaccesskey",
    b"sharedaccesssignature",
    b"sig",
    b"sslpassword",
    b"token",
];
/// Longest name, and longest value, in bytes.
const MAX_NAME_BYTES: usize = 32;
const MAX_VALUE_BYTES: usize = 512;
/// Fewest bytes of a user that is a token, where there is no password.
const MIN_TOKEN_BYTES: usize = 16;

/// The credentials in an address or a connection string, by their bytes.
#[must_use]
pub fn address_credentials(text: &str) -> Vec<Range<usize>> {
    let text = text.as_bytes();
    let mut found = Vec::new();
    let mut has_scheme = false;
    for at in memchr::memmem::find_iter(text, b"://") {
        has_scheme = true;
        let SecretContext { find, .. } = USER_INFO;
        let before = found.len();
        find(text, at..at + 3, &mut |span| found.push(span));
        if found.len() == before {
            found.extend(token_as_user(text, at + 3));
        }
    }
    if !has_scheme {
        found.extend(password_before_host(text));
    }
    for at in memchr::memchr_iter(b'=', text) {
        found.extend(named_password(text, at));
    }
    found
}

/// The password in what a header carries as `Basic …`: base64 of `user:password`.
#[must_use]
pub fn basic_password(credentials: &str) -> Option<String> {
    let decoded = BASE64_STANDARD.decode(credentials.trim()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (_, password) = text.split_once(':')?;
    (!text.chars().any(char::is_control)).then(|| password.to_owned())
}

/// Finds the token in `https://TOKEN@host`.
fn token_as_user(text: &[u8], from: usize) -> Option<Range<usize>> {
    let end = end_at(text, from, MAX_VALUE_BYTES, |byte| !is_user_byte(byte));
    let user = text.get(from..end)?;
    let is_user = text.get(end) == Some(&b'@') && user.len() >= MIN_TOKEN_BYTES;
    (is_user && is_token(user)).then_some(from..end)
}

fn is_user_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%+".contains(&byte)
}

/// Finds the password in `user:password@host:80` and `user:password@tcp(host)/name`.
fn password_before_host(text: &[u8]) -> Option<Range<usize>> {
    let at = memchr::memrchr(b'@', text)?;
    let host = text.get(at + 1..)?;
    let name = host.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte));
    let name = name.count();
    let is_host = name > 0 && matches!(host.get(name), None | Some(b':' | b'/' | b'('));
    let colon = memchr::memchr(b':', text.get(..at)?)?;
    let is_user = colon > 0 && text.get(..colon)?.iter().copied().all(is_user_byte);
    let password = text.get(colon + 1..at)?;
    let is_word = !password.iter().any(u8::is_ascii_whitespace);
    (is_host && is_user && is_word && is_password(password)).then_some(colon + 1..at)
}

/// `password=…` and the like, between `?`, `&`, `;` and blanks.
fn named_password(text: &[u8], equals: usize) -> Option<Range<usize>> {
    let is_between = |byte: &u8| matches!(byte, b'?' | b'&' | b';' | b',' | b'"' | b'\'');
    let start = equals.saturating_sub(MAX_NAME_BYTES);
    let before = text.get(start..equals)?;
    let name = before.rsplit(is_between).next()?;
    let name = name.rsplit(u8::is_ascii_whitespace).next().unwrap_or(name);
    if !name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte)) {
        return None;
    }
    let plain: Vec<u8> = name
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_lowercase)
        .collect();
    if !NAMES.contains(&plain.as_slice()) {
        return None;
    }
    let from = equals + 1 + usize::from(matches!(text.get(equals + 1), Some(b'\'' | b'"')));
    let end = end_at(text, from, MAX_VALUE_BYTES, |byte| {
        matches!(byte, b'&' | b';' | b'"' | b'\'') || byte.is_ascii_whitespace()
    });
    let value = text.get(from..end)?;
    is_password(value).then_some(from..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        address_credentials(text).into_iter().filter_map(|span| text.get(span)).collect()
    }

    #[test]
    fn credentials_in_addresses_and_connection_strings_are_found() {
        for (text, secret) in [
            ("postgres://app:Zk81qPwd@db.internal:5432/app", "Zk81qPwd"),
            ("redis://:r3disPw0rd@cache:6379/0", "r3disPw0rd"),
            ("amqps://svc:a/b#c1@mq:5671/v", "a/b#c1"),
            (
                "https://x-access-token:ghs_16C7e42F292c6912E7710c838347Ae178B4a@github.com/a/b",
                "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
            ),
            ("https://4f9a8c1e0b7d4f9a8c1e@host.example/simple", "4f9a8c1e0b7d4f9a8c1e"),
            ("http://me:pr0xyPass@proxy.example:3128", "pr0xyPass"),
            ("me:pr0xyPass@proxy.example:3128", "pr0xyPass"),
            ("app:G0dsn-Pw@tcp(127.0.0.1:3306)/shop", "G0dsn-Pw"),
            ("Server=db;User Id=sa;Password=Sq1S3rver!;", "Sq1S3rver!"),
            ("host=db user=app password='l1bpqPw' dbname=x", "l1bpqPw"),
            ("jdbc:postgresql://db/x?user=app&password=jdbcPw99", "jdbcPw99"),
            (
                "AccountName=a;AccountKey=Zm9vYmFyYmF6cXV4Zm9v;EndpointSuffix=x",
                "Zm9vYmFyYmF6cXV4Zm9v",
            ),
            ("mongodb+srv://u:m0ngoPw@c.example/?retryWrites=true", "m0ngoPw"),
        ] {
            assert_eq!(found(text), [secret], "{text}");
        }
    }

    #[test]
    fn password_of_a_basic_auth_header_is_decoded() {
        assert_eq!(basic_password("bWU6SGVhZGVyUHc5OXg3").as_deref(), Some("HeaderPw99x7"));
        assert_eq!(basic_password("bWU="), None);
        assert_eq!(basic_password("no base64!"), None);
    }

    #[test]
    fn urls_without_credentials_have_no_secret() {
        for text in [
            "http://127.0.0.1:8080/v1",
            "https://example.com/@scope/pkg",
            "postgres://localhost/app",
            "postgres://postgres:postgres@localhost/app",
            "postgres://app:$PASS@db/app",
            "git@github.com:me/project.git",
            "ssh://git@host.example/x",
            "me@example.com",
            "/usr/bin:/bin",
            "*.key=0123;*.pass=4567",
            "-Dx=y --flag=1",
            "",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
