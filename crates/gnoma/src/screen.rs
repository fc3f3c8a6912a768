//! What may be written to a terminal.
//!
//! Models, servers and projects choose much of what is shown. Their text must not move the cursor,
//! retitle the window, or make a line read differently from what it says.

use std::{borrow::Cow, os::fd::AsFd};

use gnoma_guard::unicode::{self, Keep};
use rustix::termios::tcgetwinsize;

/// How far a tab moves at most.
const TAB_COLUMNS: usize = 8;
/// What a terminal has that does not tell its size.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Size {
    /// The size `terminal` has now.
    pub(crate) fn of(terminal: impl AsFd) -> Self {
        let told = tcgetwinsize(terminal).ok();
        let known = told.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        known.map_or(USUAL, |size| Self { columns: size.ws_col.into(), rows: size.ws_row.into() })
    }
}

/// The rows `text` takes on a screen of so many columns; rather too many of them than too few.
pub(crate) fn rows(text: &str, columns: usize) -> Vec<&str> {
    text.split('\n').flat_map(|line| wrapped(line, columns)).collect()
}

fn wrapped(line: &str, columns: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    let (mut rest, mut taken, mut used) = (line, 0, 0);
    for c in line.chars() {
        if used > 0 && used + columns_of(c) > columns {
            let (row, behind) = rest.split_at(taken);
            rows.push(row);
            (rest, taken, used) = (behind, 0, 0);
        }
        taken += c.len_utf8();
        used += columns_of(c);
    }
    rows.push(rest);
    rows
}

/// The beginning of `text` on one line of at most `columns`, with a mark where something is left out.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let mut line = String::new();
    let (mut used, mut room) = (0, 0);
    for c in text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }) {
        if used + columns_of(c) > columns {
            // The mark itself needs its columns.
            line.truncate(room);
            line.push('…');
            return line;
        }
        used += columns_of(c);
        line.push(c);
        if used + columns_of('…') <= columns {
            room = line.len();
        }
    }
    line
}

/// The columns that a line takes at most.
pub(crate) fn width(line: &str) -> usize {
    line.chars().map(columns_of).sum()
}

/// Columns a character takes at most.
fn columns_of(c: char) -> usize {
    match c {
        '\t' => TAB_COLUMNS,
        c if c.is_ascii() => 1,
        _ => 2,
    }
}

/// `text` with a mark in place of everything that does more than show itself, or shows nothing and
/// hides something. One mark for a run: what was there is seen to have been there.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let Cow::Owned(kept) = unicode::clean(text, Keep::Text).text else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len());
    let mut rest = kept.chars().peekable();
    for c in text.chars() {
        if rest.next_if_eq(&c).is_some() {
            shown.push(c);
        } else if !shown.ends_with(char::REPLACEMENT_CHARACTER) {
            shown.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Cow::Owned(shown)
}

/// `text` without all that, and without a mark.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    unicode::clean(text, Keep::Text).text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_at_line_breaks_and_at_the_edge_of_the_screen() {
        assert_eq!(rows("", 4), [""]);
        assert_eq!(rows("abcd\n\nabcdefghi\n", 4), ["abcd", "", "abcd", "efgh", "i", ""]);
        assert_eq!(rows("日本語x", 4), ["日本", "語x"]);
        assert_eq!(rows("\t\tx", 8), ["\t", "\t", "x"]);
        assert_eq!(rows("日x", 1), ["日", "x"]);
    }

    #[test]
    fn a_line_that_does_not_fit_ends_with_a_mark() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdefg", 6), "abcd…");
        assert_eq!(fit("日本語", 5), "日…");
        assert_eq!(fit("a\n b\tc", 9), "a  b c");
    }

    #[test]
    fn what_does_more_than_show_itself_is_marked() {
        assert_eq!(clean("a\tb\nç日🎉"), "a\tb\nç日🎉");
        assert_eq!(clean("a\x1b[2Kx\rz\u{7f}"), "a\u{FFFD}x\u{FFFD}z\u{FFFD}");
        assert_eq!(clean("ls # \u{202E}fr- mr\u{2069}"), "ls # \u{FFFD}fr- mr\u{FFFD}");
        assert_eq!(clean("rm\u{200B}\u{E0041} -rf"), "rm\u{FFFD} -rf");
    }
}
