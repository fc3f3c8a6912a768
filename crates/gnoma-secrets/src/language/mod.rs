//! How much a run of bytes reads like language: English, names and identifiers cost few bits and few tokens a
//! byte, random strings many.
//!
//! The yardstick is a vocabulary of letter groups in order of use (`data/vocabulary.txt`, made by
//! `examples/train_vocabulary.rs`). A text is cut into the cheapest sequence of groups; the cost of a group is
//! the logarithm of its rank. Not a tokenizer of any model, and only for letters `a` to `z`: digits and signs
//! are a token each, other scripts are left to the caller.

use std::sync::OnceLock;

use gnoma_packed::{packed, unpack};

/// Longer values are judged by their beginning.
const MAX_MEASURED_BYTES: usize = 96;
/// Five bits a letter in one word of 64 bits.
const MAX_PIECE_LETTERS: usize = 12;
/// A word of more letters is cut: no language has them, and the cost of cutting stays linear.
const MAX_WORD_LETTERS: usize = 24;
/// Slots of the lookup table; at most half of them are used.
const TABLE_SLOTS: usize = 1 << 14;
/// Two letters of five bits.
const LETTER_PAIRS: usize = 1 << 10;
/// Letters by whose number the beginnings of groups are told apart.
const BEGINNING_LETTERS: usize = 3;
/// Words of 32 bits for one bit a beginning.
const BEGINNINGS: usize = 1 << (5 * BEGINNING_LETTERS - 5);
/// Bits for a letter that is no group by itself.
const UNKNOWN_LETTER_BITS: f32 = 14.0;
/// Bits for a digit: ten digits, and that it is one.
const DIGIT_BITS: f32 = 5.0;
/// Bits for a sign that stands between words all the time.
const SEPARATOR_BITS: f32 = 2.0;
/// Bits for any other sign or foreign byte.
const SIGN_BITS: f32 = 7.0;
/// Bits for starting another word: what makes `aBcDeF` dearer than `abcdef`.
const WORD_BITS: f32 = 1.5;

static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();

/// The result of measuring a text against the vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LanguageMeasure {
    /// The number of bytes that were looked at.
    pub(crate) bytes: usize,
    /// Groups, digits and signs.
    pub(crate) tokens: usize,
    /// Information under the vocabulary.
    pub(crate) bits: f32,
    /// Letters among the bytes.
    pub(crate) letters: usize,
    /// Digits, signs other than separators, and foreign bytes.
    pub(crate) odd_bytes: usize,
    /// Bits spent on words alone.
    pub(crate) word_bits: f32,
    /// Length of the longest group used.
    pub(crate) longest_piece: usize,
    /// Pairs of neighbouring letters, and the bits of each second one given the first.
    pub(crate) pairs: usize,
    pub(crate) pair_bits: f32,
    /// Letters within groups of four or more: dictionary words and their stems.
    pub(crate) familiar_letters: usize,
}

impl LanguageMeasure {
    /// Words of the vocabulary and what stands between words, nothing else.
    pub(crate) fn is_plain_words(&self) -> bool {
        self.letters > 0 && self.letters == self.familiar_letters && self.odd_bytes == 0
    }

    /// Bytes that one token covers: 3 and more for words, under 2 for random strings, 0 for nothing.
    pub(crate) fn bytes_per_token(&self) -> f32 {
        if self.tokens == 0 { 0.0 } else { self.bytes as f32 / self.tokens as f32 }
    }

    /// Bits for each letter of the words: about 2 for English, over 5 for random letters.
    pub(crate) fn bits_per_letter(&self) -> f32 {
        if self.letters == 0 { 0.0 } else { self.word_bits / self.letters as f32 }
    }

    /// Bits for each letter after another: about 3 for words, over 4.5 for random letters.
    pub(crate) fn bits_per_pair(&self) -> f32 {
        if self.pairs == 0 { 0.0 } else { self.pair_bits / self.pairs as f32 }
    }

    /// Bits for each byte of all.
    pub(crate) fn bits_per_byte(&self) -> f32 {
        if self.bytes == 0 { 0.0 } else { self.bits / self.bytes as f32 }
    }
}

