//! What was shown folded and can be expanded: output of tools, long diffs, thinking.

use std::collections::VecDeque;

use super::layout;
use crate::{
    clean, diff,
    text::{Line, Style, TextRole},
};

/// Things that can be unfolded; older ones are forgotten.
const MAX_THINGS: usize = 32;
/// Bytes of all of them.
const MAX_BYTES: usize = 1_048_576;
/// Lines that are shown of one.
pub(super) const MAX_LINES: usize = 2_000;
const INDENT: &str = "  ";

/// An output that is shown folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoldedItem {
    pub(super) title: String,
    pub(super) body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Text(String),
    Diff(String),
}

impl FoldedItem {
    pub(super) fn draw(&self, width: usize) -> Vec<Line> {
        let title = layout::truncate_text(&format!("▾ {}", self.title), width);
        let mut lines = vec![Line::new(title, Style::with_ink(TextRole::Dim).bold())];
        lines.extend(self.body.draw(width));
        lines
    }
}

impl Body {
    pub(super) fn draw(&self, width: usize) -> Vec<Line> {
        match self {
            Self::Text(text) => render_output(text, width),
            Self::Diff(text) => diff::render_diff(text, width, MAX_LINES),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Diff(text) => text.len(),
        }
    }
}

/// Output of a program, indented.
fn render_output(text: &str, width: usize) -> Vec<Line> {
    let text = clean::sanitize_output(text);
    let total = text.lines().count();
    let mut lines = Vec::new();
    for line in text.lines().take(MAX_LINES) {
        lines.extend(layout::wrap_with_mark(
            INDENT,
            &clean::expand_tabs(line),
            Style::default(),
            width,
        ));
    }
    if total > MAX_LINES {
        lines.push(layout::more_lines_note(total - MAX_LINES, width));
    }
    lines
}

/// The folded things of a conversation, the newest last.
#[derive(Debug, Default)]
pub(super) struct FoldedOutputs {
    things: VecDeque<FoldedItem>,
    bytes: usize,
}

impl FoldedOutputs {
    pub(super) fn add_folded(&mut self, folded: FoldedItem) {
        self.bytes += folded.body.len();
        self.things.push_back(folded);
        while (self.bytes > MAX_BYTES || self.things.len() > MAX_THINGS)
            && let Some(oldest) = self.things.pop_front()
        {
            self.bytes -= oldest.body.len();
        }
    }

    /// Returns all folded outputs, the newest first.
    pub(super) fn newest_first(&self) -> Vec<FoldedItem> {
        self.things.iter().rev().cloned().collect()
    }

    /// Removes and returns the newest output.
    pub(super) fn take_newest(&mut self) -> Option<FoldedItem> {
        let newest = self.things.pop_back()?;
        self.bytes -= newest.body.len();
        Some(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_folded_outputs_are_dropped_at_the_limit() {
        let mut folded_outputs = FoldedOutputs::default();
        for number in 0..100 {
            let body = Body::Text("x".repeat(100_000));
            folded_outputs.add_folded(FoldedItem { title: number.to_string(), body });
            assert!(folded_outputs.bytes <= MAX_BYTES && folded_outputs.things.len() <= MAX_THINGS);
        }
        assert_eq!(folded_outputs.take_newest().map(|folded| folded.title).as_deref(), Some("99"));
    }
}
