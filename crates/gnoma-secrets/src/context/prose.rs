//! Passwords in sentences: `the password is Secret123`, `with password S3cr3tP@ss`.
//!
//! What binds them is a word or nothing, so that they have to look like what people make up: letters
//! and digits mixed, and where nothing binds them, mixed more than once.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::{is_password, word_at},
};

pub(super) const PASSWORD: SecretContext = SecretContext {
    id: "password-in-text",
    keywords: &["password ", "passphrase ", "passwort ", "passcode "],
    find: password,
};

/// Longest and shortest password in a sentence.
const MAX_PASSWORD_BYTES: usize = 64;
const MIN_BOUND_BYTES: usize = 7;
const MIN_UNBOUND_BYTES: usize = 8;
/// Words between the name and the value.
const BINDING: [&[u8]; 6] = [b"is ", b"was ", b"ist ", b"to ", b"= ", b": "];
/// What algorithms and formats begin with: `the password is sha256 of …`.
const KINDS: [&[u8]; 14] = [
    b"base", b"sha", b"md", b"utf", b"bcrypt", b"argon", b"pbkdf", b"aes", b"rsa", b"hmac",
    b"oauth", b"scrypt", b"x509", b"rot",
];

fn password(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let rest = text.get(hit.end..).unwrap_or_default();
    let blank = rest.iter().take_while(|byte| **byte == b' ').count();
    let rest = rest.get(blank..).unwrap_or_default();
    let bound = BINDING.iter().find(|word| rest.starts_with(word)).map(|word| word.len());
    let start = hit.end + blank + bound.unwrap_or(0);
    let value = trimmed(text, word_at(text, start, MAX_PASSWORD_BYTES));
    let word = text.get(value.clone()).unwrap_or_default();
    let least = if bound.is_some() { MIN_BOUND_BYTES } else { MIN_UNBOUND_BYTES };
    let mixes = mixes(word);
    let is_kind = KINDS
        .iter()
        .any(|kind| word.get(..kind.len()).is_some_and(|head| head.eq_ignore_ascii_case(kind)));
    let looks_made_up = if bound.is_some() { mixes >= 1 } else { mixes >= 2 };
    let is_word = word.len() >= least
        && word.is_ascii()
        && !word.iter().any(|byte| {
            matches!(byte, b'(' | b')' | b'[' | b'{' | b'/' | b'\\' | b'<' | b'=' | b'$')
        });
    if is_word && looks_made_up && !is_kind && is_password(word) {
        found(value);
    }
}

/// Without the sign that ends a sentence.
fn trimmed(text: &[u8], value: Range<usize>) -> Range<usize> {
    let word = text.get(value.clone()).unwrap_or_default();
    let ends = word
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b'.' | b',' | b';' | b':' | b'?' | b')'));
    let end = value.end - ends.count();
    value.start..end.max(value.start)
}

/// How often a letter and a digit or sign stand next to each other, by the runs of the latter.
fn mixes(word: &[u8]) -> usize {
    let has_letters = word.iter().filter(|byte| byte.is_ascii_alphabetic()).count() >= 2;
    let has_digit = word.iter().any(u8::is_ascii_digit);
    if !(has_letters && has_digit) {
        return 0;
    }
    // A hyphen joins words.
    let is_odd = |byte: u8| !byte.is_ascii_alphabetic() && !matches!(byte, b'-' | b'_' | b'.');
    let begins = |pair: &[u8]| matches!(pair, [one, two] if !is_odd(*one) && is_odd(*two));
    word.windows(2).filter(|pair| begins(pair)).count()
}
