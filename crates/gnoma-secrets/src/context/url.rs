//! Passwords in URLs: `scheme://user:password@host`, for any scheme.
//!
//! Tokens in query strings have names and are found by those.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::{end_at, is_example, is_password},
};

pub(super) const USER_INFO: SecretContext =
    SecretContext { id: "url-password", keywords: &["://"], find: user_info };

/// Longest user information that is looked at.
const MAX_USER_INFO_BYTES: usize = 512;

/// Names that services are shipped with, each of which is its own password.
const SHIPPED: &[&[u8]] = &[b"guest", b"postgres", b"root", b"admin", b"test", b"user", b"mysql"];

fn user_info(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let limit = text.len().min(hit.end + MAX_USER_INFO_BYTES);
    let near = text.get(hit.end..limit).unwrap_or_default();
    if memchr::memchr(b'@', near).is_none() {
        return;
    }
    let has_scheme =
        hit.start > 0 && text.get(hit.start - 1).is_some_and(u8::is_ascii_alphanumeric);
    let end = end_at(text, hit.end, MAX_USER_INFO_BYTES, ends_url);
    let Some(url) = text.get(hit.end..end).filter(|_| has_scheme) else { return };
    let is_address = url.starts_with(b"[");
    if is_address {
        return;
    }
    let Some(colon) = memchr::memchr2(b':', b'/', url).filter(|&at| url.get(at) == Some(&b':'))
    else {
        return;
    };
    let Some(at) = end_of_password(url, colon + 1) else { return };
    let value = url.get(colon + 1..at).unwrap_or_default();
    // `guest:guest@`, `postgres:postgres@`.
    let is_shipped = url.get(..colon) == Some(value) && SHIPPED.contains(&value);
    let host = url.get(at + 1..).unwrap_or_default();
    if is_password(value) && !is_shipped && !is_example(value, host) {
        found(hit.end + colon + 1..hit.end + at);
    }
}

fn ends_url(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>')
}

/// Returns the offset of the `@` before the host. A password may hold `@`, and `/` or `#` by mistake; a port and a
/// path with `@` do not make one.
fn end_of_password(url: &[u8], from: usize) -> Option<usize> {
    let rest = url.get(from..)?;
    if let Some(at) = memchr::memrchr(b'@', rest).filter(|&at| has_port(rest.get(at + 1..))) {
        return Some(from + at);
    }
    let authority = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let authority = authority.unwrap_or(rest.len());
    if let Some(at) = memchr::memrchr(b'@', rest.get(..authority)?) {
        return Some(from + at);
    }
    let is_port = rest.get(..authority)?.iter().all(u8::is_ascii_digit);
    let at = memchr::memchr(b'@', rest)?;
    let host = rest.get(at + 1)?;
    (!is_port && host.is_ascii_alphanumeric()).then_some(from + at)
}

/// True if the text begins with `host:port`.
fn has_port(text: Option<&[u8]>) -> bool {
    let text = text.unwrap_or_default();
    let host =
        text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte)).count();
    let port = text.get(host + 1).is_some_and(u8::is_ascii_digit);
    host > 0 && text.get(host) == Some(&b':') && port
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str) -> Vec<&str> {
        let at = url.find("://").unwrap();
        let mut spans = Vec::new();
        user_info(url.as_bytes(), at..at + 3, &mut |span| spans.push(span));
        spans.into_iter().filter_map(|span| url.get(span)).collect()
    }

    #[test]
    fn url_password_equal_to_the_user_is_a_secret_unless_it_is_a_default() {
        assert_eq!(found("postgresql://acmeprod:acmeprod@db.acme.com"), ["acmeprod"]);
        for url in ["amqp://guest:guest@mq:5672/", "mysql://root:root@db/a", "pg://test:test@db"] {
            assert!(found(url).is_empty(), "{url}");
        }
    }
}
