//! Fuzzy matching for edits: finds a text that is in a file, though not to the letter.
//!
//! Comparison is loosened step by step, and the first step with a match decides: one match is taken,
//! several are refused. A match never begins or ends inside a word, and white space overlooked at an
//! edge of the text must be the edge of a line in the file.

use std::ops::Range;

use memchr::memmem;

use super::fold::{FoldedText, MatchTolerance};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text that an edit looks for and the text that it puts there, with `\n` line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SoughtText<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    /// A match must begin where a line's text begins.
    starts_line: bool,
    /// A match must end where a line's text ends.
    ends_line: bool,
}

/// The one place that matches.
#[derive(Debug)]
pub(super) struct LooseMatch<'a> {
    pub(super) span: Range<usize>,
    pub(super) looseness: MatchTolerance,
    /// The text that was found there: the one asked for, perhaps without blank lines at its edges.
    pub(super) wanted: SoughtText<'a>,
}

/// The places of an ambiguous search, where several match.
#[derive(Debug)]
pub(super) struct AmbiguousMatch {
    pub(super) offsets: Vec<usize>,
    pub(super) looseness: MatchTolerance,
}

/// Looks for `wanted` in `content`; `None` when it is nowhere.
pub(super) fn find_loosely<'a>(
    content: &[u8],
    wanted: SoughtText<'a>,
) -> Result<Option<LooseMatch<'a>>, AmbiguousMatch> {
    let peeled = wanted.peel_blank_lines();
    let base = text_start(content);
    let text = content.get(base..).unwrap_or_default();
    for looseness in MatchTolerance::STEPS {
        let folded = FoldedText::from_bytes(text, looseness);
        for wanted in [Some(wanted), peeled].into_iter().flatten() {
            let spans = find_matches(text, &folded, wanted, looseness);
            match spans.as_slice() {
                [] => {}
                [only] => {
                    return Ok(Some(LooseMatch {
                        span: only.start + base..only.end + base,
                        looseness,
                        wanted,
                    }));
                }
                several => {
                    return Err(AmbiguousMatch {
                        offsets: several.iter().map(|span| span.start + base).collect(),
                        looseness,
                    });
                }
            }
        }
    }
    Ok(None)
}

/// Returns the offset at which the text begins: after a byte order mark.
pub(super) fn text_start(content: &[u8]) -> usize {
    if content.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
}

impl<'a> SoughtText<'a> {
    pub(super) fn new(old: &'a str, new: &'a str) -> Self {
        Self { old, new, starts_line: false, ends_line: false }
    }

    /// The wanted text without the blank lines that both sides begin or end with: these do not change.
    fn peel_blank_lines(self) -> Option<Self> {
        let mut peeled = self;
        while let (Some(old), Some(new)) = (without_first(peeled.old), without_first(peeled.new)) {
            (peeled.old, peeled.new, peeled.starts_line) = (old, new, true);
        }
        while let (Some(old), Some(new)) = (without_last(peeled.old), without_last(peeled.new)) {
            (peeled.old, peeled.new, peeled.ends_line) = (old, new, true);
        }
        (peeled != self).then_some(peeled)
    }
}

fn without_first(text: &str) -> Option<&str> {
    let (line, rest) = text.split_once('\n')?;
    line.trim().is_empty().then_some(rest)
}

fn without_last(text: &str) -> Option<&str> {
    let (rest, line) = text.rsplit_once('\n')?;
    line.trim().is_empty().then_some(rest)
}

