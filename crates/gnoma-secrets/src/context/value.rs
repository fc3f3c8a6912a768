//! Reading values and telling them from stand-ins.

use std::ops::Range;

use crate::generic::is_placeholder;

/// Short lower-case words that stand for a password in URLs and commands of manuals.
const STAND_INS: &[&[u8]] =
    &[b"pass", b"pwd", b"pw", b"passwd", b"password", b"user", b"secret", b"token", b"admin"];
/// Fewest bytes of a token that nothing but its place gives away.
const MIN_TOKEN_BYTES: usize = 12;

/// True if the bytes may be a password: they are not a reference, a stand-in or a format.
pub(super) fn is_password(value: &[u8]) -> bool {
    is_given(value) && !is_placeholder(value)
}

/// True if the bytes may be a password in a file that holds only credentials, where `123456` is one.
pub(super) fn is_given(value: &[u8]) -> bool {
    let trimmed = value.strip_suffix(b"1").unwrap_or(value);
    let trimmed = trimmed.strip_suffix(b"2").unwrap_or(trimmed);
    value.len() >= 3
        && !STAND_INS.iter().any(|word| word.eq_ignore_ascii_case(trimmed))
        && !is_format(value)
}

/// True if a password for a host is an example of a manual: a word, for a host name that is reserved for examples
/// (RFC 2606).
pub(super) fn is_example(password: &[u8], host: &[u8]) -> bool {
    let host: Vec<u8> =
        host.iter().filter(|byte| **byte != b'\\' && **byte != b'&').copied().collect();
    let host = host.to_ascii_lowercase();
    let name = host.split(|byte| matches!(byte, b':' | b'/')).next().unwrap_or_default();
    let ends =
        [&b"example.com"[..], b"example.org", b"example.net", b".example", b".test", b".invalid"];
    ends.iter().any(|end| name.ends_with(end)) && password.iter().all(u8::is_ascii_lowercase)
}

/// True if the bytes look like a machine made them: long, letters and digits mixed.
pub(super) fn is_token(value: &[u8]) -> bool {
    value.len() >= MIN_TOKEN_BYTES
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=:%".contains(byte))
        && !is_placeholder(value)
}

/// `%s`, `{name}`, `#{name}`, `$name`, `<name>`, `***`: filled in later or blanked already.
fn is_format(value: &[u8]) -> bool {
    match value {
        [b'%' | b'$' | b'{' | b'<' | b'[' | b'#' | b'(', ..] => {
            value.len() <= 3 || value.iter().skip(1).all(|&byte| is_name_byte(byte))
        }
        _ => value.iter().all(|&byte| byte == b'*' || byte == b'x' || byte == b'.'),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.{}<>[]()$ ".contains(&byte)
}

/// Offset of the first byte at or after `from`, at most `limit` on, that `stop` wants; else the limit.
pub(super) fn end_at(text: &[u8], from: usize, limit: usize, stop: impl Fn(u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let length = rest.len().min(limit);
    from + rest.iter().take(length).position(|&byte| stop(byte)).unwrap_or(length)
}

/// Offset of the first byte before `from`, at most `limit` back, after which `stop` wants none.
pub(super) fn start_at(text: &[u8], from: usize, limit: usize, stop: impl Fn(u8) -> bool) -> usize {
    let before = text.get(from.saturating_sub(limit)..from).unwrap_or_default();
    from - before.iter().rev().take_while(|&&byte| !stop(byte)).count()
}

/// The line around `at`, looking at most `limit` bytes each way.
pub(super) fn line_around(text: &[u8], at: usize, limit: usize) -> Range<usize> {
    let is_break = |byte| byte == b'\n' || byte == b'\r';
    start_at(text, at, limit, is_break)..end_at(text, at, limit, is_break)
}

/// A value that may be quoted with one of `"'\``: what stands inside of the quotes, else up to a blank.
pub(super) fn word_at(text: &[u8], from: usize, limit: usize) -> Range<usize> {
    match text.get(from) {
        Some(&quote @ (b'"' | b'\'' | b'`')) => {
            from + 1..end_at(text, from + 1, limit, |byte| byte == quote || byte == b'\n')
        }
        _ => {
            from..end_at(text, from, limit, |byte| {
                byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`')
            })
        }
    }
}
