//! Files that hold credentials in a form of their own: netrc, pgpass, Docker's configuration, and
//! connection strings wherever they stand.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::{end_at, is_example, is_given, is_password, line_around, start_at},
};

pub(super) const NETRC: SecretContext =
    SecretContext { id: "netrc-password", keywords: &["machine "], find: find_netrc };
pub(super) const PGPASS: SecretContext = SecretContext {
    id: "pgpass-password",
    keywords: &[":5432:", ":5433:", ":6432:", ":3306:", ":*:"],
    find: find_pgpass,
};
pub(super) const DOCKER_AUTH: SecretContext = SecretContext {
    id: "docker-auth",
    keywords: &["\"auth\"", "\"identitytoken\""],
    find: docker_auth,
};
pub(super) const CONNECTION_STRING: SecretContext = SecretContext {
    id: "connection-string-password",
    keywords: &[
        "password=",
        "password =",
        "pwd=",
        "accountkey=",
        "sharedaccesskey=",
        "sharedsecretvalue=",
    ],
    find: connection_string,
};

/// Words of one netrc entry, at most.
const MAX_NETRC_WORDS: usize = 10;
/// The words in front of values in netrc.
const NETRC_KEYS: &[&[u8]] = &[b"login", b"password", b"account", b"port"];
/// Longest value in these files.
const MAX_VALUE_BYTES: usize = 4096;
/// Longest line of pgpass, on each side of its port.
const MAX_LINE_BYTES: usize = 512;
/// Fields of a line of pgpass.
const PGPASS_FIELDS: usize = 5;
/// Longest password of a connection string.
const MAX_PASSWORD_BYTES: usize = 512;
/// Shortest base64 of `user:password` that is believed.
const MIN_AUTH_BYTES: usize = 12;
/// The greatest distance between the password and another part of a connection string, in bytes.
const CONNECTION_REACH: usize = 300;
/// Parts on each side of a password that are looked at.
const MAX_PARTS: usize = 32;
/// Parts of which one shows that a text is a connection string.
const CONNECTION_PARTS: &[&str] = &[
    "server=",
    "data source=",
    "host=",
    "user id=",
    "uid=",
    "user=",
    "username=",
    "endpoint=",
    "accountname=",
    "database=",
    "initial catalog=",
    "dsn=",
    "driver=",
];

/// `machine NAME login USER password VALUE`, the parts after the name in any order, over any lines.
fn find_netrc(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let mut at = hit.end;
    let mut key: &[u8] = b"machine";
    let mut host: &[u8] = b"";
    for index in 0..MAX_NETRC_WORDS {
        at = end_at(text, at, MAX_VALUE_BYTES, |byte| !byte.is_ascii_whitespace());
        let end = end_at(text, at, MAX_VALUE_BYTES, |byte| byte.is_ascii_whitespace());
        let Some(word) = text.get(at..end).filter(|word| !word.is_empty()) else { return };
        let is_value = index % 2 == 0;
        if is_value && key == b"machine" {
            host = word;
        } else if is_value && key == b"password" && is_given(word) && !is_example(word, host) {
            found(at..end);
        } else if !is_value && !NETRC_KEYS.contains(&word) {
            return;
        }
        key = word;
        at = end;
    }
}

fn find_pgpass(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let line = line_around(text, hit.start, MAX_LINE_BYTES);
    let Some(entry) = text.get(line.clone()) else { return };
    let is_prose =
        entry.iter().any(|&byte| byte.is_ascii_whitespace() || byte == b'"' || byte == b'/');
    if is_prose || entry.starts_with(b"#") {
        return;
    }
    let mut fields = entry.splitn(PGPASS_FIELDS, |&byte| byte == b':');
    let password = fields.nth(PGPASS_FIELDS - 1).unwrap_or_default();
    if is_given(password) {
        found(line.end - password.len()..line.end);
    }
}

fn docker_auth(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let is_sign = |byte: u8| byte == b':' || byte == b'"' || byte == b' ';
    let start = end_at(text, hit.end, 8, |byte| !is_sign(byte));
    let end = end_at(text, start, MAX_VALUE_BYTES, |byte| byte == b'"');
    let Some(value) = text.get(start..end) else { return };
    let is_base64 =
        value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_.".contains(byte));
    let is_mixed =
        value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    if value.len() >= MIN_AUTH_BYTES && is_base64 && is_mixed && is_password(value) {
        found(start..end);
    }
}

fn connection_string(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let ends = |byte: u8| matches!(byte, b';' | b'"' | b'\'' | b'\n' | b'\r' | b'<' | b'\\');
    let start = end_at(text, hit.end, 2, |byte| byte != b' ');
    let end = end_at(text, start, MAX_PASSWORD_BYTES, ends);
    let Some(value) = text.get(start..end) else { return };
    let before = start_at(text, hit.start, CONNECTION_REACH, |byte| byte == b'\n');
    let before = text.get(before..hit.start).unwrap_or_default();
    let is_delimited = text.get(end) == Some(&b';') || before.contains(&b';');
    if !is_delimited || !is_password(value) || value.contains(&b' ') {
        return;
    }
    let after = end_at(text, end, CONNECTION_REACH, |byte| byte == b'\n');
    let after = text.get(end..after).unwrap_or_default();
    if has_part(before) || has_part(after) {
        found(start..end);
    }
}

/// True if the text has another part of a connection string.
fn has_part(text: &[u8]) -> bool {
    let ends_with = |head: &[u8], part: &str| {
        let tail = head.len().checked_sub(part.len()).and_then(|from| head.get(from..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(part.as_bytes()))
    };
    memchr::memchr_iter(b'=', text).take(MAX_PARTS).any(|equals| {
        let head = text.get(..=equals).unwrap_or_default();
        CONNECTION_PARTS.iter().any(|part| ends_with(head, part))
    })
}
