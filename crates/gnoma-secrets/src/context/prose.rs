//! Passwords in sentences: `the password is Secret123`, `with password S3cr3tP@ss`.
//!
//! What binds them is a word or nothing, so that they have to look like what people make up: letters
//! and digits mixed, and where nothing binds them, mixed more than once. Other languages bind a few
//! words later (`Das Passwort für den Server lautet X`): one table of binding words serves them all.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::{end_at, is_password, word_at},
};

pub(super) const PASSWORD: SecretContext = SecretContext {
    id: "password-in-text",
    keywords: &[
        "password ",
        "passphrase ",
        "passwort ",
        "passcode ",
        "kennwort ",
        "and pass ",
        "with pass ",
        "the pass ",
    ],
    find: find_password,
};
/// The word for a password where a sentence of another language has it, in either case of its first
/// letter where that is not ASCII.
pub(super) const FOREIGN_PASSWORD: SecretContext = SecretContext {
    id: "password-in-text",
    keywords: &[
        "contraseña",
        "contrasena ",
        "mot de passe",
        "senha ",
        "palavra-passe",
        "wachtwoord",
        "parola ",
        "parolă",
        "şifre",
        "hasło",
        "heslo ",
        "lösenord",
        "adgangskode",
        "salasana",
        "jelszó",
        "лозинка",
        "пароль",
        "Пароль",
        "密码",
        "密碼",
        "口令",
        "パスワード",
        "비밀번호",
        "암호",
    ],
    find: foreign_password,
};

/// A key that a sentence names and binds later: `the API key for the weather is X`.
pub(super) const KEY: SecretContext = SecretContext {
    id: "key-in-text",
    keywords: &[
        "api key ",
        "api-key ",
        "access key ",
        "api token ",
        "access token ",
        "auth token ",
        "secret for ",
        "secret is ",
        "password hash ",
    ],
    find: find_key,
};

/// Longest and shortest password in a sentence.
const MAX_PASSWORD_BYTES: usize = 64;
/// Longest and shortest key in a sentence.
const MAX_KEY_BYTES: usize = 128;
const MIN_KEY_BYTES: usize = 24;
const MIN_BOUND_BYTES: usize = 7;
const MIN_UNBOUND_BYTES: usize = 8;
/// Words between the name and the value.
const BINDING: [&[u8]; 6] = [b"is ", b"was ", b"ist ", b"to ", b"= ", b": "];
/// The greatest distance from its name at which a value is bound, the words that bind it there, and the signs that
/// do so where a language has a word of its own. Behind `password` the signs are handled by `generic`.
const BINDING_REACH: usize = 64;
const BINDING_WORDS: [&str; 13] = [
    " is ", " was ", " lautet ", " ist ", " est ", " es ", " é ", " è ", " jest ", " är ", " er ",
    " este ", " это ",
];
const BINDING_SIGNS: [&str; 7] = [": ", " = ", "：", ":", "是", "为", "は"];
/// The beginnings of the names of algorithms and formats: `the password is sha256 of …`.
const KINDS: [&[u8]; 14] = [
    b"base", b"sha", b"md", b"utf", b"bcrypt", b"argon", b"pbkdf", b"aes", b"rsa", b"hmac",
    b"oauth", b"scrypt", b"x509", b"rot",
];

fn find_password(text: &[u8], hit: Range<usize>, found: SpanSink) {
    if let Some(value) = bound_here(text, hit.end) {
        found(value);
    } else {
        bound_later(text, hit, &[], found);
    }
}

fn foreign_password(text: &[u8], hit: Range<usize>, found: SpanSink) {
    bound_later(text, hit, &BINDING_SIGNS, found);
}

/// The password that follows at `from`, with one binding word or none.
fn bound_here(text: &[u8], from: usize) -> Option<Range<usize>> {
    let rest = text.get(from..).unwrap_or_default();
    let blank = rest.iter().take_while(|byte| **byte == b' ').count();
    let rest = rest.get(blank..).unwrap_or_default();
    let bound = BINDING.iter().find(|word| rest.starts_with(word)).map(|word| word.len());
    let start = from + blank + bound.unwrap_or(0);
    let value = trim_sentence_end(text, word_at(text, start, MAX_PASSWORD_BYTES));
    let word = text.get(value.clone()).unwrap_or_default();
    let least = if bound.is_some() { MIN_BOUND_BYTES } else { MIN_UNBOUND_BYTES };
    let mixes = count_mixes(word);
    let looks_made_up = if bound.is_some() { mixes >= 1 } else { mixes >= 2 };
    (word.len() >= least && looks_made_up && may_be_one(word)).then_some(value)
}

