//! Decoded text with the way back to where it came from.

use std::ops::Range;

/// A run of decoded bytes with one origin.
#[derive(Clone, Copy, Debug)]
struct DecodedRun {
    /// The start of the run in the view.
    at: usize,
    /// The start of the run in the original.
    from: usize,
    /// The end of the run in the original. Pieces as long as their origin map byte by byte.
    to: usize,
}

/// Decoded text with the origin of its bytes.
#[derive(Debug, Default)]
pub(crate) struct View {
    text: Vec<u8>,
    pieces: Vec<DecodedRun>,
}

impl View {
    /// Returns the decoded bytes of the view.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// True if no text was decoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds bytes that stand in the original as they are, from `from` on.
    pub(crate) fn push_literal(&mut self, bytes: &[u8], from: usize) {
        if !bytes.is_empty() {
            self.push(bytes, from..from + bytes.len());
        }
    }

    /// Adds bytes that the whole of `origin` stands for.
    pub(crate) fn push(&mut self, bytes: &[u8], origin: Range<usize>) {
        self.pieces.push(DecodedRun { at: self.text.len(), from: origin.start, to: origin.end });
        self.text.extend_from_slice(bytes);
    }

    /// Keeps what comes next from being read together with what came before.
    pub(crate) fn push_line_break(&mut self, at: usize) {
        if !self.text.is_empty() {
            self.push(b"\n", at..at);
        }
    }

    /// The bytes of the original that `span` of the view came from.
    pub(crate) fn origin(&self, span: Range<usize>) -> Range<usize> {
        let start = self.origin_of(span.start).start;
        let end = if span.is_empty() { start } else { self.origin_of(span.end - 1).end };
        start..end.max(start)
    }

    /// The same run by run, for a view whose runs are in another order than the original.
    pub(crate) fn origin_runs(
        &self,
        span: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = self.pieces.iter().map(|piece| piece.at);
        let ends = starts.clone().skip(1).chain([self.text.len()]);
        let runs =
            starts.zip(ends).map(move |(start, end)| start.max(span.start)..end.min(span.end));
        runs.filter(|run| run.start < run.end).map(|run| self.origin(run))
    }

    /// The bytes of the original that one byte of the view came from.
    fn origin_of(&self, at: usize) -> Range<usize> {
        let index = self.pieces.partition_point(|piece| piece.at <= at);
        let Some(piece) = index.checked_sub(1).and_then(|index| self.pieces.get(index)) else {
            return 0..0;
        };
        let end = self.pieces.get(index).map_or(self.text.len(), |next| next.at);
        let inside = at - piece.at;
        if end - piece.at == piece.to - piece.from {
            return piece.from + inside..piece.from + inside + 1;
        }
        piece.from..piece.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_view_maps_literal_bytes_singly_and_decoded_bytes_as_a_whole() {
        let mut view = View::default();
        view.push_literal(b"ab", 10);
        view.push(b"\"", 12..14);
        view.push_literal(b"cd", 14);
        assert_eq!(view.text(), b"ab\"cd");
        assert_eq!(view.origin(1..2), 11..12);
        assert_eq!(view.origin(1..3), 11..14);
        assert_eq!(view.origin(2..4), 12..15);
        assert_eq!(view.origin(0..5), 10..16);
    }
}
