//! What the actions of the editor do to text and cursor.

use std::ops::Range;

use super::{
    Composer, KeyOutcome, LastEdit, buffer::BufferPosition, kills::Side, motion, undo::EditKind,
};
use crate::keymap::Action;

impl Composer {
    /// Does an action; what is not editing is handed back.
    pub fn apply_action(&mut self, action: Action) -> KeyOutcome {
        let last = std::mem::take(&mut self.last);
        if let Some(target) = self.move_target(action) {
            return self.move_cursor(target);
        }
        match action {
            Action::Newline => self.edit_range(EditKind::Other, self.cursor..self.cursor, "\n"),
            Action::Send if self.buffer.grapheme_before(self.cursor) == Some("\\") => {
                self.edit_range(EditKind::Other, self.to_left()..self.cursor, "\n")
            }
            Action::Up => self.move_vertically(last, false, Action::HistoryOlder),
            Action::Down => self.move_vertically(last, true, Action::HistoryNewer),
            Action::DeleteLeft => {
                self.edit_range(EditKind::Deleting, self.to_left()..self.cursor, "")
            }
            Action::DeleteRightOrQuit if self.is_empty() => KeyOutcome::Wanted(Action::Quit),
            Action::DeleteRight | Action::DeleteRightOrQuit => {
                let end = self.buffer.step_right(self.cursor).unwrap_or(self.cursor);
                self.edit_range(EditKind::Other, self.cursor..end, "")
            }
            Action::DeleteWordLeft => {
                self.kill_range(last, motion::word_left(&self.buffer, self.cursor)..self.cursor)
            }
            Action::DeleteToSpace => {
                self.kill_range(last, motion::space_left(&self.buffer, self.cursor)..self.cursor)
            }
            Action::DeleteWordRight => {
                self.kill_range(last, self.cursor..motion::word_right(&self.buffer, self.cursor))
            }
            Action::DeleteToLineStart => self.delete_to_line_start(last),
            Action::DeleteToLineEnd => self.delete_to_line_end(last),
            Action::Yank => self.yank(),
            Action::YankOlder => self.yank_older(last),
            Action::Transpose => self.transpose(),
            Action::UppercaseWord => self.change_word(str::to_uppercase),
            Action::LowercaseWord => self.change_word(str::to_lowercase),
            Action::CapitalizeWord => self.change_word(capitalize_word),
            Action::Undo => self.time_travel(true),
            Action::Redo => self.time_travel(false),
            other => KeyOutcome::Wanted(other),
        }
    }

    fn delete_to_line_start(&mut self, last: LastEdit) -> KeyOutcome {
        let start = BufferPosition { byte: 0, ..self.cursor };
        let start = if start == self.cursor { self.to_left() } else { start };
        self.kill_range(last, start..self.cursor)
    }

    fn delete_to_line_end(&mut self, last: LastEdit) -> KeyOutcome {
        let end = BufferPosition { byte: self.current_line().len(), ..self.cursor };
        let next = self.buffer.step_right(self.cursor).unwrap_or(end);
        self.kill_range(last, self.cursor..if end == self.cursor { next } else { end })
    }

    /// Types a character at the cursor.
    pub fn type_char(&mut self, c: char) -> KeyOutcome {
        self.last = LastEdit::Other;
        let text = self.escape_reserved(c.encode_utf8(&mut [0; 4]));
        self.edit_range(EditKind::Typing, self.cursor..self.cursor, &text)
    }

    /// Returns the place to which an action moves the cursor, if it only moves it.
    fn move_target(&self, action: Action) -> Option<BufferPosition> {
        let cursor = self.cursor;
        Some(match action {
            Action::Left => self.to_left(),
            Action::Right => self.buffer.step_right(cursor).unwrap_or(cursor),
            Action::WordLeft => motion::word_left(&self.buffer, cursor),
            Action::WordRight => motion::word_right(&self.buffer, cursor),
            Action::LineStart => BufferPosition { byte: 0, ..cursor },
            Action::LineTextStart => motion::text_of_line(&self.buffer, cursor.line),
            Action::LineEnd => BufferPosition { byte: self.current_line().len(), ..cursor },
            Action::TextStart => BufferPosition::default(),
            Action::TextEnd => self.buffer.end(),
            _ => return None,
        })
    }

    pub(super) fn move_cursor(&mut self, target: BufferPosition) -> KeyOutcome {
        self.undo.close_step();
        self.cursor = target;
        KeyOutcome::Moved
    }

