//! Splits a byte stream into lines of limited length. Whoever sends them may send anything.

use std::mem;

/// Longest line that is taken: messages with pictures are large, and memory is not endless.
pub const MAX_LINE_BYTES: usize = 32 << 20;
/// A buffer larger than this is given back once its line is read.
const USUAL_BYTES: usize = 64 << 10;

/// A line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The whole line, without its end.
    Whole(Vec<u8>),
    /// A line that was longer than the limit; its content is discarded.
    TooLong,
}

/// Cuts bytes into lines and forgets those that are too long while they come.
#[derive(Debug)]
pub struct LineReader {
    buffer: Vec<u8>,
    max_bytes: usize,
    /// The line that comes is too long already.
    skips: bool,
}

impl Default for LineReader {
    fn default() -> Self {
        Self::new(MAX_LINE_BYTES)
    }
}

impl LineReader {
    /// A reader that takes lines of at most `max_bytes` bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { buffer: Vec::new(), max_bytes, skips: false }
    }

    /// Takes a piece and gives the lines that end in it. Empty lines are left out.
    pub fn push(&mut self, mut piece: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            let (rest, after) = piece.split_at(end);
            piece = after.get(1..).unwrap_or_default();
            self.extend(rest);
            lines.extend(self.end_line());
        }
        self.extend(piece);
        lines
    }

    /// True if a line has begun and not ended.
    #[must_use]
    pub fn is_within_line(&self) -> bool {
        self.skips || !self.buffer.is_empty()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.skips || self.buffer.len() + bytes.len() > self.max_bytes {
            self.skips = true;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) -> Option<Line> {
        if mem::take(&mut self.skips) {
            return Some(Line::TooLong);
        }
        if self.buffer.ends_with(b"\r") {
            self.buffer.pop();
        }
        if self.buffer.is_empty() {
            return None;
        }
        let line = self.buffer.clone();
        if self.buffer.capacity() > USUAL_BYTES {
            self.buffer = Vec::new();
        }
        self.buffer.clear();
        Some(Line::Whole(line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However bytes are cut into pieces, the same lines come out, and never more is kept than
        /// a line may have.
        #[test]
        fn line_reader_splits_the_same_lines_for_any_chunking(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), 32_u8..40], 0..200),
            cuts in prop::collection::vec(1_usize..9, 1..40),
        ) {
            let mut whole = LineReader::new(16);
            let expected = whole.push(&bytes);
            let mut reader = LineReader::new(16);
            let (mut lines, mut rest) = (Vec::new(), bytes.as_slice());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                lines.extend(reader.push(piece));
                prop_assert!(reader.buffer.len() <= 16);
                rest = after;
            }
            prop_assert_eq!(lines, expected);
            prop_assert_eq!(reader.is_within_line(), whole.is_within_line());
        }
    }
}
