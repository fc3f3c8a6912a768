//! What the model shows of its reasoning: dimmed, its end while it thinks, its first line afterwards.

use super::{
    call::Tail,
    folded_items::{Body, FoldedItem, MAX_LINES},
    layout,
    options::TranscriptOptions,
};
use crate::{
    clean,
    text::{Line, Style, TextRole},
};

/// Of longer thinking the beginning is kept.
const MAX_BYTES: usize = 262_144;
/// Rows that are shown while it continues.
const LIVE_ROWS: usize = 3;
/// Columns from which on the key that unfolds is named.
const MIN_KEY_WIDTH: usize = 40;
const MARK: &str = "∴ ";

#[derive(Debug, Default)]
pub(super) struct Thinking {
    text: String,
    tail: Tail,
    /// Lines that are not empty, without the one that is being written.
    lines: usize,
    /// The line that is being written has letters.
    line_has_text: bool,
    over: bool,
}

impl Thinking {
    pub(super) fn push(&mut self, text: &str) {
        let room = MAX_BYTES.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
        self.tail.push(text);
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.lines += usize::from(std::mem::take(&mut self.line_has_text));
            }
            self.line_has_text |= !line.trim().is_empty();
        }
    }

    pub(super) fn mark_finished(&mut self) {
        self.over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn draw(&self, width: usize, options: TranscriptOptions) -> Vec<Line> {
        if self.line_count() == 0 {
            return Vec::new();
        }
        let mark = if options.accessible { "thinking: " } else { MARK };
        if !self.over {
            return self.render_live(mark, width);
        }
        if options.unfolded {
            return self.render_whole(mark, width);
        }
        let first = self.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let first = display_line(first.trim_start_matches('#').trim());
        let has_key = width >= MIN_KEY_WIDTH && !options.accessible;
        let key = if has_key { ", Ctrl+O" } else { "" };
        let count = match self.line_count() - 1 {
            0 => String::new(),
            1 => format!(" (1 more line{key})"),
            more => format!(" ({more} more lines{key})"),
        };
        let room = width.saturating_sub(crate::text::display_width(mark) + count.len());
        layout::wrap_with_mark(
            mark,
            &format!("{}{count}", layout::truncate_text(&first, room)),
            thinking_style(),
            width,
        )
    }

    /// All of it, when it was folded and there is more than what was shown.
    pub(super) fn into_folded(self) -> Option<FoldedItem> {
        (self.line_count() > 1)
            .then(|| FoldedItem { title: "thinking".to_owned(), body: Body::Text(self.text) })
    }

    fn line_count(&self) -> usize {
        self.lines + usize::from(self.line_has_text)
    }

    fn render_live(&self, mark: &'static str, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for line in self.tail.last_lines(LIVE_ROWS) {
            lines.extend(layout::wrap_with_mark(
                "  ",
                &display_line(&line),
                thinking_style(),
                width,
            ));
        }
        let mut lines = lines.split_off(lines.len().saturating_sub(LIVE_ROWS));
        if let Some(span) = lines.first_mut().and_then(|line| line.spans.first_mut())
            && span.text == "  "
        {
            span.text = mark.into();
        }
        lines
    }

    fn render_whole(&self, mark: &'static str, width: usize) -> Vec<Line> {
        let text = self.text.trim();
        let mut lines = Vec::new();
        for line in text.lines().take(MAX_LINES) {
            let mark = if lines.is_empty() { mark } else { "  " };
            lines.extend(layout::wrap_with_mark(
                mark,
                &display_line(line),
                thinking_style(),
                width,
            ));
        }
        lines
    }
}

fn thinking_style() -> Style {
    Style { italic: true, ..Style::with_ink(TextRole::Dim) }
}

/// A line of thinking; models set headings in it in bold.
fn display_line(line: &str) -> String {
    clean::expand_tabs(line).replace("**", "")
}
