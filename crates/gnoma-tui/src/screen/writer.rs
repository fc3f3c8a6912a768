//! The cursor and the pen while a frame is painted. Rows count from the top of what is painted; the
//! writer never needs to know where that is on the terminal.

use super::cells::{self, CellPiece};
use crate::{
    paint::{self, Pen},
    text::Line,
    theme::Theme,
};

/// More rows down than this are crossed in one sequence instead of line feeds.
const MAX_LINE_FEEDS: usize = 3;

/// The position of the terminal's cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CursorSpot {
    /// Rows below the top of what is painted.
    pub(super) row: usize,
    /// The column of the cursor; `None` where terminals differ: at first, and after the last column.
    pub(super) column: Option<usize>,
}

/// A writer for the rows of a frame.
pub(super) struct RowWriter<'a> {
    out: &'a mut Vec<u8>,
    pen: Pen<'a>,
    width: usize,
    spot: CursorSpot,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(
        theme: &'a Theme,
        width: usize,
        spot: CursorSpot,
        out: &'a mut Vec<u8>,
    ) -> Self {
        Self { out, pen: Pen::new(theme), width, spot }
    }

    /// Returns the position that the cursor has come to.
    pub(super) fn spot(&self) -> CursorSpot {
        self.spot
    }

    /// To a cell of a row that exists.
    pub(super) fn move_to(&mut self, row: usize, column: usize) {
        if row != self.spot.row {
            self.pen.reset_style(self.out);
        }
        match row.checked_sub(self.spot.row) {
            Some(down @ 0..=MAX_LINE_FEEDS) => self.out.extend(std::iter::repeat_n(b'\n', down)),
            Some(down) => self.write_sequence(down, 'B'),
            None => self.write_sequence(self.spot.row - row, 'A'),
        }
        self.spot.row = row;
        self.advance_column(column);
    }

    fn advance_column(&mut self, column: usize) {
        match self.spot.column {
            Some(here) if here == column => {}
            Some(here) if here == column + 1 => self.out.push(b'\x08'),
            _ if column == 0 => self.out.push(b'\r'),
            _ => self.write_sequence(column + 1, 'G'),
        }
        self.spot.column = Some(column);
    }

    /// Makes `count` rows below `last`, the last one there is; what stands at the very top of the
    /// terminal moves into its scrollback.
    pub(super) fn add_rows(&mut self, last: usize, count: usize) {
        self.move_to(last, 0);
        self.out.extend(std::iter::repeat_n(b'\n', count));
        self.spot.row += count;
    }

    /// Moves the row and those below it down, and what falls off the end is lost.
    pub(super) fn insert_rows(&mut self, row: usize, count: usize) {
        self.move_to(row, 0);
        self.write_sequence(count, 'L');
    }

    /// Takes rows out and moves those below up.
    pub(super) fn delete_rows(&mut self, row: usize, count: usize) {
        self.move_to(row, 0);
        self.write_sequence(count, 'M');
    }

    /// Clears the row and everything below.
    pub(super) fn clear_from(&mut self, row: usize) {
        self.move_to(row, 0);
        self.out.extend_from_slice(b"\x1b[J");
    }

    /// Clears all that is painted. Not from the first row to the end in one go: where that is the whole
    /// screen, multiplexers take it for a page that is full and keep it.
    pub(super) fn clear_all(&mut self, has_more_rows: bool) {
        self.move_to(0, 0);
        self.out.extend_from_slice(b"\x1b[2K");
        if has_more_rows {
            self.out.extend_from_slice(b"\x1b[B\x1b[J\x1b[A");
        }
    }

    /// Makes a row of `old` one of `new`.
    pub(super) fn change_row(&mut self, row: usize, old: &Line, new: &Line) {
        let (old, new) = (cells::line_pieces(old, self.width), cells::line_pieces(new, self.width));
        for run in cells::changed_runs(&old, &new) {
            self.paint_run(row, run);
        }
        let end = cells::end_of(&new);
        if end < cells::end_of(&old) {
            self.move_to(row, end);
            self.pen.reset_style(self.out);
            self.out.extend_from_slice(b"\x1b[K");
        }
        self.pen.reset_style(self.out);
    }

    fn paint_run(&mut self, row: usize, run: &[CellPiece]) {
        for piece in run {
            self.move_to(row, piece.column);
            self.pen.apply_style(piece.span, self.out);
            let after = piece.column + piece.width;
            if piece.is_doubtful() {
                // Where the terminal takes another width, the columns around still come out right.
                self.write_sequence(piece.width, 'X');
                paint::paint_text(piece.text, self.out);
                self.spot.column = None;
                if after < self.width {
                    self.advance_column(after);
                }
            } else {
                paint::paint_text(piece.text, self.out);
                self.spot.column = (after < self.width).then_some(after);
            }
        }
    }

    fn write_sequence(&mut self, number: usize, end: char) {
        let text = if number == 1 { format!("\x1b[{end}") } else { format!("\x1b[{number}{end}") };
        self.out.extend_from_slice(text.as_bytes());
    }
}
