//! One line that is entered: an address, or a key that is not shown.

use gnoma_core::Secret;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::{
    keymap::Action,
    picker::truncate_line,
    text::{Line, Span, Style, TextRole},
};

/// Bytes of an entry.
const MAX_BYTES: usize = 4_096;
/// The dots that are shown for a key: that there is one, not how long it is.
const DOTS: &str = "••••••••";

/// A line of text with a cursor. Debugging output does not show the text.
#[derive(Clone, Debug)]
pub(super) struct InputLine {
    text: Secret<String>,
    /// Byte of the text that the cursor stands before.
    cursor: usize,
    is_hidden: bool,
}

impl InputLine {
    /// A line that is shown, with `text` to begin with.
    pub(super) fn with_text(text: &str) -> Self {
        Self { text: Secret::new(text.to_owned()), cursor: text.len(), is_hidden: false }
    }

    /// An empty line that is not shown.
    pub(super) fn new_hidden() -> Self {
        Self { is_hidden: true, ..Self::with_text("") }
    }

    pub(super) fn text(&self) -> &str {
        self.text.expose()
    }

    /// Takes what was typed or pasted; neither keys nor addresses have blanks in them.
    pub(super) fn insert(&mut self, text: &str) {
        let text: String = text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
        if self.text().len() + text.len() <= MAX_BYTES {
            let (before, after) = self.split_at_cursor();
            let cursor = before.len() + text.len();
            self.set(format!("{before}{text}{after}"), cursor);
        }
    }

    /// Does what a key asks for, where it is editing.
    pub(super) fn apply_action(&mut self, action: Action) {
        let (before, after) = self.split_at_cursor();
        let left = before.graphemes(true).next_back().map_or(0, str::len);
        let right = after.graphemes(true).next().map_or(0, str::len);
        match action {
            Action::Left => self.cursor -= left,
            Action::Right => self.cursor += right,
            Action::LineStart | Action::TextStart | Action::First => self.cursor = 0,
            Action::LineEnd | Action::TextEnd | Action::Last => self.cursor = self.text().len(),
            Action::DeleteLeft => self.delete_around(left, 0),
            Action::DeleteRight | Action::DeleteRightOrQuit => self.delete_around(0, right),
            Action::DeleteToLineStart | Action::DeleteWordLeft | Action::DeleteToSpace => {
                self.delete_around(self.cursor, 0);
            }
            Action::DeleteToLineEnd => self.delete_around(0, self.text().len() - self.cursor),
            _ => (),
        }
    }

    /// The line behind its name, and the column of the cursor.
    pub(super) fn render_line(&self, name: &str, width: usize) -> (Line, usize) {
        let (before, after) = if self.is_hidden {
            (if self.text().is_empty() { "" } else { DOTS }, "")
        } else {
            self.split_at_cursor()
        };
        let name = Span::new(format!("{name} › "), Style::with_ink(TextRole::Accent).bold());
        let plain = |text: &str| Span::new(text.to_owned(), Style::default());
        let cursor = Line::from([name.clone(), plain(before)]).width();
        let line = truncate_line(Line::from([name, plain(before), plain(after)]), width);
        (line, cursor.min(width.saturating_sub(1)))
    }

    fn split_at_cursor(&self) -> (&str, &str) {
        self.text().split_at_checked(self.cursor).unwrap_or((self.text(), ""))
    }

    /// Removes bytes on both sides of the cursor.
    fn delete_around(&mut self, left: usize, right: usize) {
        let (before, after) = self.split_at_cursor();
        let before = before.get(..before.len().saturating_sub(left)).unwrap_or(before);
        let after = after.get(right..).unwrap_or(after);
        let cursor = before.len();
        self.set(format!("{before}{after}"), cursor);
    }

    fn set(&mut self, text: String, cursor: usize) {
        self.text = Secret::new(text);
        self.cursor = cursor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_line_edits_at_the_cursor() {
        let mut entry = InputLine::with_text("https://gpu");
        entry.apply_action(Action::LineStart);
        for _ in 0..4 {
            entry.apply_action(Action::Right);
        }
        entry.apply_action(Action::DeleteRight);
        assert_eq!(entry.text(), "http://gpu");
        entry.apply_action(Action::LineEnd);
        entry.insert(":80 00\n");
        assert_eq!(entry.text(), "http://gpu:8000");
        let (line, cursor) = entry.render_line("address", 80);
        assert_eq!((line.plain_text().as_str(), cursor), ("address › http://gpu:8000", 25));
        entry.apply_action(Action::DeleteLeft);
        entry.apply_action(Action::DeleteToLineStart);
        entry.apply_action(Action::DeleteLeft);
        assert_eq!(entry.text(), "");
    }

    #[test]
    fn a_hidden_line_shows_neither_its_text_nor_its_length() {
        let mut entry = InputLine::new_hidden();
        entry.insert("made-up-key");
        let (line, _) = entry.render_line("key", 80);
        assert_eq!(line.plain_text(), format!("key › {DOTS}"));
        assert!(!format!("{entry:?}").contains("made"));
    }
}
