//! Small layouts that several blocks share, and numbers as people read them.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::text::{Line, Span, Style, TextRole, display_width};

/// Narrower than this, the lines of a block have no prefix.
const MIN_MARKED_COLUMNS: usize = 12;

/// A line of text behind a mark, as lines of at most `columns`; all of them start below the text.
pub(super) fn wrap_with_mark(mark: &str, text: &str, style: Style, columns: usize) -> Vec<Line> {
    let line = Line::new(text.to_owned(), style);
    let mark = if columns < MIN_MARKED_COLUMNS { "" } else { mark };
    let lead = display_width(mark);
    let mut lines = line.wrap(columns - lead, &Line::default());
    lines.iter_mut().for_each(Line::trim_end);
    if lead > 0 {
        for (at, line) in lines.iter_mut().enumerate() {
            let lead = if at == 0 { mark.to_owned() } else { " ".repeat(lead) };
            line.spans.insert(0, Span { text: lead.into(), style, link: None });
        }
    }
    lines
}

/// Returns the line that tells the number of lines left out.
pub(super) fn more_lines_note(lines: usize, columns: usize) -> Line {
    let noun = if lines == 1 { "line" } else { "lines" };
    let text = truncate_text(&format!("  … {lines} more {noun}"), columns);
    Line::new(text, Style::with_ink(TextRole::Dim))
}

/// A text of at most so many columns; a sign at its end says that it continues.
pub(super) fn truncate_text(text: &str, columns: usize) -> String {
    if display_width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for grapheme in text.graphemes(true) {
        used += display_width(grapheme);
        if used > columns {
            break;
        }
        kept.push_str(grapheme);
    }
    kept.push('…');
    kept
}

/// A size, such as `14 KB`.
pub(super) fn format_size(bytes: usize) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KB", bytes / 1_024),
        _ => format!("{}.{} MB", bytes / 1_048_576, bytes % 1_048_576 * 10 / 1_048_576),
    }
}

/// A number, such as `12.3k`.
pub(super) fn format_count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_abbreviated() {
        assert_eq!(
            [format_size(812), format_size(14_500), format_size(1_500_000)],
            ["812 B", "14 KB", "1.4 MB"]
        );
        assert_eq!(
            [format_count(999), format_count(12_345), format_count(1_200_000)],
            ["999", "12.3k", "1.2M"]
        );
    }

    #[test]
    fn truncation_respects_grapheme_boundaries() {
        assert_eq!(truncate_text("漢字漢字", 6), "漢字…");
        assert_eq!(truncate_text("short", 5), "short");
        assert_eq!(truncate_text("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }
}
