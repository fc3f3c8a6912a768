//! Cleans program output for display: escape sequences are dropped, a line that was written over keeps what was
//! written last, tabs become spaces. Colours of programs are not kept.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::text::display_width;

/// Columns from one tab stop to the next.
const TAB_COLUMNS: usize = 4;
const ESCAPE: char = '\u{1b}';

/// A text without escape sequences, with each line as a terminal would show it in the end.
#[must_use]
pub fn sanitize_output(text: &str) -> String {
    let text = without_escapes(text);
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let line = line.trim_end_matches('\r');
        shown.push_str(line.rsplit('\r').next().unwrap_or(line));
        shown.push_str(end);
    }
    shown
}

/// A line with spaces in place of tabs.
#[must_use]
pub fn expand_tabs(line: &str) -> String {
    if !line.contains('\t') {
        return line.to_owned();
    }
    let mut shown = String::with_capacity(line.len() + TAB_COLUMNS);
    let mut column = 0;
    for grapheme in line.graphemes(true) {
        if grapheme == "\t" {
            let spaces = TAB_COLUMNS - column % TAB_COLUMNS;
            shown.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        } else {
            shown.push_str(grapheme);
            column += display_width(grapheme);
        }
    }
    shown
}

fn without_escapes(text: &str) -> String {
    let mut rest = text;
    let mut shown = String::with_capacity(text.len());
    while let Some((before, sequence)) = rest.split_once(ESCAPE) {
        shown.push_str(before);
        rest = after_sequence(sequence);
    }
    shown.push_str(rest);
    shown
}

/// Returns the text after an escape sequence, whose first character is gone already.
pub(crate) fn after_sequence(text: &str) -> &str {
    let mut characters = text.chars();
    match characters.next() {
        Some('[') => {
            let end = |c: char| ('@'..='~').contains(&c) || c == ESCAPE || c == '\n';
            let parameters = characters.as_str();
            match parameters.find(end) {
                Some(at) if parameters[at..].starts_with([ESCAPE, '\n']) => &parameters[at..],
                Some(at) => &parameters[at + 1..],
                None => "",
            }
        }
        // Texts for the terminal end with a bell or with another sequence.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            let end = |c: char| matches!(c, '\u{7}' | ESCAPE | '\n');
            let words = characters.as_str();
            match words.find(end) {
                Some(at) if words[at..].starts_with('\u{7}') => &words[at + 1..],
                Some(at) => words[at..].strip_prefix("\u{1b}\\").unwrap_or(&words[at..]),
                None => "",
            }
        }
        Some('(' | ')' | '#' | '%') => {
            characters.next();
            characters.as_str()
        }
        Some(ESCAPE | '\n') => text,
        Some(_) | None => characters.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sanitize_output_removes_escape_sequences_and_carriage_returns() {
        assert_eq!(sanitize_output("\u{1b}[1;31merror\u{1b}[0m: no\n"), "error: no\n");
        assert_eq!(sanitize_output("10 %\r50 %\r100 %\ndone\r\n"), "100 %\ndone\n");
        assert_eq!(sanitize_output("\u{1b}]8;;https://x.org\u{1b}\\text\u{1b}]8;;\u{7}!"), "text!");
        assert_eq!(sanitize_output("a\u{1b}[31"), "a");
        assert_eq!(sanitize_output("\u{1b}(Bplain\u{1b}"), "plain");
    }

    #[test]
    fn tabs_expand_to_the_next_tab_stop() {
        assert_eq!(expand_tabs("a\tb\t\t漢\tc"), "a   b       漢  c");
    }

    proptest! {
        #[test]
        fn sanitize_output_leaves_no_escape(text in "[a-z\u{1b}\\[\\];0-9m\u{7}\r\n漢\\\\]{0,40}") {
            prop_assert!(!sanitize_output(&text).contains(ESCAPE));
            prop_assert_eq!(sanitize_output(&text).lines().count(), sanitize_output(&sanitize_output(&text)).lines().count());
        }
    }
}