/// The spans of `text` that match.
fn find_matches(
    text: &[u8],
    folded: &FoldedText,
    wanted: SoughtText<'_>,
    looseness: MatchTolerance,
) -> Vec<Range<usize>> {
    let needle = FoldedText::from_bytes(wanted.old.as_bytes(), looseness).text;
    if needle.trim().is_empty() {
        return Vec::new();
    }
    let ignores_indentation = looseness >= MatchTolerance::Indentation;
    let edges = Edges {
        starts_line: wanted.starts_line || ignores_indentation && begins_blank(wanted.old.chars()),
        ends_line: wanted.ends_line || begins_blank(wanted.old.chars().rev()),
    };
    let finder = memmem::Finder::new(needle.as_bytes());
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(at) = folded.text.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
        let range = from + at..from + at + needle.len();
        from = range.start + 1;
        let Some(span) =
            folded.original_range(&range).filter(|_| edges.allows_match(&folded.text, &range))
        else {
            continue;
        };
        let from_line_start = ignores_indentation && begins_line(&folded.text, range.start);
        spans.push(widen_span(text, span, from_line_start));
    }
    spans
}

/// With the indentation before it, and never between `\r` and `\n`.
fn widen_span(text: &[u8], span: Range<usize>, with_indentation: bool) -> Range<usize> {
    let before = text.get(..span.start).unwrap_or_default();
    let start = if with_indentation {
        memchr::memrchr(b'\n', before).map_or(0, |end| end + 1)
    } else if before.last() == Some(&b'\r') && text.get(span.start) == Some(&b'\n') {
        span.start - 1
    } else {
        span.start
    };
    start..span.end
}

/// The conditions on the places where a match begins and ends.
struct Edges {
    starts_line: bool,
    ends_line: bool,
}

impl Edges {
    fn allows_match(&self, text: &str, range: &Range<usize>) -> bool {
        (begins_line(text, range.start) || !self.starts_line)
            && (ends_line(text, range.end) || !self.ends_line)
            && !is_inside_word(text, range.start)
            && !is_inside_word(text, range.end)
    }
}

fn begins_line(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| before.is_empty() || before.ends_with('\n'))
}

fn ends_line(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|after| after.is_empty() || after.starts_with('\n'))
}

fn is_inside_word(text: &str, at: usize) -> bool {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    text.split_at_checked(at)
        .is_none_or(|(before, after)| before.ends_with(is_word) && after.starts_with(is_word))
}

/// Reports whether the first of `chars` is white space within a line.
fn begins_blank(mut chars: impl Iterator<Item = char>) -> bool {
    chars.next().is_some_and(|char| char.is_whitespace() && char != '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(content: &str, old: &str) -> Option<String> {
        let found = find_loosely(content.as_bytes(), SoughtText::new(old, "")).unwrap()?;
        Some(content[found.span].to_owned())
    }

    #[test]
    fn fuzzy_match_never_splits_a_word() {
        assert_eq!(found("append\n\tfoo()\n", "end\nfoo()"), None);
        assert_eq!(found("end\n\tfoo()\n", "end\nfoo()").as_deref(), Some("end\n\tfoo()"));
    }

    #[test]
    fn fuzzy_match_of_edge_white_space_requires_a_line_edge() {
        assert_eq!(found("if (a) return x;\n", "    return x;"), None);
        assert_eq!(found("\treturn x;\n", "    return x;").as_deref(), Some("\treturn x;"));
        assert_eq!(found("a = 1 + 2\n", "a = 1  "), None);
    }

    #[test]
    fn fuzzy_match_uses_the_strictest_tolerance_that_matches() {
        let content = "  a b  \n\ta b\n";
        let found =
            find_loosely(content.as_bytes(), SoughtText::new("  a b\n", "")).unwrap().unwrap();
        assert_eq!(found.looseness, MatchTolerance::TrailingSpace);
        let several =
            find_loosely(content.as_bytes(), SoughtText::new("   a b\n", "")).unwrap_err();
        assert_eq!((several.looseness, several.offsets), (MatchTolerance::Indentation, vec![0, 8]));
    }

    #[test]
    fn fuzzy_match_of_white_space_alone_finds_nothing() {
        assert_eq!(found("a\n\n\nb", " \n \n"), None);
    }
}
