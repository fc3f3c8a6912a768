//! Keys in files and texts that name them in a line of their own: the private lines of a `PuTTY` key, and the
//! words a wallet is restored from.

use std::ops::Range;

use super::{
    secret_context::{SecretContext, SpanSink},
    value::end_at,
};

pub(super) const PRIVATE_LINES: SecretContext =
    SecretContext { id: "putty-private-key", keywords: &["private-lines: "], find: private_lines };
pub(super) const SEED_WORDS: SecretContext = SecretContext {
    id: "seed-phrase",
    keywords: &["mnemonic", "seed phrase", "seed_phrase", "recovery phrase", "recovery_phrase"],
    find: seed_words,
};

/// Longest line, and most lines of one key.
const MAX_LINE_BYTES: usize = 128;
const MAX_LINES: usize = 64;
/// The numbers of words that a wallet's phrase can have, and the lengths of these words.
const WORD_COUNTS: [usize; 5] = [12, 15, 18, 21, 24];
const WORD_BYTES: std::ops::RangeInclusive<usize> = 3..=8;
/// Words of sentences that no list for wallets has.
const SENTENCE_WORDS: [&[u8]; 8] =
    [b"the", b"and", b"for", b"are", b"that", b"from", b"was", b"not"];

fn private_lines(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let ends = |byte: u8| byte == b'\n';
    let first = end_at(text, hit.end, MAX_LINE_BYTES, ends) + 1;
    let mut end = first;
    for _ in 0..MAX_LINES {
        let next = end_at(text, end, MAX_LINE_BYTES, ends);
        let line = text.get(end..next).unwrap_or_default().trim_ascii();
        let is_body = line.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
        if line.is_empty() || !is_body {
            break;
        }
        end = (next + 1).min(text.len());
    }
    if end > first {
        found(first..end);
    }
}

/// `mnemonic = "word word …"`: twelve to twenty-four short words between the sign and the end of the text.
fn seed_words(text: &[u8], hit: Range<usize>, found: SpanSink) {
    let is_open = |byte: u8| !matches!(byte, b'"' | b'\'' | b' ' | b':' | b'=' | b'`');
    let start = end_at(text, hit.end, 8, is_open);
    let between = text.get(hit.end..start).unwrap_or_default();
    if !between.iter().any(|byte| matches!(byte, b':' | b'=')) {
        return;
    }
    let ends = |byte: u8| !byte.is_ascii_lowercase() && byte != b' ';
    let end = end_at(text, start, MAX_LINE_BYTES * 2, ends);
    let words = text.get(start..end).unwrap_or_default().trim_ascii_end();
    let is_word = |word: &[u8]| WORD_BYTES.contains(&word.len()) && !SENTENCE_WORDS.contains(&word);
    let is_phrase = words.split(|&byte| byte == b' ').all(is_word);
    if is_phrase && WORD_COUNTS.contains(&words.split(|&byte| byte == b' ').count()) {
        found(start..start + words.len());
    }
}