/// `für den Server lautet X`: the first binding word of the sentence, and behind it what nobody would
/// write in a sentence for another reason: both cases and digits.
fn bound_later(text: &[u8], hit: Range<usize>, signs: &[&str], found: SpanSink) {
    let end =
        end_at(text, hit.end, BINDING_REACH, |byte| matches!(byte, b'.' | b'\n' | b'(' | b'{'));
    let sentence = text.get(hit.end..end).unwrap_or_default();
    let places = BINDING_WORDS.iter().chain(signs).filter_map(|word| {
        memchr::memmem::find(sentence, word.as_bytes()).map(|at| (at, at + word.len()))
    });
    let Some((_, behind)) = places.min_by_key(|&(at, end)| (at, std::cmp::Reverse(end))) else {
        return;
    };
    let start = hit.end + behind;
    let start =
        end_at(text, start, 8, |byte| byte.is_ascii_graphic() && !b"\"'`*:=".contains(&byte));
    let end = end_at(text, start, MAX_PASSWORD_BYTES, |byte| {
        !byte.is_ascii_graphic() || b"\"'`".contains(&byte)
    });
    let value = trim_sentence_end(text, start..end);
    let word = text.get(value.clone()).unwrap_or_default();
    let is_mixed = word.iter().any(u8::is_ascii_uppercase)
        && word.iter().any(u8::is_ascii_lowercase)
        && count_mixes(word) >= 1;
    if word.len() >= MIN_UNBOUND_BYTES && is_mixed && may_be_one(word) {
        found(value);
    }
}

/// Finds a key in a sentence that no sentence holds for another reason: hexadecimal digits as long as keys are, or
/// letters of both cases and digits as chance mixes them.
fn find_key(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let end = end_at(text, hit.end, BINDING_REACH, |byte| matches!(byte, b'\n' | b'{' | b'='));
    let sentence = text.get(hit.end.saturating_sub(" is ".len())..end).unwrap_or_default();
    let from = end - sentence.len();
    let bound = [": ", " is ", " lautet "].iter().filter_map(|word| {
        memchr::memmem::find(sentence, word.as_bytes()).map(|at| from + at + word.len())
    });
    let Some(start) = bound.min() else { return };
    let value = trim_sentence_end(text, word_at(text, start, MAX_KEY_BYTES));
    let word = text.get(value.clone()).unwrap_or_default();
    let is_hex = matches!(word.len(), 32 | 40 | 64)
        && word.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    let is_random = word.len() >= MIN_KEY_BYTES
        && word.iter().any(u8::is_ascii_uppercase)
        && word.iter().any(u8::is_ascii_lowercase)
        && word.iter().filter(|byte| byte.is_ascii_digit()).count() >= 2
        && word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(byte));
    if (is_hex || is_random) && is_password(word) {
        found(value);
    }
}

/// Neither code nor the name of a kind.
fn may_be_one(word: &[u8]) -> bool {
    let is_kind = KINDS
        .iter()
        .any(|kind| word.get(..kind.len()).is_some_and(|head| head.eq_ignore_ascii_case(kind)));
    let is_code =
        |byte: &u8| matches!(byte, b'(' | b')' | b'[' | b'{' | b'/' | b'\\' | b'<' | b'=' | b'$');
    word.is_ascii() && !word.iter().any(is_code) && !is_kind && is_password(word)
}

/// Without the sign that ends a sentence.
fn trim_sentence_end(text: &[u8], value: Range<usize>) -> Range<usize> {
    let word = text.get(value.clone()).unwrap_or_default();
    let ends = word
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b'.' | b',' | b';' | b':' | b'?' | b')'));
    let end = value.end - ends.count();
    value.start..end.max(value.start)
}

/// Counts how often a letter and a digit or sign stand next to each other, by the runs of the latter.
fn count_mixes(word: &[u8]) -> usize {
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
