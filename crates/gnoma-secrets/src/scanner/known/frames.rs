//! What stands in the frame of a list or a table, read without the frame.
//!
//! `{"0":"gh","1":"p_"}`, `[(0, 'gh'), (1, 'p_')]` and `[{"i":0,"c":"gh"},…]` count; `column` and `pr` write one text
//! down the columns of a table. A value that was written so stands in a row only here.

use std::ops::Range;

use memchr::memchr_iter;

use crate::decode::View;

/// Numbers that count up or down by one, of which so many make a list.
const MIN_COUNTED: usize = 3;
/// Bytes between two of them, at most.
const MAX_GAP_BYTES: usize = 64;
/// Longest number that counts, in digits.
const MAX_COUNTER_DIGITS: usize = 6;
/// Words of one entry that are compared with those of the others.
const MAX_FRAME_WORDS: usize = 8;
/// Share of the entries, in percent, that have a word of the frame.
const FRAME_PERCENT: usize = 80;
/// Lines of a table, fewest and most, and its widest cell.
const MIN_LINES: usize = 2;
const MAX_LINES: usize = 400;
const MAX_CELL_BYTES: usize = 40;
/// Longest line of a table, and most of its columns.
const MAX_LINE_BYTES: usize = 240;
const MAX_COLUMNS: usize = 12;

/// Returns the text between numbers that count, without the numbers and without the words that are the same in each
/// entry.
pub(super) fn without_counters(text: &[u8]) -> Option<View> {
    let mut view = View::default();
    let mut counted: Vec<Range<usize>> = Vec::new();
    let (mut last, mut step) = (0_i64, 0_i64);
    for number in find_numbers(text) {
        let Some(value) = value_of(text, &number) else { continue };
        match counted.last() {
            Some(before) if number.start - before.end <= MAX_GAP_BYTES => {
                let next = value - last;
                let fits = if step == 0 { next.abs() == 1 } else { next == step };
                if fits {
                    (last, step) = (value, next);
                    counted.push(number);
                }
            }
            _ => {
                add_counted_entries(text, &counted, &mut view);
                (last, step) = (value, 0);
                counted.clear();
                counted.push(number);
            }
        }
    }
    add_counted_entries(text, &counted, &mut view);
    (!view.is_empty()).then_some(view)
}

/// Numbers that touch no letter.
fn find_numbers(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let start = at + rest.iter().position(u8::is_ascii_digit)?;
            let rest = text.get(start..).unwrap_or_default();
            let end = start + rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            at = end;
            let before = start.checked_sub(1).and_then(|at| text.get(at));
            let is_free = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
            if end - start <= MAX_COUNTER_DIGITS && is_free(before) && is_free(text.get(end)) {
                return Some(start..end);
            }
        }
    })
}

fn value_of(text: &[u8], number: &Range<usize>) -> Option<i64> {
    std::str::from_utf8(text.get(number.clone())?).ok()?.parse().ok()
}

fn add_counted_entries(text: &[u8], counted: &[Range<usize>], view: &mut View) {
    if counted.len() < MIN_COUNTED {
        return;
    }
    let ends = counted.iter().skip(1).map(|next| next.start);
    let last = counted.last().map_or(0, |last| last.end);
    let ends = ends.chain([text.len().min(last + MAX_GAP_BYTES)]);
    let entries: Vec<Range<usize>> =
        counted.iter().zip(ends).map(|(number, end)| number.end..end).collect();
    let frame = frame_words(text, &entries);
    view.push_line_break(last);
    for entry in &entries {
        let mut from = entry.start;
        for (place, word) in find_words(text, entry).enumerate() {
            if frame.get(place).copied().unwrap_or_default() {
                push_range(text, from..word.start, view);
                from = word.end;
            }
        }
        push_range(text, from..entry.end, view);
    }
}

fn push_range(text: &[u8], range: Range<usize>, view: &mut View) {
    view.push_literal(text.get(range.clone()).unwrap_or_default(), range.start);
}

/// Returns the words of an entry, by their place, that are the same in nearly all entries.
fn frame_words(text: &[u8], entries: &[Range<usize>]) -> [bool; MAX_FRAME_WORDS] {
    let mut frame = [false; MAX_FRAME_WORDS];
    let Some(sample) = entries.get(1) else { return frame };
    let word_at = |entry: &Range<usize>, place: usize| {
        find_words(text, entry).nth(place).and_then(|word| text.get(word))
    };
    for (place, is_frame) in frame.iter_mut().enumerate() {
        let Some(word) = word_at(sample, place) else { break };
        let same = entries.iter().filter(|entry| word_at(entry, place) == Some(word)).count();
        // What stands before a number is missing behind the last.
        *is_frame = same * 100 >= (entries.len() - 1) * FRAME_PERCENT;
    }
    frame
}

