//! A line as cells, and what differs between two of them.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::{Line, Span};

/// Unchanged columns between two changes that are painted again: moving over them costs as much.
const MAX_GAP: usize = 5;

/// One grapheme on its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPiece<'a> {
    /// The first column of the grapheme.
    pub(super) column: usize,
    /// Columns it takes, at least one.
    pub(super) width: usize,
    /// The text of the grapheme.
    pub(super) text: &'a str,
    /// The span that the grapheme is part of.
    pub(super) span: &'a Span,
}

impl CellPiece<'_> {
    fn is_same(&self, other: &Self) -> bool {
        self.column == other.column
            && self.text == other.text
            && self.span.style == other.span.style
            && self.span.link == other.span.link
    }

    /// Terminals disagree about how many columns it takes.
    pub(super) fn is_doubtful(&self) -> bool {
        if self.text.is_ascii() {
            return false;
        }
        let by_characters: usize =
            self.text.chars().map(|c| UnicodeWidthChar::width(c).unwrap_or(0)).sum();
        by_characters != self.width
            || self.text.chars().any(|c| matches!(c, '\u{1f1e6}'..='\u{1f1ff}'))
    }
}

/// The graphemes of a line that fit into `width` columns. What takes no column of its own and has
/// nothing to stand on is left out.
pub(super) fn line_pieces(line: &Line, width: usize) -> Vec<CellPiece<'_>> {
    let mut pieces = Vec::new();
    let mut column = 0;
    for span in &line.spans {
        for text in span.text.graphemes(true) {
            let columns = text.width();
            if column + columns > width {
                return pieces;
            }
            if columns > 0 {
                pieces.push(CellPiece { column, width: columns, text, span });
                column += columns;
            }
        }
    }
    pieces
}

/// Columns that pieces take.
pub(super) fn end_of(pieces: &[CellPiece]) -> usize {
    pieces.last().map_or(0, |last| last.column + last.width)
}

/// The pieces of `new` that must be painted where `old` stands, in runs that are painted in one go.
pub(super) fn changed_runs<'a, 'b>(
    old: &[CellPiece],
    new: &'b [CellPiece<'a>],
) -> Vec<&'b [CellPiece<'a>]> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut old = old.iter().peekable();
    for (place, piece) in new.iter().enumerate() {
        while old.next_if(|other| other.column < piece.column).is_some() {}
        if old.peek().is_some_and(|other| other.is_same(piece)) {
            continue;
        }
        match runs.last_mut() {
            Some((_, end)) if piece.column - column_at(new, *end) <= MAX_GAP => *end = place + 1,
            _ => runs.push((place, place + 1)),
        }
    }
    runs.into_iter().filter_map(|(start, end)| new.get(start..end)).collect()
}

fn column_at(pieces: &[CellPiece], place: usize) -> usize {
    pieces.get(place).map_or_else(|| end_of(pieces), |piece| piece.column)
}

/// About how many bytes a line costs.
pub(super) fn paint_cost(line: &Line) -> usize {
    line.spans.iter().map(|span| span.text.len() + SPAN_BYTES).sum()
}

/// About how many bytes it costs to make `new` of `old`.
pub(super) fn cost_of_change(old: &Line, new: &Line) -> usize {
    let same: usize = old
        .spans
        .iter()
        .zip(&new.spans)
        .take_while(|(old, new)| old.style == new.style && old.link == new.link)
        .map(|(old, new)| common_start(&old.text, &new.text))
        .scan(true, |all, (bytes, whole)| {
            let counted = all.then_some(bytes);
            *all = whole;
            counted
        })
        .sum();
    paint_cost(new).saturating_sub(same)
}

/// Bytes for a change of colour and what it needs to end.
const SPAN_BYTES: usize = 8;

/// Returns the number of bytes that two texts share at their start, and whether these are all.
fn common_start(old: &str, new: &str) -> (usize, bool) {
    let bytes = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    (bytes, bytes == old.len() && bytes == new.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Style;

    fn changed(old: &'static str, new: &'static str) -> Vec<(usize, String)> {
        let old = Line::new(old, Style::default());
        let new = Line::new(new, Style::default());
        let (old, new) = (line_pieces(&old, 40), line_pieces(&new, 40));
        changed_runs(&old, &new)
            .iter()
            .map(|run| (run[0].column, run.iter().map(|piece| piece.text).collect()))
            .collect()
    }

    #[test]
    fn repaint_writes_only_changed_columns_and_joins_short_gaps() {
        assert_eq!(changed("the same", "the same"), []);
        assert_eq!(changed("streamed", "streamed text"), [(8, " text".to_owned())]);
        assert_eq!(changed("1 of 9 done", "2 of 9 done"), [(0, "2".to_owned())]);
        assert_eq!(changed("a234b", "c234d"), [(0, "c234d".to_owned())]);
        assert_eq!(
            changed("a 23456789 b", "c 23456789 d"),
            [(0, "c".to_owned()), (11, "d".to_owned())]
        );
    }

    #[test]
    fn half_of_a_wide_character_is_never_left() {
        assert_eq!(changed("漢ab", "xyab"), [(0, "xy".to_owned())]);
        assert_eq!(changed("xyab", "漢ab"), [(0, "漢".to_owned())]);
        assert_eq!(changed("a漢b", "漢ab"), [(0, "漢a".to_owned())]);
    }

    #[test]
    fn sequences_that_terminals_disagree_about_are_known() {
        let doubtful = |text: &'static str| {
            line_pieces(&Line::new(text, Style::default()), 9)[0].is_doubtful()
        };
        for text in ["👩‍🚀", "❤️", "🇦🇹"] {
            assert!(doubtful(text), "{text}");
        }
        for text in ["a", "ä", "e\u{301}", "漢", "🚀"] {
            assert!(!doubtful(text), "{text}");
        }
    }
}