/// Measures the first 96 bytes of `value`.
pub(crate) fn measure_value(value: &[u8]) -> LanguageMeasure {
    let value = value.get(..MAX_MEASURED_BYTES).unwrap_or(value);
    let vocabulary =
        VOCABULARY.get_or_init(|| Vocabulary::parse(&unpack(packed!("vocabulary.txt"))));
    let mut reading = LanguageMeasure { bytes: value.len(), ..LanguageMeasure::default() };
    let mut rest = value;
    while let Some(&first) = rest.first() {
        let word = word_length(rest);
        if word > 0 {
            let (letters, after) = rest.split_at(word);
            vocabulary.read_word(letters, &mut reading);
            rest = after;
        } else {
            reading.tokens += 1;
            let bits = sign_bits(first);
            reading.bits += bits;
            reading.odd_bytes += usize::from(bits > SEPARATOR_BITS);
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    reading
}

fn sign_bits(byte: u8) -> f32 {
    match byte {
        b'0'..=b'9' => DIGIT_BITS,
        b'_' | b'-' | b' ' | b'.' | b'/' => SEPARATOR_BITS,
        _ => SIGN_BITS,
    }
}

/// Length of the word at the start: `Word`, `word` or `WORD`, never across a change of case such as `aB`.
fn word_length(text: &[u8]) -> usize {
    let text = text.get(..MAX_WORD_LETTERS).unwrap_or(text);
    let upper = text.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let lower = text.iter().skip(upper).take_while(|byte| byte.is_ascii_lowercase()).count();
    match (upper, lower) {
        (0 | 1, lower) => upper + lower,
        (upper, 0) => upper,
        // `HTTPServer`: the last capital opens the next word.
        (upper, _) => upper - 1,
    }
}

/// Letter groups with their ranks, by open addressing.
struct Vocabulary {
    slots: Vec<Slot>,
    /// The combinations of three letters that begin a group, as bits.
    beginnings: Vec<u32>,
    /// Bits of a letter after another, by their five bits each.
    pair_bits: [f32; LETTER_PAIRS],
}

#[derive(Clone, Copy, Default)]
struct Slot {
    key: u64,
    bits: f32,
}

impl Vocabulary {
    /// Reads one group a line, most used first; lines that are no group are passed over.
    fn parse(text: &str) -> Self {
        let mut vocabulary = Self {
            slots: vec![Slot::default(); TABLE_SLOTS],
            beginnings: vec![0; BEGINNINGS],
            pair_bits: pair_bits(text.lines().filter(|line| is_piece(line))),
        };
        let pieces = text.lines().filter(|line| is_piece(line)).take(TABLE_SLOTS / 2);
        for (rank, piece) in pieces.enumerate() {
            let key = piece.bytes().fold(0, extend_key);
            vocabulary.insert(Slot { key, bits: rank_bits(rank) });
            let beginning = piece.bytes().take(BEGINNING_LETTERS).fold(0, extend_key);
            if let Some(bits) = vocabulary.beginnings.get_mut(beginning as usize >> 5) {
                *bits |= 1 << (beginning & 0x1f);
            }
        }
        vocabulary
    }

    fn insert(&mut self, new: Slot) {
        for index in probe_slots(new.key) {
            let Some(slot) = self.slots.get_mut(index) else { return };
            if slot.key == 0 || slot.key == new.key {
                *slot = new;
                return;
            }
        }
    }

    fn bits(&self, key: u64) -> Option<f32> {
        for index in probe_slots(key) {
            let slot = self.slots.get(index)?;
            if slot.key == key {
                return Some(slot.bits);
            }
            if slot.key == 0 {
                return None;
            }
        }
        None
    }

    fn begins_group(&self, key: u64) -> bool {
        let bits = self.beginnings.get(key as usize >> 5).copied().unwrap_or_default();
        bits >> (key & 0x1f) & 1 != 0
    }

    /// Adds the cheapest cut of one word, by dynamic programming over its letters.
    fn read_word(&self, word: &[u8], reading: &mut LanguageMeasure) {
        let mut best = [WordSplit { bits: f32::MAX, from: 0 }; MAX_WORD_LETTERS + 1];
        best[0].bits = WORD_BITS;
        for start in 0..word.len() {
            let Some(before) = best.get(start).copied() else { break };
            let mut key = 0;
            for (length, &letter) in (1..).zip(word.iter().skip(start).take(MAX_PIECE_LETTERS)) {
                key = extend_key(key, letter);
                if length == BEGINNING_LETTERS && !self.begins_group(key) {
                    break;
                }
                let bits = match self.bits(key) {
                    Some(bits) => bits,
                    None if length == 1 => UNKNOWN_LETTER_BITS,
                    None => continue,
                };
                if let Some(cut) = best.get_mut(start + length)
                    && before.bits + bits < cut.bits
                {
                    *cut = WordSplit { bits: before.bits + bits, from: start };
                }
            }
        }
        reading.letters += word.len();
        for pair in word.iter().zip(word.iter().skip(1)) {
            reading.pairs += 1;
            reading.pair_bits +=
                self.pair_bits.get(pair_index(*pair.0, *pair.1)).copied().unwrap_or_default();
        }
        follow_cuts(&best, word.len(), reading);
    }
}

/// The cheapest way to have read this far.
#[derive(Clone, Copy)]
struct WordSplit {
    bits: f32,
    from: usize,
}

/// Walks the cheapest cuts back from the end of the word.
fn follow_cuts(best: &[WordSplit], length: usize, reading: &mut LanguageMeasure) {
    let mut end = length;
    if let Some(cut) = best.get(end) {
        reading.bits += cut.bits;
        reading.word_bits += cut.bits;
    }
    while let Some(cut) = best.get(end).filter(|cut| cut.from < end) {
        let piece = end - cut.from;
        reading.tokens += 1;
        reading.longest_piece = reading.longest_piece.max(piece);
        if piece >= 4 {
            reading.familiar_letters += piece;
        }
        end = cut.from;
    }
}

/// Returns the surprise of each letter after each other one, in bits, counted over the groups.
fn pair_bits<'t>(pieces: impl Iterator<Item = &'t str>) -> [f32; LETTER_PAIRS] {
    const LETTERS: f32 = 26.0;
    let mut counts = [0.5_f32; LETTER_PAIRS];
    let mut firsts = [0.5 * LETTERS; 32];
    for piece in pieces {
        for (first, second) in piece.bytes().zip(piece.bytes().skip(1)) {
            if let Some(count) = counts.get_mut(pair_index(first, second)) {
                *count += 1.0;
            }
            if let Some(count) = firsts.get_mut(usize::from(first & 0x1f)) {
                *count += 1.0;
            }
        }
    }
    let mut bits = counts;
    for (index, bits) in bits.iter_mut().enumerate() {
        let first = firsts.get(index >> 5).copied().unwrap_or(LETTERS);
        *bits = (first / *bits).log2();
    }
    bits
}

fn pair_index(first: u8, second: u8) -> usize {
    usize::from(first & 0x1f) << 5 | usize::from(second & 0x1f)
}

fn is_piece(line: &str) -> bool {
    (1..=MAX_PIECE_LETTERS).contains(&line.len())
        && line.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Five bits a letter, `a` is 1, so that no two groups share a key and none is 0.
fn extend_key(key: u64, letter: u8) -> u64 {
    key << 5 | u64::from(letter & 0x1f)
}

/// Zipf's law: how often the group of a rank comes, as bits.
fn rank_bits(rank: usize) -> f32 {
    (rank as f32 + 12.0).log2()
}

fn probe_slots(key: u64) -> impl Iterator<Item = usize> {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let first = (key.wrapping_mul(GOLDEN) >> (64 - TABLE_SLOTS.trailing_zeros())) as usize;
    (0..TABLE_SLOTS).map(move |step| (first + step) % TABLE_SLOTS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_and_identifiers_take_fewer_tokens_than_random_strings() {
        for words in ["password", "authentication", "RepeatNewPassword", "connection"] {
            assert!(measure_value(words.as_bytes()).bytes_per_token() > 3.0, "{words}");
        }
        for random in [
            "qzvtkwxp",
            "zq7Tn4xwKv",
            "8fKq2Lw9ZtR4vXn7Pd3M",
            "IWZNLKGDXQRSMVOB",
            "9f86d081884c7d65",
        ] {
            assert!(measure_value(random.as_bytes()).bytes_per_token() < 1.7, "{random}");
        }
    }

    #[test]
    fn vocabulary_contains_only_letter_groups() {
        let text = &unpack(packed!("vocabulary.txt"));
        assert!(text.lines().filter(|line| !line.starts_with('#')).all(is_piece));
        assert!((30_000..40_000).contains(&text.len()));
    }

    proptest! {
        #[test]
        fn token_measure_covers_every_byte_once(value in prop::collection::vec(any::<u8>(), 0..200)) {
            let reading = measure_value(&value);
            prop_assert_eq!(reading.bytes, value.len().min(MAX_MEASURED_BYTES));
            prop_assert!(reading.tokens <= reading.bytes);
            prop_assert!(reading.letters <= reading.bytes && reading.familiar_letters <= reading.letters);
            prop_assert!(reading.bits.is_finite() && reading.bits >= 0.0);
            prop_assert_eq!(value.is_empty(), reading.tokens == 0);
        }
    }
}
