//! Removes from texts what must not reach a terminal (escape sequences).
//!
//! Models, servers and projects choose much of what is shown. Their text must not move the cursor,
//! retitle the window, or make a line read differently from what it says.

use gnoma_host::text::columns_of;
pub(crate) use gnoma_host::text::strip_unsafe_chars;
pub use gnoma_host::text::{fit_line, line_width, mark_unsafe_chars};
use rustix::termios::tcgetwinsize;
use std::os::fd::AsFd;

/// The size assumed for a terminal that does not report one.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The width.
    pub columns: usize,
    /// The height.
    pub rows: usize,
}

impl Size {
    /// Returns the size that `terminal` has now; 80 × 24 if it does not report one.
    pub fn of_terminal(terminal: impl AsFd) -> Self {
        let told = tcgetwinsize(terminal).ok();
        let known = told.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        known.map_or(USUAL, |size| Self { columns: size.ws_col.into(), rows: size.ws_row.into() })
    }
}

/// The rows `text` takes on a screen of so many columns; rather too many of them than too few.
pub(crate) fn split_into_rows(text: &str, columns: usize) -> Vec<&str> {
    text.split('\n').flat_map(|line| wrap_line(line, columns)).collect()
}

fn wrap_line(line: &str, columns: usize) -> Vec<&str> {
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

/// Puts line breaks between words, so that lines have at most `columns` columns. Longer words stay whole.
pub fn wrap_words(text: &str, columns: usize) -> String {
    let (mut wrapped, mut used) = (String::with_capacity(text.len()), 0);
    for word in text.split(' ') {
        let width = line_width(word);
        if used > 0 {
            let fits = used + 1 + width <= columns;
            wrapped.push(if fits { ' ' } else { '\n' });
            used = if fits { used + 1 } else { 0 };
        }
        wrapped.push_str(word);
        used += width;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_does_not_break_words() {
        assert_eq!(wrap_words("one two three", 7), "one two\nthree");
        assert_eq!(wrap_words("a-long-word of it", 5), "a-long-word\nof it");
        assert_eq!(wrap_words("日本 語", 5), "日本\n語");
    }

    #[test]
    fn rows_end_at_line_breaks_and_at_the_edge_of_the_screen() {
        assert_eq!(split_into_rows("", 4), [""]);
        assert_eq!(
            split_into_rows("abcd\n\nabcdefghi\n", 4),
            ["abcd", "", "abcd", "efgh", "i", ""]
        );
        assert_eq!(split_into_rows("日本語x", 4), ["日本", "語x"]);
        assert_eq!(split_into_rows("\t\tx", 8), ["\t", "\t", "x"]);
        assert_eq!(split_into_rows("日x", 1), ["日", "x"]);
    }
}
