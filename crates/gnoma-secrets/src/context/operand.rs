//! Passwords that stand in commands and calls without an option or a name before them:
//! `sqlplus me/X@db`, `echo X | sudo -S`, `new mysqli(host, "me", "X")`, `me:X@tcp(host)`.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::{end_at, is_password, start_at, word_at},
};

pub(super) const LOGIN: SecretContext = SecretContext {
    id: "command-line-password",
    keywords: &["sqlplus ", "sqlldr ", "expdp ", "impdp ", "userid="],
    find: find_login,
};
pub(super) const PIPED: SecretContext = SecretContext {
    id: "command-line-password",
    keywords: &["| sudo -s", "|sudo -s", "| chpasswd", "|chpasswd", "| sudo chpasswd"],
    find: find_piped_password,
};
pub(super) const SHARE: SecretContext = SecretContext {
    id: "command-line-password",
    keywords: &["net use "],
    find: find_share_password,
};
pub(super) const DATA_SOURCE: SecretContext = SecretContext {
    id: "connection-string-password",
    keywords: &["@tcp(", "@unix("],
    find: data_source,
};
pub(super) const THIRD_ARGUMENT: SecretContext = SecretContext {
    id: "password-argument",
    keywords: &[
        "mysqli(",
        "mysqli_connect(",
        "mysql_connect(",
        "new pdo(",
        "getconnection(",
        "ftp_login(",
    ],
    find: third_argument,
};
pub(super) const DEVICE: SecretContext = SecretContext {
    id: "device-password",
    keywords: &[" password 0 ", " password 7 ", " secret 0 ", " secret 5 ", " secret 9 "],
    find: find_device_password,
};

pub(super) const SECURE_STRING: SecretContext = SecretContext {
    id: "command-line-password",
    keywords: &["convertto-securestring "],
    find: secure_string,
};

/// Longest word or line that is looked at.
const MAX_BYTES: usize = 512;
/// Shortest password that its place alone gives away.
const MIN_BYTES: usize = 5;
/// Words of `net use` that are looked at.
const MAX_WORDS: usize = 8;

/// Finds the password in `ConvertTo-SecureString "X" -AsPlainText`.
fn secure_string(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let option = b"-string ";
    let rest = text.get(hit.end..).unwrap_or_default();
    let has_option = rest.get(..option.len()).is_some_and(|word| word.eq_ignore_ascii_case(option));
    let from = hit.end + if has_option { option.len() } else { 0 };
    let word = word_at(text, from, MAX_BYTES);
    let is_quoted = word.start > from;
    report_password(text, word, is_quoted, found);
}

/// Finds the password in `user/password@host`.
fn find_login(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let word = word_at(text, hit.end, MAX_BYTES);
    let Some(value) = text.get(word.clone()) else { return };
    let Some(slash) = memchr::memchr(b'/', value).filter(|&at| at > 0) else { return };
    let Some(at) = memchr::memchr(b'@', value).filter(|&at| at > slash) else { return };
    let is_user = value
        .get(..slash)
        .is_some_and(|user| user.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'));
    report_password(text, word.start + slash + 1..word.start + at, is_user, found);
}

/// `echo X |` and `echo 'user:X' |` before the command that asks for it.
fn find_piped_password(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let is_changed = text.get(hit.clone()).is_some_and(|hit| hit.ends_with(b"chpasswd"));
    let start =
        start_at(text, hit.start, MAX_BYTES, |byte| matches!(byte, b'\n' | b'|' | b';' | b'&'));
    let before = text.get(start..hit.start).unwrap_or_default();
    let Some(echo) = memchr::memmem::find(before, b"echo ") else { return };
    let is_blank = |byte: u8| !matches!(byte, b' ' | b'\t');
    let mut from = end_at(text, start + echo + b"echo ".len(), MAX_BYTES, is_blank);
    while text.get(from..).is_some_and(|rest| rest.starts_with(b"-")) {
        from = end_at(text, from, MAX_BYTES, |byte| byte == b' ');
        from = end_at(text, from, MAX_BYTES, is_blank);
    }
    let word = word_at(text, from, hit.start.saturating_sub(from));
    let colon = text.get(word.clone()).and_then(|word| memchr::memchr(b':', word));
    match colon.filter(|_| is_changed) {
        Some(colon) => report_password(text, word.start + colon + 1..word.end, true, found),
        None => report_password(text, word, !is_changed, found),
    }
}

/// `net use \\server\share /user:me X` and `net use \\server\share X /user:me`.
fn find_share_password(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let mut at = hit.end;
    let mut words = Vec::with_capacity(MAX_WORDS);
    while words.len() < MAX_WORDS {
        at = end_at(text, at, MAX_BYTES, |byte| !matches!(byte, b' ' | b'\t'));
        let end = end_at(text, at, MAX_BYTES, |byte| byte.is_ascii_whitespace());
        if end == at {
            break;
        }
        words.push((at, end));
        at = end;
    }
    let is_user = |&(from, to): &(usize, usize)| {
        text.get(from..to)
            .and_then(|word| word.get(..6))
            .is_some_and(|head| head.eq_ignore_ascii_case(b"/user:"))
    };
    let Some(user) = words.iter().position(is_user) else { return };
    for &(from, to) in
        [user.checked_sub(1), Some(user + 1)].into_iter().flatten().filter_map(|at| words.get(at))
    {
        let is_other =
            matches!(text.get(from), Some(b'\\' | b'/' | b'*')) || text.get(to - 1) == Some(&b':');
        report_password(text, from..to, !is_other, found);
    }
}

/// `user:password@tcp(host:port)/name`, as Go's drivers write it.
fn data_source(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let start = start_at(text, hit.start, MAX_BYTES, |byte| {
        byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'=')
    });
    let before = text.get(start..hit.start).unwrap_or_default();
    if let Some(colon) = memchr::memchr(b':', before) {
        report_password(text, start + colon + 1..hit.start, true, found);
    }
}

/// The third argument of a call on one line, where it is a text between quotes.
fn third_argument(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let mut at = hit.end;
    for index in 0..3 {
        at = end_at(text, at, MAX_BYTES, |byte| byte != b' ');
        let quote = text.get(at).copied().filter(|byte| matches!(byte, b'"' | b'\''));
        let start = at + usize::from(quote.is_some());
        let ends = |byte: u8| match quote {
            Some(quote) => byte == quote || byte == b'\n',
            None => matches!(byte, b',' | b')' | b'\n'),
        };
        let end = end_at(text, start, MAX_BYTES, ends);
        if index == 2 {
            report_password(text, start..end, quote.is_some(), found);
            return;
        }
        at = end_at(text, end + usize::from(quote.is_some()), MAX_BYTES, |byte| byte != b' ');
        if text.get(at) != Some(&b',') {
            return;
        }
        at += 1;
    }
}

/// `username me password 0 X`, as routers and switches are configured.
fn find_device_password(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let line = start_at(text, hit.start, MAX_BYTES, |byte| byte == b'\n');
    let before = text.get(line..hit.start).unwrap_or_default().trim_ascii();
    let is_line = [&b"username "[..], b"enable", b"snmp", b"neighbor ", b"line "]
        .iter()
        .any(|word| before.starts_with(word));
    report_password(text, word_at(text, hit.end, MAX_BYTES), is_line, found);
}

fn report_password(text: &[u8], span: Range<usize>, is_one: bool, found: SpanSink) {
    let value = text.get(span.clone()).unwrap_or_default();
    let is_plain = value.iter().all(u8::is_ascii_graphic);
    if is_one && is_plain && value.len() >= MIN_BYTES && is_password(value) {
        found(span);
    }
}
