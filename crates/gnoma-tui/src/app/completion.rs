//! Completion candidates for the text before the cursor.

use crate::{
    complete::{CompletionKind, Query},
    text::{self, BackgroundRole, Line, Span, Style, TextRole},
};

/// Rows of the drop-down.
pub(super) const MAX_ROWS: usize = 8;

/// A name that can be taken.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) name: String,
    /// A description in a few words; may be empty.
    pub(super) about: String,
}

/// The state of completion: the names that can be completed now.
#[derive(Clone, Debug, Default)]
pub(super) struct Completion {
    pub(super) files: Vec<String>,
    /// The files were asked for.
    pub(super) is_listed: bool,
    /// The person does not want it for what is being written.
    pub(super) is_closed: bool,
    pub(super) query: Option<Query>,
    pub(super) hits: Vec<Hit>,
    /// The one that Enter takes; none where the name is not the beginning of only one.
    pub(super) chosen: Option<usize>,
}

impl Completion {
    pub(super) fn set_files(&mut self, files: Vec<String>) {
        self.files = files;
        self.query = None;
    }

    /// Reports whether the completion has offered this file.
    pub(super) fn has_offered(&self, path: &str) -> bool {
        self.files.iter().any(|file| file == path)
    }

    /// Opens completion again, because what is being written has changed and it may be wanted.
    pub(super) fn reopen(&mut self) {
        self.is_closed = false;
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.hits.clear();
        self.query = None;
    }

    pub(super) fn is_open(&self) -> bool {
        !self.hits.is_empty()
    }

    /// The drop-down in at most `height` lines.
    pub(super) fn render_lines(&self, height: usize) -> Vec<Line> {
        let rows = height.min(MAX_ROWS);
        let chosen = self.chosen.unwrap_or(0);
        let first = chosen.saturating_sub(rows.saturating_sub(1));
        let hits = self.hits.iter().enumerate().skip(first).take(rows);
        let mut lines: Vec<_> =
            hits.map(|(place, hit)| self.row(hit, Some(place) == self.chosen)).collect();
        text::pad_background(&mut lines, usize::MAX);
        let more = self.hits.len().saturating_sub(first + rows);
        if more > 0 && height > rows {
            lines.push(Line::new(format!("  … {more} more (↓)"), Style::with_ink(TextRole::Dim)));
        }
        lines
    }

    fn row(&self, hit: &Hit, is_chosen: bool) -> Line {
        let paper = if is_chosen { BackgroundRole::Chosen } else { BackgroundRole::None };
        let ink = if is_chosen { TextRole::Accent } else { TextRole::Text };
        let is_command =
            self.query.as_ref().is_some_and(|query| query.kind == CompletionKind::Command);
        let Hit { name, about } = hit;
        let name = if is_command { format!("/{name:<12}") } else { name.clone() };
        let mut line = Line::from([
            Span::new(
                if is_chosen { "› " } else { "  " },
                Style::with_ink(TextRole::Accent).on_paper(paper),
            ),
            Span::new(name, Style::with_ink(ink).on_paper(paper)),
            Span::new(format!(" {about}"), Style::with_ink(TextRole::Dim).on_paper(paper)),
        ]);
        line.trim_end();
        line
    }
}
