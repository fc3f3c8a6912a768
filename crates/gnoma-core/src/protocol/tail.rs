//! Text of which only the end is kept.

use serde::{Deserialize, Serialize};

/// The end of a text that grows, and how much of it was let go.
///
/// What is kept is at most twice the limit it is pushed with, so that a push costs what is pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextTail {
    /// The end of the text.
    pub text: String,
    /// Bytes before it that are not kept.
    pub skipped: u64,
}

impl TextTail {
    /// Adds a piece; of more than twice `limit` bytes the last `limit` stay.
    pub fn push(&mut self, piece: &str, limit: usize) {
        self.text.push_str(piece);
        if self.text.len() > limit.saturating_mul(2) {
            let cut = self.text.ceil_char_boundary(self.text.len() - limit);
            self.skipped += cut as u64;
            self.text.drain(..cut);
        }
    }

    /// Bytes of the whole text.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.skipped + self.text.len() as u64
    }

    /// What follows the first `known` bytes of the whole text; `None` where part of that is gone.
    #[must_use]
    pub fn text_after(&self, known: u64) -> Option<&str> {
        let from = usize::try_from(known.checked_sub(self.skipped)?).ok()?;
        self.text.get(from..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_tail_retains_the_end_and_counts_all_bytes() {
        let mut tail = TextTail::default();
        for piece in ["één ", "twee ", "drie ", "vier"] {
            tail.push(piece, 6);
        }
        assert_eq!(tail.total_bytes(), "één twee drie vier".len() as u64);
        assert!("één twee drie vier".ends_with(&tail.text) && tail.text.len() <= 12);
        assert_eq!(tail.text_after(tail.total_bytes()), Some(""));
        assert_eq!(tail.text_after(0), None, "the beginning is gone");
    }
}
