//! What stands at the ends of short lines, read as one text.
//!
//! A secret that was written one letter to a line, with a number or a date before each, stands in a
//! row only here.

use std::ops::Range;

use memchr::{memchr_iter, memmem};

use crate::decode::View;

/// A longer field would be found as it stands.
const MAX_FIELD_BYTES: usize = 40;
/// Columns behind a number that are looked at, the longest line that has them, and the longest field of one.
const COLUMNS: usize = 4;
const MAX_LINE_BYTES: usize = 48;
const MAX_CELL_BYTES: usize = 4;
/// So many lines in a row make a text.
const MIN_LINES: usize = 3;

/// The stretches of several lines in a row that end in something other than a sign, as few lines
/// of programs do: only there can a value be spread.
pub(super) fn line_stretches(text: &[u8]) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let (mut start, mut row, mut lines) = (0, 0, 0);
    for end in memchr_iter(b'\n', text).chain([text.len()]) {
        let last = text.get(start..end).and_then(<[u8]>::last).copied().unwrap_or_default();
        if last.is_ascii_alphanumeric() || is_joint(last) || is_noise(last) {
            lines += 1;
        } else {
            if lines >= MIN_LINES {
                rows.push(row..start);
            }
            (row, lines) = (end + 1, 0);
        }
        start = end + 1;
    }
    if lines >= MIN_LINES {
        rows.push(row..text.len());
    }
    rows
}

/// The last field of each line, where those of several lines in a row are short.
pub(super) fn last_fields(text: &[u8], rows: &[Range<usize>]) -> Option<View> {
    join_rows(text, rows, |line| {
        let end = line.len() - line.iter().rev().take_while(|byte| is_noise(**byte)).count();
        let reach = end.saturating_sub(MAX_FIELD_BYTES);
        let near = line.get(reach..end)?;
        let start = near.iter().rposition(|byte| is_separator(*byte)).map(|at| reach + at + 1);
        Some((start.or((reach == 0).then_some(0))?, end))
    })
}