    pub(super) fn to_left(&self) -> BufferPosition {
        self.buffer.step_left(self.cursor).unwrap_or(self.cursor)
    }

    pub(super) fn edit_range(
        &mut self,
        kind: EditKind,
        range: Range<BufferPosition>,
        text: &str,
    ) -> KeyOutcome {
        if range.is_empty() && text.is_empty() {
            return KeyOutcome::Moved;
        }
        self.replace(kind, range, text);
        KeyOutcome::Changed
    }

    /// Deletes a range that begins or ends at the cursor into the ring; right after another such
    /// deletion the two are one.
    pub(super) fn kill_range(
        &mut self,
        last: LastEdit,
        range: Range<BufferPosition>,
    ) -> KeyOutcome {
        if range.is_empty() {
            return KeyOutcome::Moved;
        }
        let side = if range.start < self.cursor { Side::Left } else { Side::Right };
        let text = self.replace(EditKind::Other, range, "");
        self.kills.add(text, side, last == LastEdit::Kill);
        self.last = LastEdit::Kill;
        KeyOutcome::Changed
    }

    fn move_vertically(&mut self, last: LastEdit, down: bool, beyond: Action) -> KeyOutcome {
        let goal = match last {
            LastEdit::Vertical(column) => column,
            LastEdit::Other | LastEdit::Kill | LastEdit::Yank(_) => self.screen_column(),
        };
        match self.row_beside(down, goal) {
            Some(target) => {
                self.last = LastEdit::Vertical(goal);
                self.move_cursor(target)
            }
            None => KeyOutcome::Wanted(beyond),
        }
    }

    fn yank(&mut self) -> KeyOutcome {
        let Some(text) = self.kills.newest().map(str::to_owned) else { return KeyOutcome::Moved };
        let start = self.cursor;
        self.edit_range(EditKind::Other, start..start, &text);
        self.last = LastEdit::Yank(start);
        KeyOutcome::Changed
    }

    fn yank_older(&mut self, last: LastEdit) -> KeyOutcome {
        let LastEdit::Yank(start) = last else { return KeyOutcome::Moved };
        if self.cursor < start {
            return KeyOutcome::Moved;
        }
        self.kills.rotate_ring();
        let text = self.kills.newest().unwrap_or_default().to_owned();
        self.edit_range(EditKind::Other, start..self.cursor, &text);
        self.last = LastEdit::Yank(start);
        KeyOutcome::Changed
    }

    /// Swaps the graphemes around the cursor; at the end of the line the two before it.
    fn transpose(&mut self) -> KeyOutcome {
        let at_end = self.buffer.grapheme_after(self.cursor).is_none();
        let middle = if at_end { self.to_left() } else { self.cursor };
        let before = self.buffer.grapheme_before(middle).unwrap_or_default();
        let behind = self.buffer.grapheme_after(middle).unwrap_or_default();
        if before.is_empty() || behind.is_empty() {
            return KeyOutcome::Moved;
        }
        let start = BufferPosition { byte: middle.byte - before.len(), ..middle };
        let end = BufferPosition { byte: middle.byte + behind.len(), ..middle };
        let swapped = format!("{behind}{before}");
        self.edit_range(EditKind::Other, start..end, &swapped)
    }

    fn change_word(&mut self, change: impl Fn(&str) -> String) -> KeyOutcome {
        let end = motion::word_right(&self.buffer, self.cursor);
        let word = self.buffer.slice(self.cursor..end);
        self.edit_range(EditKind::Other, self.cursor..end, &change(&word))
    }

    fn time_travel(&mut self, back: bool) -> KeyOutcome {
        let moved =
            if back { self.undo.undo(&mut self.buffer) } else { self.undo.redo(&mut self.buffer) };
        let Some(cursor) = moved else { return KeyOutcome::Moved };
        self.cursor = self.buffer.snap_to_grapheme(cursor);
        KeyOutcome::Changed
    }
}

/// The first letter as a capital, the others small.
fn capitalize_word(word: &str) -> String {
    let mut result = String::with_capacity(word.len());
    let mut is_first = true;
    for c in word.chars() {
        if is_first && c.is_alphanumeric() {
            result.extend(c.to_uppercase());
            is_first = false;
        } else {
            result.extend(c.to_lowercase());
        }
    }
    result
}
