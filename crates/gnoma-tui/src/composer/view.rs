//! How the text looks: rows of the screen around the cursor, and moves from row to row.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::{
    Composer,
    buffer::BufferPosition,
    layout::{Layout, ScreenRow, ShownGrapheme, row_of},
};
use crate::{
    frame::Cell,
    text::{Line, Span, Style, TextRole, display_width},
};

impl Composer {
    /// All rows of the text in a width, and the cell of the cursor in them.
    pub fn render_lines(&mut self, width: usize) -> (Vec<Line>, Cell) {
        self.render_window(width, usize::MAX)
    }

    /// At most so many rows of the text around the cursor, and the cell of the cursor in them. It
    /// costs what is seen, and scrolls only as far as it must.
    pub fn render_window(&mut self, width: usize, max_rows: usize) -> (Vec<Line>, Cell) {
        self.width = width;
        let max_rows = max_rows.max(1);
        let cursor = self.cursor_row();
        let lowest = self.rows_up(cursor, max_rows - 1);
        let top = self.clamp_row(self.top).clamp(lowest, cursor);
        let missing = max_rows.saturating_sub(self.rows_down(top, max_rows));
        self.top = self.rows_up(top, missing);
        self.rows_from(self.top, max_rows, cursor)
    }

    /// The column of the cursor in its row.
    pub(super) fn screen_column(&self) -> usize {
        let layout = self.layout();
        let rows = layout.rows(self.current_line());
        let row = rows.get(row_of(&rows, self.cursor.byte)).cloned().unwrap_or_default();
        layout.column_of(self.current_line(), &row, self.cursor.byte)
    }

    /// The place in the row above or below that is nearest to a column.
    pub(super) fn row_beside(&self, down: bool, column: usize) -> Option<BufferPosition> {
        let layout = self.layout();
        let here = self.cursor_row();
        let beside = if down { self.row_below(here) } else { self.row_above(here) }?;
        let line = self.buffer.line(beside.line);
        let rows = layout.rows(line);
        let is_last = beside.row + 1 == rows.len();
        let byte = layout.byte_at(line, rows.get(beside.row)?, column, is_last);
        Some(BufferPosition { line: beside.line, byte })
    }

    fn layout(&self) -> Layout<'_> {
        Layout::new(self.width, &self.chips)
    }

    fn rows_of(&self, line: usize) -> Vec<Range<usize>> {
        self.layout().rows(self.buffer.line(line))
    }

    fn cursor_row(&self) -> ScreenRow {
        let row = row_of(&self.rows_of(self.cursor.line), self.cursor.byte);
        ScreenRow { line: self.cursor.line, row }
    }

    /// The row, or the nearest that there is since the text or the width changed.
    fn clamp_row(&self, top: ScreenRow) -> ScreenRow {
        let line = top.line.min(self.buffer.last_line());
        ScreenRow { line, row: top.row.min(self.rows_of(line).len() - 1) }
    }

    fn row_above(&self, from: ScreenRow) -> Option<ScreenRow> {
        if let Some(row) = from.row.checked_sub(1) {
            return Some(ScreenRow { row, ..from });
        }
        let line = from.line.checked_sub(1)?;
        Some(ScreenRow { line, row: self.rows_of(line).len() - 1 })
    }

    fn row_below(&self, from: ScreenRow) -> Option<ScreenRow> {
        if from.row + 1 < self.rows_of(from.line).len() {
            return Some(ScreenRow { row: from.row + 1, ..from });
        }
        (from.line < self.buffer.last_line()).then_some(ScreenRow { line: from.line + 1, row: 0 })
    }

    /// So many rows further up, as far as there are any.
    fn rows_up(&self, from: ScreenRow, count: usize) -> ScreenRow {
        let mut top = from;
        let mut left = count;
        while left > 0 {
            if top.row >= left {
                return ScreenRow { row: top.row - left, ..top };
            }
            left -= top.row;
            let Some(above) = self.row_above(ScreenRow { row: 0, ..top }) else {
                return ScreenRow { row: 0, ..top };
            };
            top = above;
            left -= 1;
        }
        top
    }

    /// Returns the number of rows from a row on, counted up to `max`.
    fn rows_down(&self, from: ScreenRow, max: usize) -> usize {
        let mut count = 0;
        for line in from.line..=self.buffer.last_line() {
            let skipped = if line == from.line { from.row } else { 0 };
            count += self.rows_of(line).len() - skipped;
            if count >= max {
                return max;
            }
        }
        count
    }

    fn rows_from(&self, top: ScreenRow, max_rows: usize, cursor: ScreenRow) -> (Vec<Line>, Cell) {
        let mut lines = Vec::new();
        let mut cell = Cell::default();
        for line in top.line..=self.buffer.last_line() {
            let skipped = if line == top.line { top.row } else { 0 };
            for (row, range) in self.rows_of(line).iter().enumerate().skip(skipped) {
                if lines.len() == max_rows {
                    return (lines, cell);
                }
                if (ScreenRow { line, row }) == cursor {
                    let text = self.current_line();
                    let column = self.layout().column_of(text, range, self.cursor.byte);
                    cell = Cell { row: lines.len(), column };
                }
                lines.push(self.render_row(line, range));
            }
        }
        (lines, cell)
    }

    fn render_row(&self, line: usize, row: &Range<usize>) -> Line {
        let layout = self.layout();
        let room = self.width.saturating_sub(1).max(1);
        let mut spans = Vec::new();
        let (mut plain, mut used) = (String::new(), 0);
        let text = self.buffer.line(line).get(row.clone()).unwrap_or_default();
        for grapheme in text.graphemes(true) {
            let shown = layout.display_grapheme(grapheme);
            let columns = display_width(shown.text());
            if used > 0 && used + columns > room {
                // The space that hangs over the edge.
                break;
            }
            used += columns;
            match shown {
                ShownGrapheme::Plain(text) => plain.push_str(&text),
                ShownGrapheme::Chip(label) => {
                    if !plain.is_empty() {
                        spans.push(Span::new(std::mem::take(&mut plain), Style::default()));
                    }
                    spans.push(Span::new(label.into_owned(), Style::with_ink(TextRole::Accent)));
                }
            }
        }
        if !plain.is_empty() {
            spans.push(Span::new(plain, Style::default()));
        }
        Line { spans }
    }
}
