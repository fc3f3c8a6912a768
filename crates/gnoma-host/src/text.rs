//! Sanitizes and truncates text for people.

use std::borrow::Cow;

use gnoma_guard::unicode::{self, RetainedControls};

/// The most columns that a tab moves.
const TAB_COLUMNS: usize = 8;

/// The beginning of `text` on one line of at most `columns`, with a mark where something is left out.
#[must_use]
pub fn fit_line(text: &str, columns: usize) -> String {
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
#[must_use]
pub fn line_width(line: &str) -> usize {
    line.chars().map(columns_of).sum()
}

/// Columns a character takes at most.
#[must_use]
pub fn columns_of(c: char) -> usize {
    match c {
        '\t' => TAB_COLUMNS,
        c if c.is_ascii() => 1,
        _ => 2,
    }
}

/// `text` with a mark in place of everything that does more than show itself, or shows nothing and
/// hides something. One mark for a run: what was there is seen to have been there.
#[must_use]
pub fn mark_unsafe_chars(text: &str) -> Cow<'_, str> {
    let Cow::Owned(kept) = unicode::clean_text(text, RetainedControls::Text).text else {
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
#[must_use]
pub fn strip_unsafe_chars(text: &str) -> Cow<'_, str> {
    unicode::clean_text(text, RetainedControls::Text).text
}

/// Names may hold anything, also line breaks.
pub(crate) fn one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlong_line_is_truncated_with_an_ellipsis() {
        assert_eq!(fit_line("abcdef", 6), "abcdef");
        assert_eq!(fit_line("abcdefg", 6), "abcd…");
        assert_eq!(fit_line("日本語", 5), "日…");
        assert_eq!(fit_line("a\n b\tc", 9), "a  b c");
    }

    #[test]
    fn control_and_invisible_characters_are_replaced() {
        assert_eq!(mark_unsafe_chars("a\tb\nç日🎉"), "a\tb\nç日🎉");
        assert_eq!(mark_unsafe_chars("a\x1b[2Kx\rz\u{7f}"), "a\u{FFFD}x\u{FFFD}z\u{FFFD}");
        assert_eq!(mark_unsafe_chars("ls # \u{202E}fr- mr\u{2069}"), "ls # \u{FFFD}fr- mr\u{FFFD}");
        assert_eq!(mark_unsafe_chars("rm\u{200B}\u{E0041} -rf"), "rm\u{FFFD} -rf");
    }
}
