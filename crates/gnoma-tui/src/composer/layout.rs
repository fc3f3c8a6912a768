//! One line of the text as rows of the screen. Rows are broken after spaces if possible, else between graphemes.
//! One column at the end of every row is reserved for the cursor.

use std::{borrow::Cow, ops::Range};

use unicode_segmentation::UnicodeSegmentation;

use super::chips::Chips;
use crate::text::{display_width, is_harmful};

/// Columns that a tab takes.
const TAB: usize = 4;

/// The form in which a grapheme is shown.
pub(super) enum ShownGrapheme<'a> {
    /// As it is, with replacements for control characters.
    Plain(Cow<'a, str>),
    /// As the label of a chip.
    Chip(Cow<'a, str>),
}

impl ShownGrapheme<'_> {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Chip(text) => text,
        }
    }

    fn columns(&self) -> usize {
        display_width(self.text())
    }
}

/// A row of the screen: a line of the text and a row of that line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScreenRow {
    pub(super) line: usize,
    pub(super) row: usize,
}

/// The layout of a text in a width.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    chips: &'a Chips,
    /// Columns of a row that text may take.
    room: usize,
}

impl<'a> Layout<'a> {
    pub(super) fn new(width: usize, chips: &'a Chips) -> Self {
        Self { chips, room: width.saturating_sub(1).max(1) }
    }

    /// Returns the visible form of a grapheme.
    pub(super) fn display_grapheme<'b>(self, grapheme: &'b str) -> ShownGrapheme<'b>
    where
        'a: 'b,
    {
        if let [b' '..=b'~'] = grapheme.as_bytes() {
            return ShownGrapheme::Plain(grapheme.into());
        }
        if let Some(label) = grapheme.chars().find_map(|c| self.chips.label(c)) {
            return ShownGrapheme::Chip(truncate_label(label, self.room));
        }
        if grapheme == "\t" {
            return ShownGrapheme::Plain(" ".repeat(TAB.min(self.room)).into());
        }
        if grapheme.chars().any(is_harmful) {
            return ShownGrapheme::Plain(grapheme.chars().map(control_picture).collect());
        }
        // Long chains of joined emoji are one grapheme, which could not be broken.
        if display_width(grapheme) > self.room + 1 {
            return ShownGrapheme::Plain("\u{fffd}".into());
        }
        ShownGrapheme::Plain(grapheme.into())
    }

    /// The rows of a line, as ranges of its bytes; never none. A place on the border of two rows
    /// belongs to the second.
    pub(super) fn rows(self, line: &str) -> Vec<Range<usize>> {
        let mut rows = Vec::new();
        let (mut start, mut used) = (0, 0);
        // Where the row can be broken, and what is used up to there.
        let mut gap: Option<(usize, usize)> = None;
        for (byte, grapheme) in line.grapheme_indices(true) {
            let columns = self.display_grapheme(grapheme).columns();
            let end = byte + grapheme.len();
            let is_space = grapheme.chars().all(char::is_whitespace);
            if used + columns > self.room && byte > start {
                if is_space {
                    // A space that does not fit hangs over the edge and is not seen.
                    rows.push(start..end);
                    (start, used, gap) = (end, 0, None);
                    continue;
                }
                let (border, before) = gap.take().unwrap_or((byte, used));
                rows.push(start..border);
                start = border;
                used -= before;
            }
            // What was taken along may fill the row already.
            if used + columns > self.room && byte > start {
                rows.push(start..byte);
                (start, used) = (byte, 0);
            }
            used += columns;
            if is_space {
                gap = Some((end, used));
            }
        }
        rows.push(start..line.len());
        rows
    }

    /// Columns of the row before a place of the line.
    pub(super) fn column_of(self, line: &str, row: &Range<usize>, byte: usize) -> usize {
        let before = line.get(row.start..byte).unwrap_or_default();
        before.graphemes(true).map(|grapheme| self.display_grapheme(grapheme).columns()).sum()
    }

    /// The place of the row that is nearest to a column without being right of it. Except in the
    /// last row the end is not a place of the row.
    pub(super) fn byte_at(
        self,
        line: &str,
        row: &Range<usize>,
        column: usize,
        is_last: bool,
    ) -> usize {
        let (mut byte, mut used) = (row.start, 0);
        for grapheme in line.get(row.clone()).unwrap_or_default().graphemes(true) {
            used += self.display_grapheme(grapheme).columns();
            let is_end = byte + grapheme.len() == row.end;
            if used > column || (is_end && !is_last) {
                break;
            }
            byte += grapheme.len();
        }
        byte
    }
}

/// The row that a place of the line is in.
pub(super) fn row_of(rows: &[Range<usize>], byte: usize) -> usize {
    rows.iter().rposition(|row| row.start <= byte).unwrap_or(0)
}

/// As much of a label as fits.
fn truncate_label(label: &str, room: usize) -> Cow<'_, str> {
    if display_width(label) <= room {
        return label.into();
    }
    let mut kept = String::new();
    for grapheme in label.graphemes(true) {
        if display_width(&kept) + display_width(grapheme) + 1 > room {
            break;
        }
        kept.push_str(grapheme);
    }
    kept.push('…');
    kept.into()
}

/// The picture that Unicode has for a control character, or the sign for what has none.
fn control_picture(c: char) -> char {
    match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        c if is_harmful(c) => '\u{fffd}',
        c => c,
    }
}