/// Runs of letters and digits.
fn find_words<'t>(
    text: &'t [u8],
    within: &Range<usize>,
) -> impl Iterator<Item = Range<usize>> + use<'t> {
    let (mut at, end) = (within.start, within.end);
    std::iter::from_fn(move || {
        let rest = text.get(at..end)?;
        let start = at + rest.iter().position(u8::is_ascii_alphanumeric)?;
        let rest = text.get(start..end).unwrap_or_default();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        at = start + length;
        Some(start..at)
    })
}

/// The cells of tables, read down one column after another.
pub(super) fn down_columns(text: &[u8]) -> Option<View> {
    let mut view = View::default();
    let mut lines: Vec<Vec<Range<usize>>> = Vec::new();
    let mut start = 0;
    for end in memchr_iter(b'\n', text).chain([text.len()]) {
        let cells = table_cells(text, start..end);
        let is_row = cells.len() >= 2 || (cells.len() == 1 && lines.len() >= MIN_LINES);
        if is_row && lines.len() < MAX_LINES {
            lines.push(cells);
        } else {
            read_down(text, &lines, &mut view);
            lines.clear();
        }
        start = end + 1;
    }
    read_down(text, &lines, &mut view);
    (!view.is_empty()).then_some(view)
}

fn read_down(text: &[u8], lines: &[Vec<Range<usize>>], view: &mut View) {
    if lines.len() < MIN_LINES {
        return;
    }
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default().min(MAX_COLUMNS);
    for column in 0..columns {
        for cell in lines.iter().filter_map(|line| line.get(column)) {
            push_range(text, cell.clone(), view);
        }
    }
    view.push_line_break(lines.last().and_then(|line| line.last()).map_or(0, |cell| cell.end));
}

/// Returns the ranges between tabs and runs of blanks in a line; empty if it is no line of a table.
fn table_cells(text: &[u8], line: Range<usize>) -> Vec<Range<usize>> {
    let mut cells = Vec::new();
    if line.len() > MAX_LINE_BYTES {
        return cells;
    }
    let mut at = line.start;
    while let Some(rest) = text.get(at..line.end).filter(|rest| !rest.is_empty()) {
        let start = at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = text.get(start..line.end).unwrap_or_default();
        let is_end = |pair: &[u8]| pair == b"  " || pair.first() == Some(&b'\t');
        let end = rest.windows(2).position(is_end).map_or(line.end, |length| start + length);
        let cell = start..end;
        at = end.max(start + 1);
        let is_blank = text.get(cell.clone()).unwrap_or_default().trim_ascii().is_empty();
        if is_blank {
            continue;
        }
        if cell.len() > MAX_CELL_BYTES {
            return Vec::new();
        }
        cells.push(cell);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(view: Option<View>) -> String {
        let view = view.unwrap_or_default();
        let letters = view.text().iter().filter(|byte| byte.is_ascii_alphanumeric());
        letters.map(|byte| char::from(*byte)).collect()
    }

    #[test]
    fn secret_split_into_numbered_list_entries_is_joined() {
        for list in [
            r#"{"0":"gh","1":"p7","2":"Kq","3":"9"}"#,
            r#"[(0, 'gh'), (1, 'p7'), (2, 'Kq'), (3, '9')]"#,
            r#"[{"i":0,"c":"gh"},{"i":1,"c":"p7"},{"i":2,"c":"Kq"},{"i":3,"c":"9"}]"#,
            "3: gh, 2: p7, 1: Kq, 0: 9",
        ] {
            assert!(text(without_counters(list.as_bytes())).contains("ghp7Kq9"), "{list}");
        }
        assert_eq!(text(without_counters(b"port 80, 443 and 8080; 1 of 9")), "");
    }

    #[test]
    fn secret_split_down_table_columns_is_joined() {
        assert_eq!(text(down_columns(b"gh    Kq\np7    9\n\nwords of a line\n")), "ghp7Kq9");
        assert_eq!(text(down_columns(b"gh\tKq\tx\np7\t9\n")), "ghp7Kq9x");
        assert_eq!(text(down_columns(b"one line  of it\nand another\n")), "");
    }
}
