//! Parses unified diffs. Lines of a hunk are counted, so that a removed line that begins with dashes is not taken for
//! the name of a file.

pub(super) use gnoma_core::hunk_reader::Side;
use gnoma_core::{diff::parse_cut_line, hunk_reader::HunkReader};

use crate::{
    clean,
    text::{Span, Style},
};

/// Numbers of lines above this are not believed.
const MAX_NUMBER: usize = 9_999_999;
/// The name that stands for a file that does not exist.
const NO_FILE: &str = "/dev/null";
const NEW: &str = " (new)";
const DELETED: &str = " (deleted)";
const NEW_EMPTY: &str = " (new, empty)";
const DELETED_EMPTY: &str = " (deleted, empty)";

/// A part of a diff.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DiffEntry {
    /// A file begins, and what became of the file as a whole.
    File(String, &'static str),
    /// Lines between two hunks.
    Skipped,
    Row(Row),
    /// A note, such as that the last line has no end.
    Note(String),
}

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) side: Side,
    pub(super) number: usize,
    pub(super) text: String,
}

/// Lines that a diff adds and removes, with those of which only the number came.
#[must_use]
pub fn count_changes(diff: &str) -> (usize, usize) {
    let mut reader = DiffReader::default();
    let (mut added, mut removed) = (0, 0);
    for line in diff.lines() {
        match reader.hunk.read_line(line) {
            Some((Side::Added, _)) => added += 1,
            Some((Side::Removed, _)) => removed += 1,
            Some((Side::Same, _)) => {}
            None => {
                let (more_added, more_removed) = parse_cut_line(line).unwrap_or_default();
                (added, removed) = (added + more_added, removed + more_removed);
                reader.parse_header(line);
            }
        }
    }
    (added, removed)
}

/// The first entries, and how many lines there are after them.
pub(super) fn read_entries(diff: &str, max: usize) -> (Vec<DiffEntry>, usize) {
    let mut reader = DiffReader::default();
    let mut entries = Vec::new();
    let mut lines = diff.lines();
    for line in lines.by_ref() {
        entries.extend(reader.parse_line(line));
        if entries.len() >= max {
            break;
        }
    }
    let left = lines.count();
    say_empty(&mut entries, left == 0);
    (without_blank_edges(entries), left)
}

/// Says of files that come or go without any line that they are empty. `is_whole`: the last entry is the
/// diff's last.
fn say_empty(entries: &mut [DiffEntry], is_whole: bool) {
    for at in 0..entries.len() {
        let is_bare = match entries.get(at + 1) {
            Some(next) => matches!(next, DiffEntry::File(..)),
            None => is_whole,
        };
        if is_bare && let DiffEntry::File(_, what) = &mut entries[at] {
            *what = match *what {
                NEW => NEW_EMPTY,
                DELETED => DELETED_EMPTY,
                other => other,
            };
        }
    }
}

/// The entries without the empty lines that a hunk begins or ends with: they tell nothing.
fn without_blank_edges(entries: Vec<DiffEntry>) -> Vec<DiffEntry> {
    let mut kept = trim_blank_rows(entries.into_iter());
    kept = trim_blank_rows(kept.into_iter().rev());
    kept.reverse();
    kept
}

/// The entries without the empty lines that come first in a hunk.
fn trim_blank_rows(entries: impl Iterator<Item = DiffEntry>) -> Vec<DiffEntry> {
    let mut at_edge = true;
    let tells = |entry: &DiffEntry| {
        let is_blank = match entry {
            DiffEntry::Row(row) => row.side == Side::Same && row.text.trim().is_empty(),
            DiffEntry::File(..) | DiffEntry::Skipped | DiffEntry::Note(_) => false,
        };
        let is_left_out = at_edge && is_blank;
        at_edge = is_left_out || !matches!(entry, DiffEntry::Row(_));
        !is_left_out
    };
    entries.filter(tells).collect()
}

/// The position in the diff that is being read.
#[derive(Default)]
struct DiffReader {
    hunk: HunkReader,
    /// A hunk of this file came already.
    in_file: bool,
    /// The file's name before, where the next line has the one after.
    before: String,
}

impl DiffReader {
    fn parse_line(&mut self, line: &str) -> Option<DiffEntry> {
        if let Some((side, number)) = self.hunk.read_line(line) {
            let text = display_text(line.get(1..).unwrap_or_default());
            let number = number.min(MAX_NUMBER);
            return Some(DiffEntry::Row(Row { side, number, text }));
        }
        let had_hunk = self.in_file;
        self.parse_header(line);
        if let Some(name) = line.strip_prefix("+++ ") {
            let before = std::mem::take(&mut self.before);
            return Some(match (before.as_str(), file_name(name)) {
                (NO_FILE, name) => DiffEntry::File(name, NEW),
                (_, name) if name == NO_FILE => DiffEntry::File(before, DELETED),
                (_, name) => DiffEntry::File(name, ""),
            });
        }
        if line.starts_with("@@ ") {
            return had_hunk.then_some(DiffEntry::Skipped);
        }
        if let Some(name) = line.strip_prefix("--- ") {
            self.before = file_name(name.strip_prefix("a/").unwrap_or(name));
        }
        let is_head = ["--- ", "diff ", "index "].iter().any(|head| line.starts_with(head));
        (!is_head && !line.is_empty()).then(|| DiffEntry::Note(display_text(line)))
    }

    /// A line outside of hunks.
    fn parse_header(&mut self, line: &str) {
        if line.starts_with("+++ ") {
            self.in_file = false;
        }
        if parse_cut_line(line).is_some() {
            self.hunk.end_hunk();
        }
        self.in_file |= self.hunk.read_header(line);
    }
}

fn file_name(text: &str) -> String {
    let name = text.split('\t').next().unwrap_or(text);
    let name = name.strip_prefix("b/").unwrap_or(name);
    display_text(name)
}

/// A line of a file as it is shown.
fn display_text(text: &str) -> String {
    let text = clean::expand_tabs(text.trim_end_matches('\r'));
    // Replaced here already, so that places in the text are the same before and after.
    Span::new(text, Style::default()).text.into_owned()
}
