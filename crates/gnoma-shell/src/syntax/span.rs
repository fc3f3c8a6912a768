//! Places in the text that was parsed.

/// Bytes `start..end` of the text that was parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// One after the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the part of `text` in this range; empty if it is another text.
    #[must_use]
    pub fn text_in(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// True if `other` lies within this range.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}
