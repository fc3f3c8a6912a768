//! Credentials in HTTP headers: `Authorization` and session cookies.
//!
//! Headers whose name promises a key (`X-Api-Key`) are found by that name.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::{end_at, is_password, is_token},
};
use crate::parts::Parts;

pub(super) const AUTHORIZATION: SecretContext = SecretContext {
    id: "authorization-header",
    keywords: &["authorization"],
    find: find_authorization,
};
pub(super) const COOKIE: SecretContext =
    SecretContext { id: "session-cookie", keywords: &["cookie:"], find: find_cookies };

/// Longest credentials of a header.
const MAX_VALUE_BYTES: usize = 8192;
/// Signs and blanks between a header's name and its value.
const MAX_GAP_BYTES: usize = 8;
/// Shortest credentials after a scheme that says what they are.
const MIN_BASIC_BYTES: usize = 8;
/// Cookies of one header that are looked at.
const MAX_COOKIES: usize = 64;
/// Browsers keep no longer ones.
const MAX_COOKIE_BYTES: usize = 4096;
/// Longest name of a cookie.
const MAX_COOKIE_NAME_BYTES: usize = 128;
/// Parts of names of cookies that hold a session.
static SESSION_NAMES: Parts<9> = Parts::new([
    b"sess",
    b"sid",
    b"auth",
    b"token",
    b"jwt",
    b"remember",
    b"csrf",
    b"xsrf",
    b"login",
]);

fn find_authorization(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let start = end_at(text, hit.end, MAX_GAP_BYTES, |byte| !is_gap(byte));
    if start == hit.end {
        return;
    }
    let first = header_word(text, start);
    let after = end_at(text, first.end, MAX_GAP_BYTES, |byte| byte != b' ');
    let second = header_word(text, after);
    let is_scheme = text.get(first.clone()).is_some_and(|word| {
        word.len() < 16 && word.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    });
    let credentials =
        if is_scheme && after > first.end && !second.is_empty() { second } else { first.clone() };
    let Some(value) = text.get(credentials.clone()) else { return };
    let scheme = text.get(first).unwrap_or_default();
    let is_basic = scheme.eq_ignore_ascii_case(b"basic") && is_base64(value);
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer") && is_random_password(value);
    if is_token(value) || is_basic || is_bearer {
        found(credentials);
    }
}

fn is_gap(byte: u8) -> bool {
    matches!(byte, b':' | b'=' | b' ' | b'"' | b'\'' | b'\\' | b',' | b'>' | b'[' | b'(')
}

fn header_word(text: &[u8], from: usize) -> Range<usize> {
    from..end_at(text, from, MAX_VALUE_BYTES, |byte| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'\\' | b'<')
    })
}

/// A password where a token is expected: letters of both cases and signs that no name holds.
fn is_random_password(value: &[u8]) -> bool {
    value.len() >= MIN_BASIC_BYTES
        && is_password(value)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && value.iter().any(|byte| b"%^&!#*+~?".contains(byte))
}

fn is_base64(value: &[u8]) -> bool {
    value.len() >= MIN_BASIC_BYTES
        && value.len().is_multiple_of(4)
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte))
        && value.iter().any(u8::is_ascii_uppercase)
}

fn find_cookies(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let mut at = hit.end;
    for _ in 0..MAX_COOKIES {
        at = end_at(text, at, MAX_GAP_BYTES, |byte| byte != b' ' && byte != b';');
        let equals =
            end_at(text, at, MAX_COOKIE_NAME_BYTES, |byte| byte == b'=' || ends_cookie(byte));
        if text.get(equals) != Some(&b'=') {
            return;
        }
        let end = end_at(text, equals, MAX_COOKIE_BYTES, ends_cookie);
        if SESSION_NAMES.stand_in(text.get(at..equals).unwrap_or_default())
            && is_token(text.get(equals + 1..end).unwrap_or_default())
        {
            found(equals + 1..end);
        }
        if text.get(end) != Some(&b';') {
            return;
        }
        at = end;
    }
}

fn ends_cookie(byte: u8) -> bool {
    matches!(byte, b';' | b'\n' | b'\r' | b'"' | b'\'' | b'\\')
}
