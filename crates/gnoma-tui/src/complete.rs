//! Finds what can be completed at the cursor: a file after `@`, a command after `/`. Only the text is examined; others
//! know which files and commands exist ([`Lister`] finds the files).

mod lister;

use std::ops::Range;

pub use lister::{Limits, Lister, Listing};

/// Longest ending of a file's name by which it is known as one.
const MAX_ENDING_CHARS: usize = 5;

/// The kind of name that is being completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// A file or folder.
    File,
    /// The name of a command.
    Command,
}

/// The unfinished name to complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The kind of the name.
    pub kind: CompletionKind,
    /// The part of the name that is written up to the cursor.
    pub text: String,
    /// The bytes of the line that the completed name takes the place of.
    pub range: Range<usize>,
}

/// A file that a text speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The path, without quotes.
    pub path: String,
    /// The bytes of the mention in the text, including the `@`.
    pub range: Range<usize>,
}

/// Returns the name that can be completed with the cursor after `cursor` bytes of a line. A command is only
/// completed at the start of the first line.
#[must_use]
pub fn find_query(line: &str, cursor: usize, is_first_line: bool) -> Option<Query> {
    let before = line.get(..cursor)?;
    if is_first_line && let Some(query) = command_query(line, before) {
        return Some(query);
    }
    let start = open_mention(before)?;
    let name = before.get(start + 1..)?;
    let behind = line.get(cursor..)?;
    let (text, end) = match name.strip_prefix('"') {
        Some(quoted) => {
            let closed = behind.find('"').map_or(cursor, |quote| cursor + quote + 1);
            (unescape_backslashes(quoted), closed)
        }
        None => (name.to_owned(), cursor + bare_length(behind)),
    };
    Some(Query { kind: CompletionKind::File, text, range: start..end })
}

/// The text that replaces the query's range: `@`, the path (in quotes if needed), and a space unless one follows. A
/// folder gets no space, so that typing continues inside it.
#[must_use]
pub fn file_replacement(line: &str, query: &Query, path: &str) -> String {
    let is_plain = path.chars().all(|c| !c.is_whitespace() && c != '"') && !path.is_empty();
    let is_folder = path.ends_with('/');
    let mut text = if is_plain {
        format!("@{path}")
    } else {
        let escaped = path.replace('\\', r"\\").replace('"', "\\\"");
        let end = if is_folder { "" } else { "\"" };
        format!("@\"{escaped}{end}")
    };
    if !is_folder {
        text.push_str(space_before(line, query.range.end));
    }
    text
}

/// Returns the text to put in the place of the query's range for a command without its slash.
#[must_use]
pub fn command_replacement(line: &str, query: &Query, name: &str) -> String {
    format!("/{name}{}", space_before(line, query.range.end))
}

/// The files that a text speaks of, in its order.
#[must_use]
pub fn find_mentions(text: &str) -> Vec<Mention> {
    let mut mentions = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find('@')) {
        let start = from + at;
        from = start + 1;
        if !starts_mention(text, start) {
            continue;
        }
        let rest = text.get(from..).unwrap_or_default();
        let (path, length) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let Some(end) = closing_quote(quoted) else { continue };
                (unescape_backslashes(quoted.get(..end).unwrap_or_default()), end + 2)
            }
            None => {
                let length = bare_length(rest);
                let bare = rest.get(..length).unwrap_or_default();
                // The sign that ends a sentence is no part of a path.
                let bare = bare.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']);
                (bare.to_owned(), bare.len())
            }
        };
        if !path.is_empty() {
            mentions.push(Mention { path, range: start..from + length });
            from += length;
        }
    }
    mentions
}

/// Reports whether a mention can only be a file: its name has an ending, as those of people, scopes and decorators
/// do not.
pub(crate) fn is_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_ending = |ending: &str| {
        (1..=MAX_ENDING_CHARS).contains(&ending.len())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    !path.starts_with('~')
        && !path.contains('@')
        && ending.is_some_and(|(_, ending)| is_ending(ending))
}

fn command_query(line: &str, before: &str) -> Option<Query> {
    let text = before.strip_prefix('/')?;
    let is_name = |text: &str| !text.contains(|c: char| c.is_whitespace() || c == '/');
    let end = bare_length(line);
    let is_command = is_name(text) && is_name(line.get(1..end)?);
    is_command.then(|| Query {
        kind: CompletionKind::Command,
        text: text.to_owned(),
        range: 0..end,
    })
}

/// Returns the offset at which the mention begins that the end of a text is in.
fn open_mention(text: &str) -> Option<usize> {
    let is_open = |start: &usize| {
        let name = text.get(start + 1..).unwrap_or_default();
        starts_mention(text, *start)
            && match name.strip_prefix('"') {
                Some(quoted) => closing_quote(quoted).is_none(),
                None => !name.contains(char::is_whitespace),
            }
    };
    // The last `@` outside of quotes, or the one whose quotes are open.
    let starts: Vec<usize> = text.match_indices('@').map(|(start, _)| start).collect();
    let last = starts.iter().rev().copied().find(is_open)?;
    let quoted = starts.iter().copied().find(|start| {
        text.get(start + 1..).is_some_and(|name| name.starts_with('"')) && is_open(start)
    });
    Some(quoted.map_or(last, |quoted| quoted.min(last)))
}

/// An `@` inside a word is part of an address, not the start of a mention.
fn starts_mention(text: &str, start: usize) -> bool {
    let before = text.get(..start).and_then(|text| text.chars().next_back());
    before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '{'))
}

/// Bytes up to the first space.
fn bare_length(text: &str) -> usize {
    text.find(char::is_whitespace).unwrap_or(text.len())
}

/// Bytes before the quote that is not escaped.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '"' if !is_escaped => return Some(at),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    None
}

fn unescape_backslashes(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        result.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    result
}

fn space_before(line: &str, end: usize) -> &'static str {
    if line.get(end..).is_some_and(|rest| rest.starts_with(char::is_whitespace)) { "" } else { " " }
}
