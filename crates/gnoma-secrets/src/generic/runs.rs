//! Long runs of token characters: where a random string may stand under a name that says nothing.
//!
//! Shorter runs need a name that says what they are. Runs that are plainly something else, such as
//! numbers, words, hashes of known length and blobs, go no further.

use super::cursor::{is_blank, is_name_byte, is_quote, is_ulid, scan_back};
use super::names::{NameWords, is_nonce, is_public_in_text};
use super::place::{NamedValue, Operator};
use crate::keywords::{self, MIN_RUN_BYTES};

/// Longer ones are data: images, certificates, signatures.
const MAX_RUN_BYTES: usize = 200;
/// `=` at the end of base64.
const MAX_PADDING: usize = 2;
/// The greatest distance from its key at which a record of DKIM begins, in bytes.
const MAX_DKIM_BYTES: usize = 512;
/// Between name and run.
const MAX_NAME_BYTES: usize = 48;

/// Hands every run that may be random to `take`. `runs` is where long runs begin, in order.
pub(crate) fn for_each_run(text: &[u8], runs: &[usize], take: &mut dyn FnMut(&NamedValue)) {
    for &start in runs {
        if let Some(place) = place_in(text, start, run_end(text, start)) {
            take(&place);
        }
    }
}

/// Returns the end of the run that starts at `start`, padding included.
fn run_end(text: &[u8], start: usize) -> usize {
    let end = keywords::run_end(text, start);
    let rest = text.get(end..).unwrap_or_default();
    end + rest.iter().take(MAX_PADDING).take_while(|byte| **byte == b'=').count()
}

fn place_in(text: &[u8], start: usize, end: usize) -> Option<NamedValue> {
    if !may_be_random(text.get(start..end)?) || is_part_of_more(text, start, end) {
        return None;
    }
    let place = place_of(text, start, end);
    let is_elsewhere = is_named_otherwise(text, &place)
        || fills_line(text, &place)
        || is_in_dkim_record(text, &place)
        || is_ulid(text.get(start..end)?)
        || is_nonce(text, &place.name);
    (!is_elsewhere).then_some(place)
}

/// Digits and letters mixed as chance mixes them, not a path, not a hash without a name.
fn may_be_random(run: &[u8]) -> bool {
    // Web tokens have a rule of their own, and pages name what may run in them.
    let known: [&[u8]; 6] = [b"eyJ", b"/", b"nonce-", b"sha256-", b"sha384-", b"sha512-"];
    let is_known = known.iter().any(|start| run.starts_with(start));
    if is_known || !(MIN_RUN_BYTES..=MAX_RUN_BYTES).contains(&run.len()) {
        return false;
    }
    let (mut counts, mut changes) = ([0_usize; 6], 0);
    let mut last = None;
    for &byte in run {
        let kind = RunKind::from_byte(byte);
        if let Some(count) = counts.get_mut(kind as usize) {
            *count += 1;
        }
        let is_sign = kind == RunKind::Sign || last == Some(RunKind::Sign);
        changes += usize::from(!is_sign && last.is_some_and(|last| last.group() != kind.group()));
        last = Some(kind);
    }
    let [digits, _, _, lower, upper, signs] = counts;
    digits >= 2 && lower + upper >= 3 && signs * 6 <= run.len() && changes * 8 >= run.len()
}

/// The kind of a character, to tell hexadecimal digits, words and chance apart; the order is that of the counts in
/// [`may_be_random`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunKind {
    Digit,
    /// A letter that is a hexadecimal digit too.
    LowerHex,
    UpperHex,
    Lower,
    Upper,
    Sign,
}

impl RunKind {
    fn from_byte(byte: u8) -> Self {
        match byte {
            b'0'..=b'9' => Self::Digit,
            b'a'..=b'f' => Self::LowerHex,
            b'g'..=b'z' => Self::Lower,
            b'A'..=b'F' => Self::UpperHex,
            b'G'..=b'Z' => Self::Upper,
            _ => Self::Sign,
        }
    }

    fn group(self) -> u8 {
        match self {
            Self::Digit => 0,
            Self::LowerHex | Self::Lower => 1,
            Self::UpperHex | Self::Upper => 2,
            Self::Sign => 3,
        }
    }
}

/// Part of a URL, a path, an e-mail address or an escape.
fn is_part_of_more(text: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).and_then(|at| text.get(at));
    let after = text.get(end);
    matches!(before, Some(b'/' | b'@' | b'\\' | b'%' | b'#' | b'&' | b'?' | b'$' | 0x80..))
        || matches!(after, Some(b'(' | b'@' | b'%' | b'\\' | b'[' | 0x80..))
}

/// `"integrity": ...`, `request_id=...`: the name says that it is no secret.
fn is_named_otherwise(text: &[u8], place: &NamedValue) -> bool {
    let words = NameWords::read(text.get(place.name.clone()).unwrap_or_default());
    words.ends_lowering || words.sealed || is_public_in_text(text, &place.name)
}

/// `v=DKIM1; k=rsa; p=MIGf…`: the public key of a mail server, also where a record of several texts goes on with it.
fn is_in_dkim_record(text: &[u8], place: &NamedValue) -> bool {
    let start = place.name.start.saturating_sub(MAX_DKIM_BYTES);
    let before = text.get(start..place.name.start).unwrap_or_default();
    let is_key = text.get(place.name.clone()).is_some_and(|name| matches!(name, b"p" | b""));
    is_key && memchr::memmem::find(before, b"v=DKIM1").is_some()
}

/// A line of nothing else is part of a block: a certificate, a signature, a dump.
fn fills_line(text: &[u8], place: &NamedValue) -> bool {
    let ends_line = |byte: Option<&u8>| matches!(byte, Some(b'\n' | b'\r'));
    let before = place.value.start.checked_sub(1).and_then(|at| text.get(at));
    let after = text.get(place.value.end);
    (ends_line(before) && (after.is_none() || ends_line(after)))
        || (before.is_none() && ends_line(after))
}

/// Looks back for quote, operator and name.
fn place_of(text: &[u8], start: usize, end: usize) -> NamedValue {
    let mut at = start;
    let byte_before = |at: usize| at.checked_sub(1).and_then(|at| text.get(at)).copied();
    let quote = byte_before(at).filter(|byte| is_quote(*byte));
    at -= usize::from(quote.is_some());
    at = scan_back(text, at, MAX_NAME_BYTES, is_blank);
    let operator = match byte_before(at) {
        Some(b'=') => Operator::Assign,
        Some(b':') => Operator::Colon,
        Some(b'>') => Operator::Element,
        Some(b',') => Operator::Comma,
        Some(b'(') => Operator::Call,
        _ if quote.is_some() => Operator::Blank,
        _ => Operator::None,
    };
    if !matches!(operator, Operator::Blank | Operator::None) {
        at = scan_back(text, at, 3, |byte| matches!(byte, b'=' | b':' | b'>' | b'(' | b','));
        at = scan_back(text, at, MAX_NAME_BYTES, is_blank);
        at = scan_back(text, at, 3, |byte| is_quote(byte) || matches!(byte, b'\\' | b']'));
    }
    let name = scan_back(text, at, MAX_NAME_BYTES, is_name_byte)..at;
    NamedValue {
        name,
        value: start..end,
        operator,
        quote,
        argument: 0,
        is_setting: false,
        by_form: true,
        rule: "high-entropy",
    }
}
