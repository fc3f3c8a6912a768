//! Frames for terminals that can show only ASCII: a plain letter replaces every mark, and question marks of the
//! same width replace what the terminal cannot show, so that nothing moves. Pure. Only what is shown changes, never
//! what is saved, copied or sent.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::{
    frame::Frame,
    text::{Line, display_width},
};

/// Stands for one column of what cannot be shown.
const UNKNOWN: char = '?';

/// The characters that a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// All characters of Unicode.
    #[default]
    Unicode,
    /// Letters, digits and signs of ASCII.
    Ascii,
}

impl Charset {
    /// By the values of `LC_ALL`, `LC_CTYPE` and `LANG`, of which the first that is set counts. Where
    /// none is, as in many containers, the terminal is more likely to show everything than not.
    #[must_use]
    pub fn from_locale(lc_all: Option<&str>, lc_ctype: Option<&str>, lang: Option<&str>) -> Self {
        let set = [lc_all, lc_ctype, lang].into_iter().flatten().find(|value| !value.is_empty());
        let Some(locale) = set else { return Self::Unicode };
        let locale = locale.to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Self::Unicode
        } else {
            Self::Ascii
        }
    }

    /// A picture that the terminal can show.
    #[must_use]
    pub fn adapt_frame(self, mut frame: Frame) -> Frame {
        if self == Self::Ascii {
            frame.finished.iter_mut().chain(&mut frame.live).for_each(transliterate_line);
        }
        frame
    }

    /// A text that the terminal can show.
    #[must_use]
    pub fn adapt_text(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Ascii if !text.is_ascii() => transliterate_text(text).into(),
            Self::Ascii | Self::Unicode => text.into(),
        }
    }
}

fn transliterate_line(line: &mut Line) {
    for span in line.spans.iter_mut().filter(|span| !span.text.is_ascii()) {
        span.text = transliterate_text(&span.text).into();
    }
}

fn transliterate_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        let columns = display_width(grapheme);
        match grapheme.chars().next() {
            Some(c) if columns == 1 => shown.push(ascii_replacement(c)),
            Some(_) | None => shown.extend(std::iter::repeat_n(UNKNOWN, columns)),
        }
    }
    shown
}

/// The replacement for a character of one column. A letter loses its accent where that is a character of
/// its own.
fn ascii_replacement(c: char) -> char {
    match c {
        _ if c.is_ascii() => c,
        '\u{a0}' => ' ',
        '›' | '»' | '→' | '↳' | '▸' | '≥' => '>',
        '‹' | '«' | '←' | '≤' => '<',
        '─' | '━' | '–' | '—' | '‐' | '‑' | '−' | '·' | '◦' | '◑' => '-',
        '│' | '┃' | '◐' => '|',
        '┼' | '├' | '┤' | '┬' | '┴' | '┌' | '┐' | '└' | '┘' | '╭' | '╮' | '╰' | '╯' | '✓' => {
            '+'
        }
        '•' | '●' | '▪' => '*',
        '○' | '■' => 'o',
        '█' => '#',
        '▓' => '%',
        '…' | '⋯' | '∴' => '~',
        '⋮' => ':',
        '✗' | '×' => 'x',
        '≡' | '▒' => '=',
        '▾' | '↓' => 'v',
        '↑' => '^',
        '◓' => '/',
        '◒' => '\\',
        '“' | '”' | '„' => '"',
        '‘' | '’' | '‚' => '\'',
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Style;

    #[test]
    fn charset_follows_lc_all_lc_ctype_lang_precedence() {
        assert_eq!(Charset::from_locale(None, None, None), Charset::Unicode);
        assert_eq!(Charset::from_locale(Some(""), None, Some("de_AT.UTF-8")), Charset::Unicode);
        assert_eq!(Charset::from_locale(Some("C"), None, Some("de_AT.UTF-8")), Charset::Ascii);
        assert_eq!(Charset::from_locale(None, Some("C.utf8"), Some("C")), Charset::Unicode);
        assert_eq!(Charset::from_locale(None, None, Some("de_AT.ISO-8859-1")), Charset::Ascii);
    }

    #[test]
    fn ascii_charset_replaces_symbols_and_preserves_width() {
        assert_eq!(Charset::Ascii.adapt_text("› ✓ ünd e\u{301} 漢 …"), "> + ?nd e ?? ~");
        assert_eq!(Charset::Unicode.adapt_text("› 漢"), "› 漢");
    }

    proptest! {
        #[test]
        fn ascii_charset_output_is_ascii_of_the_same_width(
            texts in prop::collection::vec("[a-z›…漢🎉é\u{301}\u{200d}─ ]{0,12}", 0..5),
        ) {
            let before: Vec<Line> =
                texts.into_iter().map(|text| Line::new(text, Style::default())).collect();
            let (finished, live) = (before.clone(), before.clone());
            let after = Charset::Ascii.adapt_frame(Frame { finished, live, cursor: None });
            for (before, after) in before.iter().zip(&after.live) {
                prop_assert!(after.plain_text().is_ascii());
                prop_assert_eq!(before.width(), after.width());
            }
            prop_assert_eq!(after.finished, after.live);
        }
    }
}
