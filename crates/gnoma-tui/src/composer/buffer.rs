//! Text as lines, changed at one place at a time, with what undoing a change needs. A change costs the lines that
//! it touches. Chips are single characters in the text.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// A place between two graphemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BufferPosition {
    /// The number of the line, from 0.
    pub(super) line: usize,
    /// Bytes of the line before the place; always on the border of a grapheme.
    pub(super) byte: usize,
}

/// The lines of a text; never none.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    lines: Vec<String>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { lines: vec![String::new()] }
    }
}

impl Buffer {
    pub(super) fn line(&self, index: usize) -> &str {
        self.lines.get(index).map_or("", String::as_str)
    }

    pub(super) fn last_line(&self) -> usize {
        self.lines.len().saturating_sub(1)
    }

    pub(super) fn end(&self) -> BufferPosition {
        let line = self.last_line();
        BufferPosition { line, byte: self.line(line).len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end() == BufferPosition::default()
    }

    /// The text between two places.
    pub(super) fn slice(&self, range: Range<BufferPosition>) -> String {
        let Range { start, end } = range;
        if start.line == end.line {
            return self.line(start.line).get(start.byte..end.byte).unwrap_or_default().to_owned();
        }
        let mut text = self.line(start.line).get(start.byte..).unwrap_or_default().to_owned();
        for line in start.line + 1..end.line {
            text.push('\n');
            text.push_str(self.line(line));
        }
        text.push('\n');
        text.push_str(self.line(end.line).get(..end.byte).unwrap_or_default());
        text
    }

    /// Puts `text` where the range was; returns what stood there and where the new text ends.
    pub(super) fn replace(
        &mut self,
        range: Range<BufferPosition>,
        text: &str,
    ) -> (String, BufferPosition) {
        let removed = self.slice(range.clone());
        let Range { start, end } = range;
        if start.line == end.line && !text.contains('\n') {
            if let Some(line) = self.lines.get_mut(start.line) {
                line.replace_range(start.byte..end.byte, text);
            }
        } else {
            let head = self.line(start.line).get(..start.byte).unwrap_or_default();
            let tail = self.line(end.line).get(end.byte..).unwrap_or_default();
            let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
            if let Some(first) = lines.first_mut() {
                first.insert_str(0, head);
            }
            if let Some(last) = lines.last_mut() {
                last.push_str(tail);
            }
            self.lines.splice(start.line..=end.line, lines);
        }
        (removed, position_after(start, text))
    }

    /// The nearest border of a grapheme that is not left of the place.
    pub(super) fn snap_to_grapheme(&self, at: BufferPosition) -> BufferPosition {
        let line = at.line.min(self.last_line());
        let text = self.line(line);
        let byte = text.floor_char_boundary(at.byte.min(text.len()));
        let mut cursor = GraphemeCursor::new(byte, text.len(), true);
        if cursor.is_boundary(text, 0).unwrap_or(true) {
            return BufferPosition { line, byte };
        }
        BufferPosition {
            line,
            byte: cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
        }
    }

    /// The grapheme before a place in its line.
    pub(super) fn grapheme_before(&self, at: BufferPosition) -> Option<&str> {
        self.line(at.line).get(..at.byte)?.graphemes(true).next_back()
    }

    /// The grapheme after a place in its line.
    pub(super) fn grapheme_after(&self, at: BufferPosition) -> Option<&str> {
        self.line(at.line).get(at.byte..)?.graphemes(true).next()
    }

    /// One grapheme or line break to the left.
    pub(super) fn step_left(&self, at: BufferPosition) -> Option<BufferPosition> {
        if let Some(grapheme) = self.grapheme_before(at) {
            return Some(BufferPosition { byte: at.byte - grapheme.len(), ..at });
        }
        let line = at.line.checked_sub(1)?;
        Some(BufferPosition { line, byte: self.line(line).len() })
    }

    /// One grapheme or line break to the right.
    pub(super) fn step_right(&self, at: BufferPosition) -> Option<BufferPosition> {
        if let Some(grapheme) = self.grapheme_after(at) {
            return Some(BufferPosition { byte: at.byte + grapheme.len(), ..at });
        }
        (at.line < self.last_line()).then_some(BufferPosition { line: at.line + 1, byte: 0 })
    }
}

/// Returns the place where a text ends that begins at a place.
pub(super) fn position_after(start: BufferPosition, text: &str) -> BufferPosition {
    match text.rfind('\n') {
        None => BufferPosition { byte: start.byte + text.len(), ..start },
        Some(last) => BufferPosition {
            line: start.line + text.matches('\n').count(),
            byte: text.len() - last - 1,
        },
    }
}
