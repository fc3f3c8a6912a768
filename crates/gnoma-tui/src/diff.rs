//! Renders unified diffs: line numbers, marks, the colours of the language, and what changed inside a line set off
//! from the rest of it. A text that is no diff is shown as it is. Nothing is compared here but the lines that a diff
//! itself puts side by side.

mod marks;
mod read;

use std::ops::Range;

use crate::{
    highlight::Highlighter,
    text::{self, BackgroundRole, Line, Span, Style, TextRole},
};
use read::{DiffEntry, Row, Side};

/// Narrower than this, lines have no numbers.
const MIN_NUMBERED_COLUMNS: usize = 30;
/// The indentation of lines.
const INDENT: &str = "  ";

pub use read::count_changes;

/// A unified diff as lines of at most `width` columns: at most `max_lines` of them, and one that counts
/// what is left out.
#[must_use]
pub fn render_diff(diff: &str, width: usize, max_lines: usize) -> Vec<Line> {
    render_entries(diff, width, max_lines, false)
}

/// A diff as lines, with the name above a single file too.
#[must_use]
pub fn render_diff_with_names(diff: &str, width: usize, max_lines: usize) -> Vec<Line> {
    render_entries(diff, width, max_lines, true)
}

fn render_entries(diff: &str, width: usize, max_lines: usize, names_one: bool) -> Vec<Line> {
    let (entries, mut left_out) = read::read_entries(diff, max_lines);
    let mut painter = Painter::new(&entries, width.max(1));
    painter.shows_files |= names_one;
    let mut lines = Vec::new();
    let mut rest = entries.as_slice();
    while let Some(entry) = rest.first() {
        let room = max_lines.saturating_sub(lines.len());
        if room == 0 {
            break;
        }
        let (drawn, used) = painter.next(entry, rest);
        left_out += drawn.len().saturating_sub(room);
        lines.extend(drawn.into_iter().take(room));
        rest = &rest[used..];
    }
    left_out += rest.len();
    text::pad_background(&mut lines, width);
    if left_out > 0 {
        let noun = if left_out == 1 { "line" } else { "lines" };
        let more = Line::new(format!("… {left_out} more {noun}"), Style::with_ink(TextRole::Dim));
        lines.extend(more.wrap(width, &Line::default()).into_iter().take(1));
    }
    lines
}

/// A diff as lines that are set in from the left.
#[must_use]
pub fn set_in(diff: &str, width: usize, max_lines: usize) -> Vec<Line> {
    let mut lines = render_diff(diff, width.saturating_sub(INDENT.len()), max_lines);
    for line in &mut lines {
        if line.width() + INDENT.len() <= width {
            line.spans.insert(0, Span::new(INDENT, Style::default()));
        }
    }
    lines
}

struct Painter {
    width: usize,
    /// Columns of the numbers; none where there is no room for them.
    digits: usize,
    shows_files: bool,
    old: Option<Highlighter>,
    new: Option<Highlighter>,
}

impl Painter {
    fn new(entries: &[DiffEntry], width: usize) -> Self {
        let numbers = entries.iter().filter_map(|entry| match entry {
            DiffEntry::Row(row) => Some(row.number),
            DiffEntry::File(..) | DiffEntry::Skipped | DiffEntry::Note(_) => None,
        });
        let digits = numbers.max().unwrap_or(0).to_string().len();
        let files = entries.iter().filter(|entry| matches!(entry, DiffEntry::File(..))).count();
        let digits = if width < MIN_NUMBERED_COLUMNS { 0 } else { digits };
        Self { width, digits, shows_files: files > 1, old: None, new: None }
    }

    /// The lines of the next entries, and how many these are.
    fn next(&mut self, entry: &DiffEntry, rest: &[DiffEntry]) -> (Vec<Line>, usize) {
        match entry {
            DiffEntry::File(name, what) => (self.start_file(name, what), 1),
            DiffEntry::Skipped => (vec![Line::new("⋮", Style::with_ink(TextRole::Dim))], 1),
            DiffEntry::Note(text) => (self.wrap(text, Style::with_ink(TextRole::Dim)), 1),
            DiffEntry::Row(row) if row.side == Side::Removed => self.render_change(rest),
            DiffEntry::Row(row) => (self.render_row(row, &[]), 1),
        }
    }

    fn start_file(&mut self, name: &str, what: &str) -> Vec<Line> {
        self.old = Highlighter::for_name(name);
        self.new.clone_from(&self.old);
        if self.shows_files {
            self.wrap(&format!("{name}{what}"), Style::default().bold())
        } else {
            Vec::new()
        }
    }

    fn wrap(&self, text: &str, style: Style) -> Vec<Line> {
        let mut lines = Line::new(text.to_owned(), style).wrap(self.width, &Line::default());
        lines.iter_mut().for_each(Line::trim_end);
        lines
    }