/// Each line without the number it begins with, where several short ones in a row begin so.
pub(super) fn without_numbers(text: &[u8], rows: &[Range<usize>]) -> Option<View> {
    join_rows(text, rows, |line| {
        let blank = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = line.get(blank..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let has_digit = rest.iter().take(digits).any(u8::is_ascii_digit);
        let is_number = has_digit && rest.get(digits).is_none_or(|byte| is_separator(*byte));
        let start = blank + digits;
        (is_number && line.len() - start <= MAX_FIELD_BYTES).then_some((start, line.len()))
    })
}

/// The columns of numbered lines between the number and the end, such as `cmp -l` writes them.
pub(super) fn numbered_columns(text: &[u8]) -> [Option<View>; COLUMNS] {
    let mut views: [View; COLUMNS] = Default::default();
    let mut rows: [Vec<(usize, usize)>; COLUMNS] = Default::default();
    let mut start = 0;
    for end in memchr_iter(b'\n', text).chain([text.len()]) {
        let line = text.get(start..end).unwrap_or_default();
        let fields = if is_numbered(line) { short_cells(line) } else { [None; COLUMNS] };
        for ((field, row), view) in fields.into_iter().zip(&mut rows).zip(&mut views) {
            match field {
                Some((from, to)) => row.push((start + from, start + to)),
                None if row.is_empty() => {}
                None => close_row(text, row, view),
            }
        }
        start = end + 1;
    }
    for (row, view) in rows.iter_mut().zip(&mut views) {
        close_row(text, row, view);
    }
    views.map(|view| (!view.is_empty()).then_some(view))
}

/// True if a short line begins with a number that stands alone.
fn is_numbered(line: &[u8]) -> bool {
    let rest = line.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0
        && rest.get(digits).is_some_and(u8::is_ascii_whitespace)
        && line.len() <= MAX_LINE_BYTES
}

/// Returns the ranges of the fields behind the first one, as far as they are short.
fn short_cells(line: &[u8]) -> [Option<(usize, usize)>; COLUMNS] {
    let mut found = [None; COLUMNS];
    let mut at = 0;
    for field in 0..=COLUMNS {
        at += count_while(line, at, u8::is_ascii_whitespace);
        let length = count_while(line, at, |byte| !byte.is_ascii_whitespace());
        if length == 0 || length > MAX_CELL_BYTES && field > 0 {
            break;
        }
        if let Some(cell) = field.checked_sub(1).and_then(|place| found.get_mut(place)) {
            *cell = Some((at, at + length));
        }
        at += length;
    }
    found
}

fn count_while(line: &[u8], from: usize, fits: impl Fn(&u8) -> bool) -> usize {
    line.get(from..).unwrap_or_default().iter().take_while(|byte| fits(byte)).count()
}

/// The lines that a diff marks so, where several of them follow each other or the lines that they
/// replace.
pub(super) fn diff_lines(text: &[u8], mark: u8, other: u8) -> Option<View> {
    if text.first() != Some(&mark) && memmem::find(text, &[b'\n', mark]).is_none() {
        return None;
    }
    let mut view = View::default();
    let mut row: Vec<(usize, usize)> = Vec::new();
    let mut start = 0;
    for end in memchr_iter(b'\n', text).chain([text.len()]) {
        match text.get(start) {
            Some(first) if *first == mark => row.push((start + 1, text.len().min(end + 1))),
            Some(first) if *first == other => {}
            _ => close_row(text, &mut row, &mut view),
        }
        start = end + 1;
    }
    close_row(text, &mut row, &mut view);
    (!view.is_empty()).then_some(view)
}

fn join_rows(
    text: &[u8],
    rows: &[Range<usize>],
    field: impl Fn(&[u8]) -> Option<(usize, usize)>,
) -> Option<View> {
    let mut view = View::default();
    let mut row: Vec<(usize, usize)> = Vec::new();
    for stretch in rows {
        let mut start = stretch.start;
        let inside = text.get(stretch.clone()).unwrap_or_default();
        let ends = memchr_iter(b'\n', inside).map(|end| stretch.start + end);
        for end in ends.chain([stretch.end]) {
            let line = text.get(start..end).unwrap_or_default();
            match field(line).filter(|(from, to)| from < to) {
                Some((from, to)) => row.push((start + from, start + to)),
                None if line.is_empty() => {}
                None => close_row(text, &mut row, &mut view),
            }
            start = end + 1;
        }
        close_row(text, &mut row, &mut view);
    }
    (!view.is_empty()).then_some(view)
}

fn close_row(text: &[u8], row: &mut Vec<(usize, usize)>, view: &mut View) {
    if row.len() >= MIN_LINES {
        for (from, to) in row.iter() {
            view.push_literal(text.get(*from..*to).unwrap_or_default(), *from);
        }
    }
    row.clear();
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b':' | b'|' | b')' | b'.' | b',' | b'=') || !byte.is_ascii()
}

/// True if the byte can be in a token although it is no letter or digit.
fn is_joint(byte: u8) -> bool {
    matches!(byte, b'+' | b'/' | b'_' | b'-' | b'=')
}

fn is_noise(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b'"' | b'\'' | b']' | b'|')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(view: Option<View>) -> String {
        String::from_utf8_lossy(view.unwrap_or_default().text()).into_owned()
    }

    fn last(of: &[u8]) -> String {
        text(last_fields(of, &line_stretches(of)))
    }

    fn unnumbered(of: &[u8]) -> String {
        text(without_numbers(of, &line_stretches(of)))
    }

    #[test]
    fn secret_split_across_numbered_or_git_blame_lines_is_joined() {
        assert_eq!(last(b"1\tg\n2:h\n10\tp\n"), "ghp");
        assert_eq!(last(b"x;\n1\tg\n2:h\n10\tp\n}\n3 y\n"), "ghp");
        let blamed = b"^a1 (Me 2020-01-01 1) g\n^a1 (Me 2020-01-01 2) h\nx p";
        assert_eq!(last(blamed), "ghp");
        let numbered = b" 1  g h\n 2  p _\n 3\xe2\x86\x92a b";
        assert_eq!(unnumbered(numbered), "  g h  p _\u{2192}a b");
        assert_eq!(unnumbered(b"fn main() {\n}\n// 3\n"), "");
        let [two, three, four, _] =
            numbered_columns(b"x\n  1 147 0\n  2 150 a\n 10 160 0\ny 1 2\n1 2\n");
        assert_eq!([text(two), text(three), text(four)], ["147150160", "0a0", ""]);
        assert_eq!(text(diff_lines(b"+a\n-x\n+b\n+c\n d\n+e\n", b'+', b'-')), "a\nb\nc\n");
    }
}
