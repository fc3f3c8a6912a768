//! A text reduced to its letters and digits, in lower case, with the way back.
//!
//! What stands between them (blanks, line breaks, quotes, the marks of a diff) splits no secret then,
//! and a change of case hides none.

use std::ops::Range;

/// Bytes of text between two places whose count of letters is kept.
const BLOCK_BYTES: usize = 4 << 10;

/// Bytes that are reduced at a time: the counts of one step do not wait for those of the last.
const STEP_BYTES: usize = 4;

/// The letter or digit to which each byte is reduced; 0 for bytes that are left out.
static FOLDED: [u8; 256] = folding_table();

const fn folding_table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

/// The letters and digits of a text.
pub(super) struct Letters {
    bytes: Vec<u8>,
    /// The number of letters before each block of the text.
    blocks: Vec<usize>,
}

impl Letters {
    /// Returns the letters and digits of `text`.
    pub(super) fn from_text(text: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(text.len());
        let mut blocks = Vec::with_capacity(text.len() / BLOCK_BYTES + 1);
        let mut kept = [0; BLOCK_BYTES + STEP_BYTES];
        for block in text.chunks(BLOCK_BYTES) {
            blocks.push(bytes.len());
            let mut count = 0;
            let (steps, rest) = block.as_chunks::<STEP_BYTES>();
            for step in steps {
                let letters = step.map(|byte| FOLDED[usize::from(byte)]);
                let mut at = count % BLOCK_BYTES;
                // Written always and counted only where it is one: a jump would cost more.
                for letter in letters {
                    kept[at] = letter;
                    at += usize::from(letter != 0);
                }
                count += letters.iter().map(|letter| usize::from(*letter != 0)).sum::<usize>();
            }
            for &byte in rest {
                kept[count % BLOCK_BYTES] = FOLDED[usize::from(byte)];
                count += usize::from(is_letter(byte));
            }
            bytes.extend_from_slice(kept.get(..count).unwrap_or_default());
        }
        Self { bytes, blocks }
    }

    /// Returns the letters and digits.
    pub(super) fn get(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the range in `text`, the text that these letters come from, for a range of the letters.
    pub(super) fn origin(&self, text: &[u8], range: Range<usize>) -> Range<usize> {
        let start = self.original_place(text, range.start);
        let end =
            range.end.checked_sub(1).map_or(start, |last| self.original_place(text, last) + 1);
        start..end.max(start)
    }

    fn original_place(&self, text: &[u8], letter: usize) -> usize {
        let block = self.blocks.partition_point(|before| *before <= letter).saturating_sub(1);
        let start = block * BLOCK_BYTES;
        let before = self.blocks.get(block).copied().unwrap_or_default();
        let rest = text.get(start..).unwrap_or_default();
        let mut places = rest.iter().enumerate().filter(|(_, byte)| is_letter(**byte));
        places.nth(letter - before).map_or(text.len(), |(at, _)| start + at)
    }
}

/// True if the byte is a letter or digit of ASCII.
pub(super) fn is_letter(byte: u8) -> bool {
    FOLDED[usize::from(byte)] != 0
}

/// The letters of `text` at the end of `out`.
pub(super) fn push_letters(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().map(|byte| FOLDED[usize::from(*byte)]).filter(|letter| *letter != 0));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn extracted_letters_map_back_to_their_origin(
            pieces in prop::collection::vec("[a-zA-Z0-9]{0,9}[ +\n\u{e9}-]{0,3000}", 0..8),
        ) {
            let text = pieces.concat().into_bytes();
            let letters = Letters::from_text(&text);
            for (at, letter) in letters.get().iter().enumerate() {
                let origin = letters.origin(&text, at..at + 1);
                prop_assert_eq!(text[origin].to_ascii_lowercase(), vec![*letter]);
            }
            let count = text.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
            prop_assert_eq!(letters.get().len(), count);
        }
    }
}
