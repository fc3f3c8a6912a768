//! Vim's normal mode over the same text: motions, operators with motions, counts. The key map defines their keys;
//! registers, visual mode and the command line are left out.

use std::ops::Range;

use super::{
    Composer, KeyOutcome, LastEdit,
    buffer::BufferPosition,
    kills::Side,
    mode::{Mode, Operator, Vim},
    motion,
    undo::EditKind,
};
use crate::keymap::{Action, Code, Context, Key, Keymap};

/// The highest count that is taken.
const MAX_COUNT: usize = 999;

/// The place to which a motion leads.
struct Motion {
    to: BufferPosition,
    /// `true` if the motion means whole lines.
    lines: bool,
}

impl Composer {
    /// Switches vim's keys on, in insert mode, or off.
    pub fn set_vim(&mut self, on: bool) {
        self.vim = on.then(Vim::default);
    }

    /// The mode of vim's keys; `None` when they are off.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        self.vim.map(|vim| vim.mode)
    }

    pub(super) fn enter_normal(&mut self) -> KeyOutcome {
        self.vim = Some(Vim { mode: Mode::Normal, ..Vim::default() });
        if self.cursor.byte > 0 {
            self.cursor = self.to_left();
        }
        self.undo.close_step();
        KeyOutcome::Moved
    }

    pub(super) fn press_normal(&mut self, key: Key, keymap: &Keymap) -> KeyOutcome {
        let vim = self.vim.unwrap_or_default();
        if key == Key::plain(Code::Escape) && (vim.pending.is_some() || vim.count > 0) {
            self.vim = Some(Vim { pending: None, count: 0, ..vim });
            return KeyOutcome::Moved;
        }
        if let Some(digit) = count_digit(key, vim.count > 0) {
            let count = (vim.count * 10 + digit).min(MAX_COUNT);
            self.vim = Some(Vim { count, ..vim });
            return KeyOutcome::Moved;
        }
        let Some(action) = keymap.action_here(Context::Normal, key) else {
            return self.press_elsewhere(key, keymap, vim);
        };
        self.vim = Some(Vim { pending: None, count: 0, ..vim });
        if !matches!(action, Action::Up | Action::Down) {
            self.last = LastEdit::Other;
        }
        self.undo.begin_group();
        let pressed = match (to_operator(action), vim.pending) {
            (Some(operator), Some(pending)) if operator == pending => {
                let last = (self.cursor.line + vim.count.max(1) - 1).min(self.buffer.last_line());
                self.operate_on_lines(operator, self.cursor.line..last)
            }
            (Some(operator), _) => {
                self.vim = Some(Vim { pending: Some(operator), ..vim });
                KeyOutcome::Moved
            }
            (None, Some(pending)) => self.apply_operator(pending, action, vim.count.max(1)),
            (None, None) => self.apply_normal_action(action, vim.count.max(1)),
        };
        self.undo.end_group();
        self.stay_on_text();
        pressed
    }

    /// In normal mode the cursor is on a character, not after the last one.
    pub(super) fn stay_on_text(&mut self) {
        let behind_last = self.buffer.grapheme_after(self.cursor).is_none();
        if self.mode() == Some(Mode::Normal) && behind_last && self.cursor.byte > 0 {
            self.cursor = self.to_left();
        }
    }

    /// Keys that normal mode has no name for: letters mean nothing, the others are as ever.
    fn press_elsewhere(&mut self, key: Key, keymap: &Keymap, vim: Vim) -> KeyOutcome {
        self.vim = Some(Vim { pending: None, count: 0, ..vim });
        if key.typed_char().is_some() {
            return KeyOutcome::Moved;
        }
        let pressed = match keymap.action(Context::Composer, key) {
            Some(action) => self.apply_action(action),
            None => KeyOutcome::Ignored,
        };
        self.stay_on_text();
        pressed
    }

    fn apply_normal_action(&mut self, action: Action, count: usize) -> KeyOutcome {
        match action {
            Action::Up | Action::Down | Action::Undo | Action::Redo => {
                self.repeat_action(action, count)
            }
            Action::Insert => self.write_at(self.cursor),
            Action::InsertAtLineStart => {
                self.write_at(motion::text_of_line(&self.buffer, self.cursor.line))
            }
            Action::Append => self.write_at(self.right_in_line(self.cursor)),
            Action::AppendAtLineEnd => self.write_at(self.end_of_line()),
            Action::OpenBelow => {
                self.write_at(self.end_of_line());
                self.edit_range(EditKind::Other, self.cursor..self.cursor, "\n")
            }
            Action::OpenAbove => {
                let start = BufferPosition { byte: 0, ..self.cursor };
                self.edit_range(EditKind::Other, start..start, "\n");
                self.write_at(start);
                KeyOutcome::Changed
            }
            Action::DeleteRight => self.apply_operator(Operator::Delete, Action::Right, count),
            Action::DeleteLeft => self.apply_operator(Operator::Delete, Action::Left, count),
            Action::DeleteToLineEnd => self.apply_operator(Operator::Delete, Action::LineEnd, 1),
            Action::ChangeToLineEnd => self.apply_operator(Operator::Change, Action::LineEnd, 1),
            Action::Put | Action::PutBefore => {
                self.paste_deleted(action == Action::PutBefore, count)
            }
            other => match self.resolve_motion(other, count) {
                Some(motion) => {
                    let to = motion.to;
                    // `e` stands on the last character, not behind it.
                    self.move_cursor(to);
                    if other == Action::WordEnd && to.byte > 0 {
                        self.cursor = self.to_left();
                    }
                    KeyOutcome::Moved
                }
                None => self.apply_action(other),
            },
        }
    }

    fn repeat_action(&mut self, action: Action, count: usize) -> KeyOutcome {
        let mut pressed = KeyOutcome::Moved;
        for _ in 0..count {
            pressed = self.apply_action(action);
            if matches!(pressed, KeyOutcome::Wanted(_)) {
                break;
            }
        }
        pressed
    }

    fn write_at(&mut self, at: BufferPosition) -> KeyOutcome {
        self.vim = Some(Vim::default());
        self.last = LastEdit::Other;
        self.cursor = at;
        KeyOutcome::Moved
    }

    fn resolve_motion(&self, action: Action, count: usize) -> Option<Motion> {
        let mut to = self.cursor;
        let mut lines = false;
        for _ in 0..count {
            let before = to;
            to = match action {
                Action::Left if to.byte > 0 => self.buffer.step_left(to).unwrap_or(to),
                Action::Left => to,
                Action::Right => self.right_in_line(to),
                Action::WordRight => motion::next_start(&self.buffer, to),
                Action::WordLeft => motion::start_before(&self.buffer, to),
                Action::WordEnd => motion::end_after(&self.buffer, to),
                Action::LineStart => BufferPosition { byte: 0, ..to },
                Action::LineTextStart => motion::text_of_line(&self.buffer, to.line),
                Action::LineEnd => self.end_of_line(),
                Action::TextStart => BufferPosition::default(),
                Action::TextEnd => self.buffer.end(),
                Action::Up => BufferPosition { line: to.line.saturating_sub(1), byte: 0 },
                Action::Down => {
                    BufferPosition { line: (to.line + 1).min(self.buffer.last_line()), byte: 0 }
                }
                _ => return None,
            };
            lines =
                matches!(action, Action::Up | Action::Down | Action::TextStart | Action::TextEnd);
            if to == before {
                break;
            }
        }
        Some(Motion { to, lines })
    }

    fn apply_operator(&mut self, operator: Operator, action: Action, count: usize) -> KeyOutcome {
        let on_text = self.buffer.grapheme_after(self.cursor).is_some_and(|g| g.trim() == g);
        // `cw` changes the word and leaves the spaces behind it.
        let is_change_of_word =
            operator == Operator::Change && action == Action::WordRight && on_text;
        let Some(motion) = self.resolve_motion(action, count) else { return KeyOutcome::Moved };
        if motion.lines {
            let (first, last) = (self.cursor.line, motion.to.line);
            return self.operate_on_lines(operator, first.min(last)..first.max(last));
        }
        let mut to = motion.to;
        if is_change_of_word {
            to = self.without_spaces(to);
        } else if action == Action::WordRight && to.line > self.cursor.line {
            // The last word of a line is deleted without the line break.
            to = self.end_of_line();
        }
        let range = self.cursor.min(to)..self.cursor.max(to);
        self.operate_on(operator, range)
    }

    /// The place with the spaces between it and the cursor taken off.
    fn without_spaces(&self, to: BufferPosition) -> BufferPosition {
        let mut end = to;
        while end > self.cursor {
            let is_space = match self.buffer.grapheme_before(end) {
                Some(grapheme) => grapheme.chars().all(char::is_whitespace),
                None => true,
            };
            if !is_space {
                break;
            }
            end = self.buffer.step_left(end).unwrap_or_default();
        }
        end
    }

    fn operate_on(&mut self, operator: Operator, range: Range<BufferPosition>) -> KeyOutcome {
        let start = range.start;
        if operator == Operator::Copy {
            self.kills.add(self.buffer.slice(range), Side::Right, false);
            self.cursor = start;
            return KeyOutcome::Moved;
        }
        let pressed = self.kill_range(LastEdit::Other, range);
        self.last = LastEdit::Other;
        if operator == Operator::Change {
            self.write_at(start);
        }
        pressed
    }

    /// Both ends are lines that belong to it.
    fn operate_on_lines(&mut self, operator: Operator, lines: Range<usize>) -> KeyOutcome {
        let start = BufferPosition { line: lines.start, byte: 0 };
        let end = BufferPosition { line: lines.end, byte: self.buffer.line(lines.end).len() };
        self.kills.add(self.buffer.slice(start..end) + "\n", Side::Right, false);
        match operator {
            Operator::Copy => {
                self.cursor = start;
                return KeyOutcome::Moved;
            }
            Operator::Change => {
                self.edit_range(EditKind::Other, start..end, "");
                self.write_at(start);
            }
            Operator::Delete => {
                // With the line break behind it, or the one before where it is the last.
                let (start, end) = match (self.buffer.step_right(end), self.buffer.step_left(start))
                {
                    (Some(next), _) => (start, next),
                    (None, Some(before)) => (before, end),
                    (None, None) => (start, end),
                };
                self.edit_range(EditKind::Other, start..end, "");
                let line = lines.start.min(self.buffer.last_line());
                self.cursor = motion::text_of_line(&self.buffer, line);
            }
        }
        KeyOutcome::Changed
    }

    /// Inserts what was deleted last; whole lines go above or below the line.
    fn paste_deleted(&mut self, before: bool, count: usize) -> KeyOutcome {
        let Some(text) = self.kills.newest().map(|text| text.repeat(count)) else {
            return KeyOutcome::Moved;
        };
        let Some(lines) = text.strip_suffix('\n') else {
            let at = if before { self.cursor } else { self.right_in_line(self.cursor) };
            self.edit_range(EditKind::Other, at..at, &text);
            self.cursor = self.to_left();
            return KeyOutcome::Changed;
        };
        let line = if before { self.cursor.line } else { self.cursor.line + 1 };
        if before {
            let at = BufferPosition { byte: 0, ..self.cursor };
            self.edit_range(EditKind::Other, at..at, &text);
        } else {
            let at = self.end_of_line();
            self.edit_range(EditKind::Other, at..at, &format!("\n{lines}"));
        }
        self.cursor = motion::text_of_line(&self.buffer, line);
        KeyOutcome::Changed
    }

    fn right_in_line(&self, at: BufferPosition) -> BufferPosition {
        let behind = self.buffer.grapheme_after(at).map_or(0, str::len);
        BufferPosition { byte: at.byte + behind, ..at }
    }

    fn end_of_line(&self) -> BufferPosition {
        BufferPosition { byte: self.current_line().len(), ..self.cursor }
    }
}

fn to_operator(action: Action) -> Option<Operator> {
    match action {
        Action::Delete => Some(Operator::Delete),
        Action::Change => Some(Operator::Change),
        Action::Copy => Some(Operator::Copy),
        _ => None,
    }
}

/// The digit of a count; 0 is one only behind another.
fn count_digit(key: Key, is_counting: bool) -> Option<usize> {
    let digit = key.typed_char()?.to_digit(10)?;
    (digit > 0 || is_counting).then(|| usize::try_from(digit).ok()).flatten()
}
