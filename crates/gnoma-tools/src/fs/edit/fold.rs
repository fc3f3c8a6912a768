//! Normalizes text for loose matching (blanks, quotes), with the way back to the original.
//!
//! Folding never adds, drops or merges lines, so a match in folded text covers as many lines of the
//! original as of the text that was looked for.

use std::ops::Range;

use gnoma_core::names::plain_form;
use unicode_normalization::{UnicodeNormalization, char::canonical_combining_class};

/// The differences that a comparison overlooks; each step overlooks what the ones before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchTolerance {
    /// White space and `\r` at line ends.
    TrailingSpace,
    /// Composed or decomposed letters, typographic quotes, dashes and spaces.
    UnicodeForm,
    /// White space at line starts.
    Indentation,
    /// The amount of white space between words.
    Spacing,
}

impl MatchTolerance {
    /// From strict to loose.
    pub(super) const STEPS: [Self; 4] =
        [Self::TrailingSpace, Self::UnicodeForm, Self::Indentation, Self::Spacing];

    /// Names the differences that are overlooked, for `matched ignoring …`.
    pub(super) fn describe_ignored(self) -> &'static str {
        match self {
            Self::TrailingSpace => "white space at line ends",
            Self::UnicodeForm => "Unicode form",
            Self::Indentation => "indentation",
            Self::Spacing => "white space",
        }
    }
}

/// A text that is folded for comparison.
pub(super) struct FoldedText {
    pub(super) text: String,
    /// For each byte of `text`, the bytes of the original it stands for.
    origins: Vec<Origin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    start: usize,
    end: usize,
}

/// One character of folded text.
#[derive(Clone, Copy)]
struct Glyph {
    char: char,
    origin: Origin,
}

impl FoldedText {
    /// Folds `bytes`; what is not UTF-8 becomes `U+FFFD`.
    pub(super) fn from_bytes(bytes: &[u8], looseness: MatchTolerance) -> Self {
        let mut folded = Self {
            text: String::with_capacity(bytes.len()),
            origins: Vec::with_capacity(bytes.len()),
        };
        let mut glyphs = Vec::new();
        let mut start = 0;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let end = start + line.len();
            let body = line.strip_suffix(b"\n").unwrap_or(line);
            glyphs.clear();
            read_glyphs(body, start, looseness, &mut glyphs);
            folded.push_line(&glyphs, looseness);
            if body.len() < line.len() {
                let origin = Origin { start: end - 1, end };
                folded.push(Glyph { char: '\n', origin });
            }
            start = end;
        }
        folded
    }

    fn push_line(&mut self, glyphs: &[Glyph], looseness: MatchTolerance) {
        let is_space = |glyph: &Glyph| glyph.char.is_whitespace();
        let end = glyphs.iter().rposition(|glyph| !is_space(glyph));
        let kept = glyphs.get(..end.map_or(0, |last| last + 1)).unwrap_or_default();
        let indentation = kept.iter().take_while(|glyph| is_space(glyph)).count();
        let (lead, body) = kept.split_at(indentation);
        if looseness < MatchTolerance::Indentation {
            lead.iter().for_each(|&glyph| self.push(glyph));
        }
        for piece in body.chunk_by(|a, b| is_space(a) && is_space(b)) {
            match piece {
                [first, .., last] if looseness >= MatchTolerance::Spacing => self.push(Glyph {
                    char: ' ',
                    origin: Origin { start: first.origin.start, end: last.origin.end },
                }),
                [only] if looseness >= MatchTolerance::Spacing && is_space(only) => {
                    self.push(Glyph { char: ' ', ..*only });
                }
                _ => piece.iter().for_each(|&glyph| self.push(glyph)),
            }
        }
    }

    fn push(&mut self, glyph: Glyph) {
        self.text.push(glyph.char);
        self.origins.resize(self.text.len(), glyph.origin);
    }

    /// The original bytes that `range` of the text stands for; `None` when it begins or ends inside
    /// something that was folded as one.
    pub(super) fn original_range(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let first = self.origins.get(range.start)?;
        let last = self.origins.get(range.end.checked_sub(1)?)?;
        let before = range.start.checked_sub(1).and_then(|at| self.origins.get(at));
        let is_whole = before != Some(first) && self.origins.get(range.end) != Some(last);
        is_whole.then_some(first.start..last.end)
    }
}

