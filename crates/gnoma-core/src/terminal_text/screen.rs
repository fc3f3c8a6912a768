//! The lines that the cursor can come back to, and the cursor. Nothing here is passed on.

use std::collections::VecDeque;

use super::row::{byte_of, overwrite_row, row_width};

/// Rows of a screen on which a program puts text at a row of its own.
pub(super) const SCREEN_ROWS: usize = 60;
/// Farthest column that the cursor is moved to.
pub(super) const MAX_COLUMN: usize = 2000;

/// Lines and a cursor.
#[derive(Clone, Debug)]
pub(super) struct Screen {
    /// The last lines, oldest first; never empty.
    pub(super) rows: VecDeque<String>,
    /// The row of the cursor, which need not be there yet, and its column in characters.
    pub(super) row: usize,
    pub(super) column: usize,
    /// The cursor stands behind the last character of its row.
    pub(super) is_at_end: bool,
    /// The cursor was moved to the first character, where a screen begins.
    pub(super) is_home: bool,
    pub(super) saved: (usize, usize),
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            rows: VecDeque::from([String::new()]),
            row: 0,
            column: 0,
            is_at_end: true,
            is_home: false,
            saved: (0, 0),
        }
    }
}

impl Screen {
    /// True if the cursor is on a row on which nothing was written.
    pub(super) fn is_on_unwritten_row(&self) -> bool {
        self.row >= self.rows.len()
    }

    /// Begins the rows down to the cursor.
    pub(super) fn fill_rows(&mut self) {
        if self.is_on_unwritten_row() {
            self.rows.resize(self.row + 1, String::new());
            self.move_to(self.row, self.column);
        }
    }

    /// Takes the first row.
    pub(super) fn pop_first(&mut self) -> Option<String> {
        self.row = self.row.saturating_sub(1);
        self.saved.0 = self.saved.0.saturating_sub(1);
        self.rows.pop_front()
    }

    /// Erases from the cursor on, or from the first row to it.
    pub(super) fn erase_rows(&mut self, is_before: bool) {
        if is_before {
            for row in self.rows.iter_mut().take(self.row) {
                row.clear();
            }
            self.erase_in_row(1);
        } else if !self.is_on_unwritten_row() {
            self.erase_in_row(0);
            self.rows.truncate(self.row + 1);
        }
    }

    /// Moves within the lines that there are.
    pub(super) fn move_to(&mut self, row: usize, column: usize) {
        self.move_to_screen_row(row.min(self.rows.len().saturating_sub(1)), column);
    }

    /// Moves to a row of the screen, which begins to be there when something is written on it.
    pub(super) fn move_to_screen_row(&mut self, row: usize, column: usize) {
        self.row = row.min(self.rows.len().max(SCREEN_ROWS) - 1);
        self.is_home = false;
        self.column = column.min(MAX_COLUMN.max(self.column));
        let column = self.column;
        self.edit_row(|row| if column == 0 { row.is_empty() } else { column == row_width(row) });
    }

    /// Changes the row of the cursor; `edit` says whether the cursor is behind its last character then.
    pub(super) fn edit_row(&mut self, edit: impl FnOnce(&mut String) -> bool) {
        if let Some(row) = self.rows.get_mut(self.row) {
            self.is_at_end = edit(row);
        }
    }

    /// Puts what takes no place at the cursor.
    pub(super) fn embed_sequence(&mut self, sequence: &str) {
        let (column, is_at_end) = (self.column, self.is_at_end);
        if self.is_on_unwritten_row() {
            // Before what will be written there.
            if let Some(last) = self.rows.back_mut() {
                last.push_str(sequence);
            }
            return;
        }
        self.edit_row(|row| {
            let at = if is_at_end { row.len() } else { byte_of(row, column) };
            row.insert_str(at, sequence);
            is_at_end
        });
    }

    pub(super) fn erase_in_row(&mut self, which: usize) {
        let column = self.column;
        self.edit_row(|row| {
            let at = byte_of(row, column);
            match which {
                0 => row.truncate(at),
                1 => row.replace_range(..at, &" ".repeat(column.min(row_width(row)))),
                _ => row.clear(),
            }
            column == row_width(row)
        });
    }

    pub(super) fn delete_characters(&mut self, count: usize) {
        let column = self.column;
        self.edit_row(|row| {
            let (from, to) = (byte_of(row, column), byte_of(row, column + count));
            row.replace_range(from..to, "");
            column == row_width(row)
        });
    }

    pub(super) fn erase_characters(&mut self, count: usize) {
        let column = self.column;
        self.edit_row(|row| {
            let there = row_width(row).saturating_sub(column).min(count);
            if there > 0 {
                overwrite_row(row, column, &" ".repeat(there));
            }
            column == row_width(row)
        });
    }

    pub(super) fn insert_blanks(&mut self, count: usize) {
        let column = self.column;
        self.edit_row(|row| {
            // A terminal drops what it pushes beyond its last column.
            if column < row_width(row) && row_width(row) < MAX_COLUMN {
                row.insert_str(byte_of(row, column), &" ".repeat(count));
            }
            column == row_width(row)
        });
    }

    pub(super) fn insert_rows(&mut self, count: usize) {
        let row = self.row;
        if self.is_on_unwritten_row() {
            return;
        }
        for _ in 0..count.min(SCREEN_ROWS) {
            self.rows.insert(row, String::new());
        }
        self.move_to(row, 0);
    }

    pub(super) fn delete_rows(&mut self, count: usize) {
        let row = self.row;
        if self.is_on_unwritten_row() {
            return;
        }
        self.rows.drain(row..(row + count).min(self.rows.len()));
        if self.rows.len() <= row {
            self.rows.push_back(String::new());
        }
        self.move_to(row, 0);
    }
}
