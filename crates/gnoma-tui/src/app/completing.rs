//! The drop-down below the editor: files behind `@`, commands behind `/`.

use super::State;
use crate::{
    commands,
    complete::{self, Kind, Query},
    fuzzy,
    keymap::{Action, Code, Context, Key},
    text::{self, Ink, Line, Paper, Span, Style},
    wish::Wish,
};

/// Rows of the drop-down.
const MAX_ROWS: usize = 6;
/// Files that are offered at once.
const MAX_HITS: usize = 50;

/// What can be completed now.
#[derive(Clone, Debug, Default)]
pub(super) struct Completion {
    files: Vec<String>,
    /// The files were asked for.
    is_listed: bool,
    /// The person does not want it for what is being written.
    is_closed: bool,
    query: Option<Query>,
    hits: Vec<String>,
    chosen: usize,
}

impl Completion {
    pub(super) fn list(&mut self, files: Vec<String>) {
        self.files = files;
        self.query = None;
    }

    /// Whether it has offered this file.
    pub(super) fn has_offered(&self, path: &str) -> bool {
        self.files.iter().any(|file| file == path)
    }

    /// What is being written has changed, so that it may be wanted again.
    pub(super) fn reopen(&mut self) {
        self.is_closed = false;
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.hits.clear();
        self.query = None;
    }

    pub(super) fn is_open(&self) -> bool {
        !self.hits.is_empty()
    }

    /// The drop-down in at most `height` lines.
    pub(super) fn lines(&self, height: usize) -> Vec<Line> {
        let rows = height.min(MAX_ROWS);
        let first = self.chosen.saturating_sub(rows.saturating_sub(1));
        let hits = self.hits.iter().enumerate().skip(first).take(rows);
        let mut lines: Vec<_> =
            hits.map(|(place, hit)| self.row(hit, place == self.chosen)).collect();
        text::square(&mut lines, usize::MAX);
        lines
    }

    fn row(&self, hit: &str, is_chosen: bool) -> Line {
        let paper = if is_chosen { Paper::Chosen } else { Paper::None };
        let ink = if is_chosen { Ink::Accent } else { Ink::Text };
        let is_command = self.query.as_ref().is_some_and(|query| query.kind == Kind::Command);
        let name = if is_command { format!("/{hit:<12}") } else { hit.to_owned() };
        let about = if is_command { commands::about(hit) } else { "" };
        let mut line = Line::from([
            Span::new(if is_chosen { "› " } else { "  " }, Style::of(Ink::Accent).on(paper)),
            Span::new(name, Style::of(ink).on(paper)),
            Span::new(format!(" {about}"), Style::of(Ink::Dim).on(paper)),
        ]);
        line.trim_end();
        line
    }
}

impl State {
    /// Looks anew at what can be completed.
    pub(super) fn complete_anew(&mut self) {
        let composer = &self.composer;
        let is_first = composer.line_number() == 0;
        let column = composer.column();
        // Only at the end of a name: what stands behind the cursor is not to be written over.
        let query = complete::query(composer.line(), column, is_first)
            .filter(|query| query.range.end == column)
            .filter(|_| !self.completion.is_closed && self.layer.is_none() && !self.accessible);
        if query == self.completion.query {
            return;
        }
        self.completion.chosen = 0;
        self.completion.hits = match &query {
            None => Vec::new(),
            Some(query) if query.kind == Kind::Command => ranked(&query.text, commands::names()),
            Some(query) => {
                if !std::mem::replace(&mut self.completion.is_listed, true) {
                    self.wishes.push(Wish::List);
                }
                ranked(&query.text, &self.completion.files)
            }
        };
        if query.is_none() {
            // The next mention looks at the files as they are then.
            self.completion.is_listed = false;
        }
        self.completion.query = query;
    }

    /// A key for the drop-down. Says whether it was one.
    pub(super) fn completion_key(&mut self, key: Key) -> bool {
        if !self.completion.is_open() {
            return false;
        }
        let last = self.completion.hits.len() - 1;
        let chosen = self.completion.chosen;
        match self.keymap.action_here(Context::Picker, key) {
            Some(Action::Up) => self.completion.chosen = chosen.checked_sub(1).unwrap_or(last),
            Some(Action::Down) => {
                self.completion.chosen = if chosen == last { 0 } else { chosen + 1 }
            }
            Some(Action::PageUp) => self.completion.chosen = chosen.saturating_sub(MAX_ROWS),
            Some(Action::PageDown) => self.completion.chosen = (chosen + MAX_ROWS).min(last),
            Some(Action::Complete) => self.take_hit(),
            Some(Action::Accept) => {
                let is_command = self.completes_command();
                self.take_hit();
                if is_command {
                    self.submit();
                }
            }
            Some(Action::Close) if key.code == Code::Escape => self.completion.close(),
            _ => return false,
        }
        true
    }

    fn completes_command(&self) -> bool {
        self.completion.query.as_ref().is_some_and(|query| query.kind == Kind::Command)
    }

    fn take_hit(&mut self) {
        let Completion { query: Some(query), hits, chosen, .. } = &self.completion else { return };
        let Some(hit) = hits.get(*chosen) else { return };
        let line = self.composer.line();
        let text = match query.kind {
            Kind::File => complete::file(line, query, hit),
            Kind::Command => complete::command(line, query, hit),
        };
        let range = query.range.clone();
        let goes_on = hit.ends_with('/');
        self.composer.replace_in_line(range, &text);
        if !goes_on {
            self.completion.close();
        }
        self.touched();
    }
}

fn ranked<S: AsRef<str>>(query: &str, names: &[S]) -> Vec<String> {
    let best = fuzzy::rank(query, names, MAX_HITS).into_iter();
    best.filter_map(|index| names.get(index)).map(|name| name.as_ref().to_owned()).collect()
}