    /// Removed lines, and the added ones that took their place.
    fn render_change(&mut self, entries: &[DiffEntry]) -> (Vec<Line>, usize) {
        let removed = leading_rows(entries, Side::Removed);
        let added = leading_rows(&entries[removed.len()..], Side::Added);
        let (old_marks, new_marks) = mark_changes(&removed, &added);
        let marks = old_marks.iter().chain(&new_marks);
        let rows = removed.iter().chain(&added);
        let lines = rows.zip(marks).flat_map(|(row, marks)| self.render_row(row, marks)).collect();
        (lines, removed.len() + added.len())
    }

    fn render_row(&mut self, row: &Row, marked: &[Range<usize>]) -> Vec<Line> {
        let (sign, ink, paper, mark) = match row.side {
            Side::Same => (' ', TextRole::Dim, BackgroundRole::None, BackgroundRole::None),
            Side::Removed => {
                ('-', TextRole::Bad, BackgroundRole::Removed, BackgroundRole::RemovedMark)
            }
            Side::Added => ('+', TextRole::Good, BackgroundRole::Added, BackgroundRole::AddedMark),
        };
        let spans = paint_background(self.highlight_row(row), marked, paper, mark);
        let lead = if self.digits == 0 {
            format!("{sign}")
        } else {
            format!("{:>digits$} {sign}", row.number, digits = self.digits)
        };
        // A line of a diff that is too long continues below its own beginning.
        let columns = if lead.len() * 2 >= self.width { 0 } else { lead.len() };
        let body = Line { spans }.wrap(self.width - columns, &Line::default());
        let mut lines = Vec::with_capacity(body.len());
        let last = body.len().saturating_sub(1);
        for (at, mut line) in body.into_iter().enumerate() {
            let lead = if at == 0 { lead.clone() } else { " ".repeat(lead.len()) };
            if columns > 0 {
                line.spans.insert(0, Span::new(lead, Style::with_ink(ink).on_paper(paper)));
            }
            // Spaces at the end of a line that was changed may be what was changed.
            if at < last || row.side == Side::Same {
                line.trim_end();
            }
            lines.push(line);
        }
        lines
    }

    /// The text in the colours of its language, on its own side of the change.
    fn highlight_row(&mut self, row: &Row) -> Vec<Span> {
        let plain = || vec![Span::new(row.text.clone(), Style::default())];
        let highlight = |side: &mut Option<Highlighter>| match side {
            Some(highlighter) => highlighter.highlight_line(&row.text),
            None => plain(),
        };
        match row.side {
            Side::Removed => highlight(&mut self.old),
            Side::Added => highlight(&mut self.new),
            Side::Same => {
                drop(highlight(&mut self.old));
                highlight(&mut self.new)
            }
        }
    }
}

/// For each removed and each added row, what is to be marked in it.
fn mark_changes(removed: &[&Row], added: &[&Row]) -> (Vec<marks::Places>, Vec<marks::Places>) {
    let old: Vec<&str> = removed.iter().map(|row| row.text.as_str()).collect();
    let new: Vec<&str> = added.iter().map(|row| row.text.as_str()).collect();
    let (mut old_marks, mut new_marks) = (vec![Vec::new(); old.len()], vec![Vec::new(); new.len()]);
    for (at, to) in marks::pair_lines(&old, &new) {
        let Some((one, other)) = old.get(at).zip(new.get(to)) else { continue };
        let (removed, added) = marks::changed_places(one, other);
        old_marks.get_mut(at).into_iter().for_each(|marks| marks.clone_from(&removed));
        new_marks.get_mut(to).into_iter().for_each(|marks| marks.clone_from(&added));
    }
    (old_marks, new_marks)
}

/// The rows of one side that come first.
fn leading_rows(entries: &[DiffEntry], side: Side) -> Vec<&Row> {
    let rows = entries.iter().map_while(|entry| match entry {
        DiffEntry::Row(row) if row.side == side => Some(row),
        DiffEntry::Row(_) | DiffEntry::File(..) | DiffEntry::Skipped | DiffEntry::Note(_) => None,
    });
    rows.collect()
}

/// The spans on paper; the bytes in `marked` on that for marks.
fn paint_background(
    spans: Vec<Span>,
    marked: &[Range<usize>],
    paper: BackgroundRole,
    mark: BackgroundRole,
) -> Vec<Span> {
    let mut done = Vec::with_capacity(spans.len());
    let mut at = 0;
    for span in spans {
        let end = at + span.text.len();
        let mut from = at;
        for range in marked.iter().filter(|range| range.start < end && range.end > at) {
            let (start, stop) = (range.start.max(at), range.end.min(end));
            push_span_part(&mut done, &span, from - at..start - at, paper);
            push_span_part(&mut done, &span, start - at..stop - at, mark);
            from = stop;
        }
        push_span_part(&mut done, &span, from - at..end - at, paper);
        at = end;
    }
    done
}

fn push_span_part(done: &mut Vec<Span>, span: &Span, range: Range<usize>, paper: BackgroundRole) {
    if let Some(text) = span.text.get(range).filter(|text| !text.is_empty()) {
        done.push(Span::new(text.to_owned(), span.style.on_paper(paper)));
    }
}