/// Decodes `bytes`, which begin at `base` of the original.
fn read_glyphs(bytes: &[u8], base: usize, looseness: MatchTolerance, glyphs: &mut Vec<Glyph>) {
    let mut at = base;
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        if looseness < MatchTolerance::UnicodeForm || valid.is_ascii() {
            glyphs.extend(valid.char_indices().map(|(offset, char)| Glyph {
                char,
                origin: Origin { start: at + offset, end: at + offset + char.len_utf8() },
            }));
        } else {
            read_clusters(valid, at, glyphs);
        }
        at += valid.len();
        let bad = chunk.invalid().len();
        if bad > 0 {
            let origin = Origin { start: at, end: at + bad };
            glyphs.push(Glyph { char: char::REPLACEMENT_CHARACTER, origin });
            at += bad;
        }
    }
}

/// Composes letters with the marks that follow them, and folds typographic characters.
fn read_clusters(text: &str, base: usize, glyphs: &mut Vec<Glyph>) {
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = cluster_length(rest);
        let origin = Origin { start: base + start, end: base + start + length };
        for char in rest.get(..length).unwrap_or(rest).nfc() {
            match plain_form(char) {
                Some(plain) => glyphs.extend(plain.chars().map(|char| Glyph { char, origin })),
                None => glyphs.push(Glyph { char, origin }),
            }
        }
        start += length;
    }
}

/// Bytes of the first character and the marks that may be composed with it. White space stands alone:
/// marks compose with none, and it may be folded with the white space before it.
fn cluster_length(text: &str) -> usize {
    if let Some(space) = text.chars().next().filter(|char| char.is_whitespace()) {
        return space.len_utf8();
    }
    text.char_indices()
        .skip(1)
        .find(|&(_, char)| !continues_cluster(char))
        .map_or(text.len(), |(at, _)| at)
}

fn continues_cluster(char: char) -> bool {
    let is_hangul_vowel_or_final = matches!(char, '\u{1160}'..='\u{11ff}');
    canonical_combining_class(char) != 0 || is_hangul_vowel_or_final
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folded(text: &str, looseness: MatchTolerance) -> String {
        FoldedText::from_bytes(text.as_bytes(), looseness).text
    }

    #[test]
    fn each_match_tolerance_step_folds_more_differences() {
        let text = "\t a\u{a0}  “b” – e\u{301}…  \r\n";
        assert_eq!(
            MatchTolerance::STEPS.map(|looseness| folded(text, looseness)),
            [
                "\t a\u{a0}  “b” – e\u{301}…\n",
                "\t a   \"b\" - é...\n",
                "a   \"b\" - é...\n",
                "a \"b\" - é...\n",
            ]
        );
    }

    #[test]
    fn range_inside_a_folded_character_has_no_original_range() {
        let folded = FoldedText::from_bytes("a…b".as_bytes(), MatchTolerance::UnicodeForm);
        assert_eq!(folded.text, "a...b");
        assert_eq!(folded.original_range(&(1..4)), Some(1..4));
        assert_eq!(folded.original_range(&(1..2)), None);
        assert_eq!(folded.original_range(&(2..5)), None);
    }

    #[test]
    fn composed_and_decomposed_text_fold_alike() {
        for (one, other) in
            [("é", "e\u{301}"), ("각", "\u{1100}\u{1161}\u{11a8}"), ("Å", "\u{212b}")]
        {
            let form = MatchTolerance::UnicodeForm;
            assert_eq!(folded(one, form), folded(other, form));
        }
    }

    #[test]
    fn combining_mark_after_white_space_is_not_folded_with_it() {
        let folded = FoldedText::from_bytes(&[14, 11, 9, 214, 145], MatchTolerance::Spacing);
        assert_eq!(folded.text, "\u{e} \u{591}");
        assert_eq!(folded.original_range(&(1..2)), Some(1..3));
        assert_eq!(folded.original_range(&(2..4)), Some(3..5));
    }

    proptest! {
        /// Lines stay lines, the whole text stands for itself, and folding twice changes nothing.
        #[test]
        fn folding_preserves_line_count_and_is_idempotent(bytes in prop::collection::vec(any::<u8>(), 0..80), step in 0_usize..4) {
            let folded = FoldedText::from_bytes(&bytes, MatchTolerance::STEPS[step]);
            let ends = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
            prop_assert_eq!(ends(&bytes), ends(folded.text.as_bytes()));
            prop_assert_eq!(folded.text.len(), folded.origins.len());
            prop_assert!(folded.origins.windows(2).all(|pair| pair[0] == pair[1] || pair[0].end <= pair[1].start));
            let again = FoldedText::from_bytes(folded.text.as_bytes(), MatchTolerance::STEPS[step]);
            prop_assert_eq!(again.text, folded.text);
        }
    }
}
