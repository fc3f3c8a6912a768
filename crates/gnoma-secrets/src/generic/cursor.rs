//! A reading position in a text: bounded skips, no index that could fail.

use std::ops::Range;

/// Reads forward from a position; past the end it reads nothing.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    text: &'t [u8],
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t [u8], at: usize) -> Self {
        Self { text, at }
    }

    pub(super) fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn byte_at(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    pub(super) fn slice(&self, range: &Range<usize>) -> &'t [u8] {
        self.text.get(range.clone()).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    /// Steps over `word` if it is next.
    pub(super) fn skip_prefix(&mut self, word: &[u8]) -> bool {
        let is_next = self.rest().starts_with(word);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// Steps over `word` in any case if it is next and no letter follows it.
    pub(super) fn take_word(&mut self, word: &[u8]) -> bool {
        let rest = self.rest();
        let is_next = rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
            && !rest.get(word.len()).is_some_and(u8::is_ascii_alphanumeric);
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// Steps over at most `limit` bytes that `wanted` accepts; says how many.
    pub(super) fn skip_while(&mut self, limit: usize, wanted: impl Fn(u8) -> bool) -> usize {
        let count = self.rest().iter().take(limit).take_while(|byte| wanted(**byte)).count();
        self.at += count;
        count
    }
}

/// The at most `limit` bytes before `at` that `wanted` accepts: where they start.
pub(super) fn scan_back(
    text: &[u8],
    at: usize,
    limit: usize,
    wanted: impl Fn(u8) -> bool,
) -> usize {
    let before = text.get(..at).unwrap_or_default();
    at - before.iter().rev().take(limit).take_while(|byte| wanted(**byte)).count()
}

pub(super) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

pub(super) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

pub(super) fn is_uuid(value: &[u8]) -> bool {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| {
            if DASHES.contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
        })
}

/// `01HQZX3V6W8K9M2N4P5R7S9T0V`: a time and a number in the digits of Crockford, which name a thing.
pub(super) fn is_ulid(value: &[u8]) -> bool {
    let is_digit = |byte: &u8| {
        (byte.is_ascii_digit() || byte.is_ascii_uppercase())
            && !matches!(byte, b'I' | b'L' | b'O' | b'U')
    };
    // The years until 2080 begin so.
    value.len() == 26 && value.starts_with(b"01") && value.iter().all(is_digit)
}
