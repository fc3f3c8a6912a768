//! Colours that a program writes into a line (SGR sequences), as styles that the theme paints. All other escape
//! sequences and control characters are removed.

use crate::{
    clean::after_sequence,
    text::{Line, Span, Style, TextRole, is_harmful},
};

const ESCAPE: char = '\u{1b}';
/// Most bytes of the numbers of one sequence.
const MAX_NUMBERS: usize = 64;
/// The theme's inks for the eight colours: black, red, green, yellow, blue, magenta, cyan, white.
const INKS: [TextRole; 8] = [
    TextRole::Dim,
    TextRole::Bad,
    TextRole::Good,
    TextRole::Warning,
    TextRole::Link,
    TextRole::Keyword,
    TextRole::Accent,
    TextRole::Text,
];

/// Returns one line of a program's output with its colours.
#[must_use]
pub fn coloured_line(text: &str) -> Line {
    let mut line = Line::default();
    let mut style = Style::default();
    let mut rest = text.lines().next().unwrap_or_default();
    while let Some((before, sequence)) = rest.split_once(ESCAPE) {
        push(&mut line, before, style);
        rest = match numbers_of(sequence) {
            Some((numbers, after)) => {
                apply(numbers, &mut style);
                after
            }
            None => after_sequence(sequence),
        };
    }
    push(&mut line, rest, style);
    line
}

fn push(line: &mut Line, text: &str, style: Style) {
    let text: String = text.chars().filter(|c| !is_harmful(*c)).collect();
    if !text.is_empty() {
        line.spans.push(Span::new(text, style));
    }
}

/// The numbers of a sequence that sets colours, and what follows it.
fn numbers_of(sequence: &str) -> Option<(&str, &str)> {
    let (numbers, after) = sequence.strip_prefix('[')?.split_once('m')?;
    let is_number = |c: char| c.is_ascii_digit() || c == ';' || c == ':';
    (numbers.len() <= MAX_NUMBERS && numbers.chars().all(is_number)).then_some((numbers, after))
}

fn apply(numbers: &str, style: &mut Style) {
    let mut codes = numbers.split(';').map(|code| match code {
        "" => Some(0_u8),
        code => code.parse().ok(),
    });
    while let Some(code) = codes.next() {
        match code.unwrap_or(u8::MAX) {
            0 => *style = Style::default(),
            1 => style.bold = true,
            2 => style.ink = TextRole::Dim,
            3 => style.italic = true,
            4 => style.underline = true,
            9 => style.strike = true,
            22 => style.bold = false,
            23 => style.italic = false,
            24 => style.underline = false,
            29 => style.strike = false,
            code @ (30..=37 | 90..=97) => style.ink = ink(code % 10),
            39 => style.ink = TextRole::Text,
            // An exact colour has no place in a theme; its numbers are no codes.
            code @ (38 | 48) => match codes.next().flatten() {
                Some(5) => {
                    let colour = codes.next().flatten().filter(|colour| *colour < 16);
                    if let Some(colour) = colour.filter(|_| code == 38) {
                        style.ink = ink(colour % 8);
                    }
                }
                Some(2) => drop(codes.nth(2)),
                _ => (),
            },
            _ => (),
        }
    }
}

fn ink(colour: u8) -> TextRole {
    INKS.get(usize::from(colour)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<(String, TextRole, bool)> {
        let spans = coloured_line(text).spans;
        spans.into_iter().map(|span| (span.text.into(), span.style.ink, span.style.bold)).collect()
    }

    #[test]
    fn sgr_colours_of_a_status_script_map_to_text_roles() {
        let text =
            "a\u{1b}[1;31mb\u{1b}[0mc\u{1b}[38;5;2md\u{1b}[38;2;1;31;3me\u{1b}[93;48;5;1mf\nrest";
        let of = |text: &str, ink, bold| (text.to_owned(), ink, bold);
        assert_eq!(
            shown(text),
            [
                of("a", TextRole::Text, false),
                of("b", TextRole::Bad, true),
                of("c", TextRole::Text, false),
                of("d", TextRole::Good, false),
                of("e", TextRole::Good, false),
                of("f", TextRole::Warning, false),
            ]
        );
    }

    #[test]
    fn other_sequences_and_controls_are_removed() {
        let text = "a\u{1b}[2Jb\u{1b}]0;title\u{7}c\rd\u{9b}H\u{202e}e\u{1b}[4:3mf\u{1b}";
        assert_eq!(coloured_line(text).plain_text(), "abcdHef");
        assert_eq!(coloured_line("\n second").plain_text(), "");
    }

    proptest! {
        #[test]
        fn status_script_line_has_no_harmful_characters(text in "[a-z\u{1b}\\[\\];0-9mH\u{7}\u{9b}\r漢]{0,60}") {
            prop_assert!(!coloured_line(&text).plain_text().contains(is_harmful));
        }
    }
}
