//! One line of a screen: characters that take a place, and sequences that take none.

use super::sequence::{Sequence, scan_sequence};

/// Puts `text` over what stands from `column` on, with blanks where the row does not reach there.
pub(super) fn overwrite_row(row: &mut String, column: usize, text: &str) {
    let width = row_width(row);
    row.extend(std::iter::repeat_n(' ', column.saturating_sub(width)));
    let from = byte_of(row, column);
    let to = byte_of(row, column + text.chars().count());
    row.replace_range(from..to, text);
}

/// True if each byte of a row is a character that takes a place.
fn is_plain(row: &str) -> bool {
    row.is_ascii() && !row.as_bytes().contains(&0x1b)
}

/// The width of a row in characters, without its sequences.
pub(super) fn row_width(row: &str) -> usize {
    if is_plain(row) { row.len() } else { Glyphs(row).count() }
}

/// Returns the byte offset at which the character at `column` begins, behind the sequences before it.
pub(super) fn byte_of(row: &str, column: usize) -> usize {
    if is_plain(row) {
        return column.min(row.len());
    }
    Glyphs(row).nth(column).map_or(row.len(), |at| row.len() - at)
}

/// The characters that take a place in a row, each as the bytes from it to the end of the row.
struct Glyphs<'r>(&'r str);

impl Iterator for Glyphs<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let rest = self.0;
            let first = rest.chars().next()?;
            let Sequence::Whole(length) = scan_sequence(rest) else {
                self.0 = rest.get(first.len_utf8()..).unwrap_or_default();
                return Some(rest.len());
            };
            self.0 = rest.get(length..).unwrap_or_default();
        }
    }
}
