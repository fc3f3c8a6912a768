//! Tables as plain text: the last column takes what the others leave of the terminal's width. Where no terminal reads
//! them, nothing is cut.

use std::io::IsTerminal as _;

use crate::screen::{self, Size};

/// Width of a table that a terminal shows in no width that it tells.
const MIN_COLUMNS: usize = 80;
/// The space between two columns.
const GAP: &str = "  ";
/// The last column gets so much however wide the others are.
const MIN_LAST: usize = 20;

/// Renders a heading and a line for each row; nothing if there are no rows.
pub fn render_table<const N: usize>(
    heads: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let stdout = std::io::stdout();
    let columns = match stdout.is_terminal() {
        true => Size::of_terminal(&stdout).columns.max(MIN_COLUMNS),
        false => usize::MAX,
    };
    lines_within(heads, rows, columns)
}

fn lines_within<const N: usize>(
    heads: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    columns: usize,
) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    if rows.is_empty() {
        return String::new();
    }
    let all: Vec<[String; N]> = std::iter::once(heads.map(str::to_owned)).chain(rows).collect();
    let mut widths = [0; N];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = screen::line_width(cell).max(*width);
        }
    }
    let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP.len()).sum();
    let last = columns.saturating_sub(before).max(MIN_LAST);
    if let Some(width) = widths.last_mut() {
        *width = last.min(*width);
    }
    all.iter().map(|row| render_row(row, &widths)).collect()
}

fn render_row(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let cell = screen::fit_line(cell, *width);
        line.push_str(&cell);
        line.push_str(&" ".repeat(width.saturating_sub(screen::line_width(&cell))));
        line.push_str(GAP);
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// Formats a size for people, such as `1.2 kB`.
pub fn format_size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let unit = UNITS.into_iter().find(|(_, unit)| bytes >= *unit);
    match unit {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_lines_fit_the_width() {
        let rows =
            [["a".to_owned(), "x\ny ".repeat(100)], ["日本語".to_owned(), "日本語".repeat(40)]];
        let text = lines_within(["id", "what"], rows.clone(), 80);
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("id      what\na       x y x y"), "{text}");
        assert!(text.lines().all(|line| screen::line_width(line) <= 80), "{text}");
        let piped = lines_within(["id", "what"], rows, usize::MAX);
        assert!(piped.contains(&"日本語".repeat(40)), "cut: {piped}");
        assert_eq!(render_table(["id"], []), "");
    }

    #[test]
    fn file_sizes_are_abbreviated() {
        assert_eq!(format_size(999), "999 bytes");
        assert_eq!(format_size(1_250), "1.2 kB");
        assert_eq!(format_size(9_990_000_000), "9.9 GB");
    }
}
