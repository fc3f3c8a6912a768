//! Passwords behind a word of a configuration file or a command of a service, with nothing but a blank between:
//! `requirepass X`, `bindpw X`, `SetEnv DB_PASS X`.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::{end_at, is_password, start_at, word_at},
};

pub(super) const DIRECTIVE: SecretContext = SecretContext {
    id: "directive-password",
    keywords: &[
        "requirepass ",
        "masterauth ",
        "bindpw ",
        "rootbindpw ",
        "rootpw ",
        "setenv ",
        "enable password ",
        "enable secret ",
    ],
    find: find_directive,
};

/// Longest line that is looked at.
const MAX_LINE_BYTES: usize = 512;
/// Shortest password that its place alone gives away.
const MIN_BYTES: usize = 5;
/// The texts that may stand before the word: marks of a difference between files, and a service's command.
const BEFORE: [&[u8]; 4] = [b"", b"+", b"-", b"config set"];
/// Ends of names of variables that hold a password.
const NAMES: [&[u8]; 5] = [b"pass", b"passwd", b"password", b"passphrase", b"pwd"];

fn find_directive(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let line = start_at(text, hit.start, MAX_LINE_BYTES, |byte| byte == b'\n');
    let before = text.get(line..hit.start).unwrap_or_default().trim_ascii();
    if !BEFORE.iter().any(|word| before.eq_ignore_ascii_case(word)) {
        return;
    }
    let is_variable = text.get(hit.clone()).is_some_and(|hit| hit.eq_ignore_ascii_case(b"setenv "));
    let mut from = skip_blanks(text, hit.end);
    if is_variable {
        let end = end_at(text, from, MAX_LINE_BYTES, |byte| byte.is_ascii_whitespace());
        let name = text.get(from..end).unwrap_or_default().to_ascii_lowercase();
        if !NAMES.iter().any(|ending| name.ends_with(ending)) {
            return;
        }
        from = skip_blanks(text, end);
    }
    let span = value_at(text, from);
    let value = text.get(span.clone()).unwrap_or_default();
    let is_plain = value.iter().all(u8::is_ascii_graphic);
    if is_plain && value.len() >= MIN_BYTES && ends_line(text, span.end) && is_password(value) {
        found(span);
    }
}

fn skip_blanks(text: &[u8], from: usize) -> usize {
    end_at(text, from, MAX_LINE_BYTES, |byte| !matches!(byte, b' ' | b'\t'))
}

/// Up to the quote that closes it, else up to a blank: signs of other formats are part of a password here.
fn value_at(text: &[u8], from: usize) -> Range<usize> {
    match text.get(from) {
        Some(b'"' | b'\'') => word_at(text, from, MAX_LINE_BYTES),
        _ => from..end_at(text, from, MAX_LINE_BYTES, |byte| byte.is_ascii_whitespace()),
    }
}

/// True if no text follows on the line: `requirepass sets …` is a sentence.
fn ends_line(text: &[u8], end: usize) -> bool {
    let end = end + usize::from(matches!(text.get(end), Some(b'"' | b'\'')));
    let end = skip_blanks(text, end);
    text.get(end).is_none_or(|byte| matches!(byte, b'\n' | b'\r' | b'#'))
}
