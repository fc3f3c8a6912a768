//! Edits as a function: content and edits in, content out.
//!
//! Edits are made one after the other, all or none. A text is matched exactly first, then loosely; it must match in
//! one place unless the call asks for all places. Bytes outside the matches are never touched.

use std::ops::Range;

use memchr::memmem;

use super::{
    fold::MatchTolerance,
    loose::{self, SoughtText, text_start},
    nearest::{NearestLines, find_nearest},
    rebuild::{MatchedText, UndecodableText, rebuild_match},
};
use crate::fs::text::line_of;

/// Lines named when a text is in several places.
const MAX_LINES_NAMED: usize = 10;

/// One replacement of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit<'a> {
    /// The text to be replaced.
    pub(super) old: &'a str,
    /// The text that replaces it.
    pub(super) new: &'a str,
    /// Wherever it is, instead of in the one place where it is.
    pub(super) all: bool,
}

/// Content after all edits.
#[derive(Debug)]
pub(super) struct AppliedEdits {
    pub(super) content: Vec<u8>,
    /// One for each edit.
    pub(super) places: Vec<EditSpot>,
}

/// The place where an edit was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EditSpot {
    /// The number of times that the edit was made.
    pub(super) count: usize,
    /// First and last line of the (first) match, before the edit.
    pub(super) lines: (usize, usize),
    /// The differences that were overlooked, if the match was not exact.
    pub(super) looseness: Option<MatchTolerance>,
}

/// The reason why nothing was changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditError {
    /// The number of the edit at fault, counted from 0.
    pub(super) edit: usize,
    pub(super) cause: Cause,
}

/// The fault of an edit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The old text is empty.
    Empty,
    /// Old and new text are the same.
    NoChange,
    /// The old text is not there.
    NotFound {
        /// The lines most like it.
        nearest: Option<NearestLines>,
        /// The line where the new text already is.
        new_at: Option<usize>,
    },
    /// The old text was there until an earlier edit of the same call.
    Overwritten,
    /// The old text is in several places.
    Ambiguous {
        count: usize,
        /// The first of them.
        lines: Vec<usize>,
        /// The differences that were overlooked.
        looseness: Option<MatchTolerance>,
    },
    /// The new text contains `U+FFFD` where the file has bytes that are not UTF-8.
    Undecodable { line: usize },
}

/// Makes `edits` in `original`.
pub(super) fn apply_edits(original: &[u8], edits: &[Edit<'_>]) -> Result<AppliedEdits, EditError> {
    let mut content = original.to_vec();
    let mut places = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let place = apply_one(&mut content, edit).map_err(|cause| EditError {
            edit: index,
            cause: explain_cause(cause, original, edit),
        })?;
        places.push(place);
    }
    Ok(AppliedEdits { content, places })
}

fn apply_one(content: &mut Vec<u8>, edit: &Edit<'_>) -> Result<EditSpot, Cause> {
    if edit.old.is_empty() {
        return Err(Cause::Empty);
    }
    if edit.old == edit.new {
        return Err(Cause::NoChange);
    }
    let exact = exact_matches(content, edit.old, edit.all);
    match exact.as_slice() {
        [] => apply_loosely(content, edit),
        [first, rest @ ..] if edit.all || rest.is_empty() => {
            let place =
                EditSpot { count: exact.len(), lines: lines_of(content, first), looseness: None };
            *content = replace_spans(content, &exact, edit.new);
            Ok(place)
        }
        several => Err(Cause::Ambiguous {
            count: several.len(),
            lines: line_numbers(content, several.iter().map(|span| span.start)),
            looseness: None,
        }),
    }
}

/// Returns the places where `old` stands exactly. Its `\n` stands for `\r\n` too, in files that have it. Spans may
/// overlap only when `all` is not asked for.
fn exact_matches(content: &[u8], old: &str, all: bool) -> Vec<Range<usize>> {
    let mut spans = find_occurrences(content, old.as_bytes(), all);
    if old.contains('\n') && memmem::find(content, b"\r\n").is_some() {
        let with_returns = with_line_end(old, "\r\n", false);
        if with_returns != old {
            spans.extend(find_occurrences(content, with_returns.as_bytes(), all));
            // A text that begins with `\n` is found with and without the `\r` before it: one place.
            gnoma_core::sort::by_key(&mut spans, |span| (span.end, span.start));
            spans.dedup_by_key(|span| span.end);
        }
    }
    spans
}

fn find_occurrences(content: &[u8], needle: &[u8], all: bool) -> Vec<Range<usize>> {
    let span = |start: usize| start..start + needle.len();
    let mut spans: Vec<_> = memmem::find_iter(content, needle).map(span).collect();
    if let ([only], false) = (spans.as_slice(), all) {
        let from = only.start + 1;
        let rest = content.get(from..).unwrap_or_default();
        spans.extend(memmem::find(rest, needle).map(|at| span(from + at)));
    }
    spans
}

/// `content` with `new` at each of `spans`, which are in order and apart.
fn replace_spans(content: &[u8], spans: &[Range<usize>], new: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len());
    let mut kept_to = 0;
    for span in spans.iter().filter(|span| !span.is_empty()) {
        if span.start < kept_to {
            continue;
        }
        let before = content.get(kept_to..span.start).unwrap_or_default();
        out.extend_from_slice(before);
        let after_return = content.get(..span.start).is_some_and(|head| head.ends_with(b"\r"));
        let new = with_line_end(new, line_end_at(content, span.start), after_return);
        out.extend_from_slice(new.as_bytes());
        kept_to = span.end;
    }
    out.extend_from_slice(content.get(kept_to..).unwrap_or_default());
    out
}

fn apply_loosely(content: &mut Vec<u8>, edit: &Edit<'_>) -> Result<EditSpot, Cause> {
    let (old, new) = (with_newlines(edit.old), with_newlines(edit.new));
    let found = loose::find_loosely(content, SoughtText::new(&old, &new)).map_err(|several| {
        Cause::Ambiguous {
            count: several.offsets.len(),
            lines: line_numbers(content, several.offsets.iter().copied()),
            looseness: Some(several.looseness),
        }
    })?;
    let Some(found) = found else {
        return Err(Cause::NotFound { nearest: None, new_at: None });
    };
    let before = content.get(..found.span.start).unwrap_or_default();
    let matched = MatchedText {
        bytes: content.get(found.span.clone()).unwrap_or_default(),
        begins_line: before.len() == text_start(content) || before.ends_with(b"\n"),
        line_end: line_end_at(content, found.span.start),
    };
    let lines = lines_of(content, &found.span);
    let replacement = rebuild_match(&matched, found.wanted)
        .map_err(|UndecodableText| Cause::Undecodable { line: lines.0 })?;
    content.splice(found.span, replacement);
    Ok(EditSpot { count: 1, lines, looseness: Some(found.looseness) })
}

/// Adds to a text that was not found what helps to find it. Line numbers are the file's, as earlier
/// edits of the call are not made either.
fn explain_cause(cause: Cause, original: &[u8], edit: &Edit<'_>) -> Cause {
    match cause {
        Cause::NotFound { .. } if !exact_matches(original, edit.old, true).is_empty() => {
            Cause::Overwritten
        }
        Cause::NotFound { .. } => Cause::NotFound {
            nearest: find_nearest(original, edit.old),
            new_at: exact_matches(original, edit.new, true)
                .first()
                .filter(|_| !edit.new.trim().is_empty())
                .map(|span| line_of(original, span.start)),
        },
        Cause::Empty
        | Cause::NoChange
        | Cause::Overwritten
        | Cause::Ambiguous { .. }
        | Cause::Undecodable { .. } => cause,
    }
}

/// The line end used where `at` is: that line's own, else that of the line before.
fn line_end_at(content: &[u8], at: usize) -> &'static str {
    let (before, after) = content.split_at_checked(at).unwrap_or((content, &[]));
    let end =
        memchr::memchr(b'\n', after).map(|end| at + end).or_else(|| memchr::memrchr(b'\n', before));
    let returns = end.and_then(|end| end.checked_sub(1)).and_then(|last| content.get(last));
    if returns == Some(&b'\r') { "\r\n" } else { "\n" }
}

/// `text` with `line_end` for every `\n` that has no `\r` before it; `after_return` says that one
/// stands before the text.
fn with_line_end(text: &str, line_end: &str, after_return: bool) -> String {
    if line_end == "\n" {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut has_return = after_return;
    for char in text.chars() {
        match char {
            '\n' if !has_return => out.push_str(line_end),
            _ => out.push(char),
        }
        has_return = char == '\r';
    }
    out
}

fn with_newlines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// First and last line that `span` covers; a line end it ends with belongs to the line it ends.
fn lines_of(content: &[u8], span: &Range<usize>) -> (usize, usize) {
    let last = span.end.saturating_sub(1).max(span.start);
    (line_of(content, span.start), line_of(content, last))
}

fn line_numbers(content: &[u8], offsets: impl Iterator<Item = usize>) -> Vec<usize> {
    offsets.take(MAX_LINES_NAMED).map(|offset| line_of(content, offset)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
        Edit { old, new, all: false }
    }

    fn all<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
        Edit { all: true, ..edit(old, new) }
    }

    fn applied(original: &[u8], edits: &[Edit<'_>]) -> AppliedEdits {
        apply_edits(original, edits).unwrap_or_else(|error| panic!("{error:?}"))
    }

    fn made(original: &str, old: &str, new: &str) -> String {
        let applied = applied(original.as_bytes(), &[edit(old, new)]);
        String::from_utf8(applied.content).unwrap()
    }

    fn cause(original: &[u8], edits: &[Edit<'_>]) -> Cause {
        apply_edits(original, edits).unwrap_err().cause
    }

    /// What models send against what files hold: name, file, old, new, result.
    const NEAR_MISSES: [(&str, &str, &str, &str, &str); 18] = [
        ("white space at line ends", "a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc", "a  \nB\nc\n"),
        ("white space at line ends of the call", "a\nb\n", "a  \nb", "a  \nB", "a\nB\n"),
        ("windows line ends", "a\r\nb\r\n", "a \nb\n", "a \nB\nC\n", "a\r\nB\r\nC\r\n"),
        ("windows line ends in the call", "a\nb\n", "a\r\nb\r\n", "a\r\nB\r\nC\r\n", "a\nB\nC\n"),
        (
            "no indentation",
            "{\n    a();\n    b();\n}\n",
            "  a();\n  b();",
            "  a();\n  c();",
            "{\n    a();\n    c();\n}\n",
        ),
        (
            "less indentation",
            "x\n    if a {\n        b\n    }\n",
            "if a {\n    b\n}",
            "if a {\n    b\n    c\n}",
            "x\n    if a {\n        b\n        c\n    }\n",
        ),
        (
            "more indentation",
            "if a:\n    b\n",
            "  if a:\n      b\n",
            "  if a:\n      b\n      c\n",
            "if a:\n    b\n    c\n",
        ),
        (
            "tabs for spaces",
            "fn a() {\n    b();\n}\n",
            "fn a() {\n\tb();\n}",
            "fn a() {\n\tb();\n\tif c {\n\t\td();\n\t}\n}",
            "fn a() {\n    b();\n    if c {\n        d();\n    }\n}\n",
        ),
        (
            "spaces for tabs",
            "f() {\n\ta()\n\tb()\n}\n",
            "    a()\n    b()",
            "    a()\n    {\n        c()\n    }\n    b()",
            "f() {\n\ta()\n\t{\n\t\tc()\n\t}\n\tb()\n}\n",
        ),
        (
            "indentation lost on the first line",
            "  {\n    a: 1, \n    b: 2,\n  }\n",
            "a: 1,\n    b: 2,",
            "a: 1,\n    b: 3,",
            "  {\n    a: 1, \n    b: 3,\n  }\n",
        ),
        (
            "composed letters",
            "caf\u{e9} = 1\n",
            "cafe\u{301} = 1",
            "cafe\u{301} = 2",
            "cafe\u{301} = 2\n",
        ),
        (
            "decomposed letters",
            "# cafe\u{301}\nx = 1\n",
            "# caf\u{e9}\nx = 1",
            "# caf\u{e9}\nx = 2",
            "# cafe\u{301}\nx = 2\n",
        ),
        (
            "typographic quotes",
            "say(“hi”)\nnext()\n",
            "say(\"hi\")\nnext()",
            "say(\"hi\")\nlast()",
            "say(“hi”)\nlast()\n",
        ),
        ("a typographic apostrophe in the call", "it's\n", "it’s", "it is", "it is\n"),
        ("dashes and dots", "1–2…\nend\n", "1-2...\nend", "1-2...\nfin", "1–2…\nfin\n"),
        ("spaces that do not break", "a\u{a0}b = 1;\n", "a b = 1;", "a b = 2;", "a b = 2;\n"),
        (
            "spaces between words",
            "x  =\t1;\ny = 2;\n",
            "x = 1;\ny = 2;",
            "x = 1;\ny = 3;",
            "x  =\t1;\ny = 3;\n",
        ),
        ("a blank line too many", "a\nb\n", "\na\n  b\n\n", "\na\n  c\n\n", "a\nc\n"),
    ];

    #[test]
    fn fuzzy_edit_applies_and_preserves_bytes_of_unchanged_lines() {
        for (name, file, old, new, result) in NEAR_MISSES {
            assert_eq!(made(file, old, new), result, "{name}");
        }
    }

    #[test]
    fn fuzzy_edit_reports_its_match_tolerance() {
        let file = b"x\n\tif a {\n\t\tb\n\t}\n";
        let place = applied(file, &[edit("  if a {\n    b\n  }", "")]).places.remove(0);
        let expected =
            EditSpot { count: 1, lines: (2, 4), looseness: Some(MatchTolerance::Indentation) };
        assert_eq!(place, expected);
    }

    #[test]
    fn fuzzy_edit_with_two_matches_is_ambiguous() {
        let expected = Cause::Ambiguous {
            count: 2,
            lines: vec![1, 3],
            looseness: Some(MatchTolerance::Indentation),
        };
        assert_eq!(cause(b"\tfoo()\nx\n\tfoo()\n", &[edit("  foo()", "bar()")]), expected);
    }

    #[test]
    fn an_exact_match_in_several_places_needs_replace_all() {
        let file = b"a\nb\na\n";
        let expected = Cause::Ambiguous { count: 2, lines: vec![1, 3], looseness: None };
        assert_eq!(cause(file, &[edit("a", "c")]), expected);
        assert_eq!(applied(file, &[all("a", "c")]).content, b"c\nb\nc\n");
        assert!(matches!(cause(b"aaa", &[edit("aa", "b")]), Cause::Ambiguous { .. }));
        assert_eq!(applied(b"aaa", &[all("aa", "b")]).content, b"ba");
    }

    #[test]
    fn edit_preserves_crlf_line_endings() {
        assert_eq!(made("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n"), "x\r\ny\r\nz\r\nc\r\n");
        assert_eq!(made("a\r\nb\r\n", "b", "b\nc"), "a\r\nb\r\nc\r\n");
        assert_eq!(made("a\r\nb\r\n", "\nb", "\nc"), "a\r\nc\r\n");
        assert_eq!(made("a\r\nb\r\n", "a\r\nb", "a\r\n\r\nb"), "a\r\n\r\nb\r\n");
        let everywhere = applied(b"a\r\nb\r\na\r\nb\r\n", &[all("a\nb\n", "c\n")]);
        assert_eq!(everywhere.content, b"c\r\nc\r\n");
    }

    #[test]
    fn edit_that_matches_with_crlf_and_lf_is_ambiguous() {
        assert!(matches!(cause(b"a\r\nb\na\nb\n", &[edit("a\nb", "c")]), Cause::Ambiguous { .. }));
    }

    #[test]
    fn edit_preserves_bom_invalid_utf8_and_a_missing_final_newline() {
        let file = b"\xef\xbb\xbf\tone\r\n\xe9\xff two\r\nthree";
        let edits = [edit("    one", "    ONE"), edit("three", "four")];
        assert_eq!(applied(file, &edits).content, b"\xef\xbb\xbf\tONE\r\n\xe9\xff two\r\nfour");
    }

    #[test]
    fn edit_matches_replacement_characters_but_cannot_write_them() {
        let file = b"caf\xe9 = 1\nx = 1\n";
        let kept = [edit("caf\u{fffd} = 1\nx = 1", "caf\u{fffd} = 1\nx = 2")];
        assert_eq!(applied(file, &kept).content, b"caf\xe9 = 1\nx = 2\n");
        let written = [edit("caf\u{fffd} = 1", "caf\u{fffd} = 2")];
        assert_eq!(cause(file, &written), Cause::Undecodable { line: 1 });
    }

    #[test]
    fn multiple_edits_apply_in_order_all_or_none() {
        let both = [edit("a", "b"), edit("b", "c")];
        assert_eq!(applied(b"a", &both).content, b"c");
        let error = apply_edits(b"a\n", &[edit("a", "b"), edit("nowhere", "c")]).unwrap_err();
        assert_eq!(error.edit, 1);
        assert_eq!(
            cause(b"abc def\n", &[edit("abc", "x"), edit("abc def", "y")]),
            Cause::Overwritten
        );
    }

    #[test]
    fn edit_without_a_match_returns_the_nearest_lines() {
        let file = b"fn a() {\n    let total = 1;\n}\n";
        let Cause::NotFound { nearest: Some(nearest), new_at } =
            cause(file, &[edit("let totals = 2;", "let total = 1;")])
        else {
            panic!("something was found");
        };
        assert!(nearest.lines.contains(&"    let total = 1;".to_owned()));
        assert_eq!(new_at, Some(2));
    }

    #[test]
    fn edit_with_empty_or_unchanged_text_is_refused() {
        assert_eq!(cause(b"a", &[edit("", "b")]), Cause::Empty);
        assert_eq!(cause(b"a", &[edit("a", "a")]), Cause::NoChange);
    }

    /// The lines a comparison sees and whether they have an end, written down independently of it.
    fn seen(text: &str, looseness: MatchTolerance) -> Vec<(String, bool)> {
        let see = |line: &str| match looseness {
            MatchTolerance::TrailingSpace | MatchTolerance::UnicodeForm => {
                line.trim_end().to_owned()
            }
            MatchTolerance::Indentation => line.trim().to_owned(),
            MatchTolerance::Spacing => line.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        let lines = text.split_inclusive('\n');
        lines.map(|line| (see(line), line.ends_with('\n'))).collect()
    }

    fn is_same(there: &[(String, bool)], wanted: &[(String, bool)]) -> bool {
        let mut pairs = there.iter().zip(wanted);
        pairs.all(|(there, wanted)| there.0 == wanted.0 && there.1 >= wanted.1)
    }

    fn line() -> impl Strategy<Value = String> {
        prop_oneof![Just(String::new()), "[ \t]{0,3}[ab]{1,2}( [ab]{1,2})?[ \t]{0,2}",]
    }

    fn text(lines: std::ops::Range<usize>) -> impl Strategy<Value = String> {
        (prop::collection::vec(line(), lines), prop_oneof![Just("\n"), Just("\r\n")], any::<bool>())
            .prop_map(|(lines, end, final_end)| lines.join(end) + if final_end { end } else { "" })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        /// A loose edit is made in one place, that place says what was asked for (but for what was
        /// overlooked), no other lines say it too, and every other byte stays.
        #[test]
        fn fuzzy_edit_never_changes_a_wrong_place(
            original in text(0..8), other in text(1..4), from_file: bool,
            at in 0_usize..8, indents in prop::collection::vec(0_usize..3, 1..4),
        ) {
            let moved = original.lines().skip(at).zip(&indents);
            let moved: Vec<String> = moved.map(|(line, indent)| " ".repeat(*indent) + line.trim()).collect();
            let old = if from_file { moved.join("\n") } else { other };
            const NEW: &str = "<new>";
            let Ok(applied) = apply_edits(original.as_bytes(), &[edit(&old, NEW)]) else { return Ok(()); };
            let Some(looseness) = applied.places[0].looseness else { return Ok(()); };
            let content = String::from_utf8(applied.content).unwrap();
            let (before, after) = content.split_once(NEW).unwrap();
            // What stands before the new text is the file's, or else the new text was indented.
            let unindented = before.trim_end_matches([' ', '\t']);
            let before = if original.starts_with(before) { before } else { unindented };
            prop_assert!(original.starts_with(before) && original.ends_with(after));
            let replaced = &original[before.len()..original.len() - after.len()];
            prop_assert!(is_same(&seen(replaced, looseness), &seen(&old, looseness)));
            let (lines, wanted) = (seen(&original, looseness), seen(&old, looseness));
            let places = lines.windows(wanted.len()).filter(|window| is_same(window, &wanted)).count();
            prop_assert!(places <= 1, "{} places", places);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// A text that is there once is replaced as `str::replacen` replaces it.
        #[test]
        fn unique_exact_edit_equals_str_replacen(
            before in "[a-z \n]{0,30}", old in "[A-Z \n]{1,8}", after in "[a-z \n]{0,30}", new in "[a-zé \n]{0,8}",
        ) {
            let original = format!("{before}{old}{after}");
            let unique = (0..original.len()).filter(|&at| original[at..].starts_with(&old)).count() == 1;
            prop_assume!(unique && old != new);
            prop_assert_eq!(made(&original, &old, &new), original.replacen(&old, &new, 1));
        }

        /// `replace_all` is `str::replace`.
        #[test]
        fn edit_with_replace_all_equals_str_replace(
            before in "[ab\n]{0,15}", old in "[ab\n]{1,3}", after in "[ab\n]{0,15}", new in "[cd\n]{0,3}",
        ) {
            prop_assume!(old != new);
            let original = format!("{before}{old}{after}");
            let applied = applied(original.as_bytes(), &[all(&old, &new)]);
            prop_assert_eq!(String::from_utf8(applied.content).unwrap(), original.replace(&old, &new));
        }

        /// Moving a block sideways does not keep an edit of it from landing as if it had not moved.
        #[test]
        fn edit_of_a_reindented_block_applies_with_its_indentation(
            depths in prop::collection::vec(0_usize..3, 2..6), shift in 1_usize..5, changed in 0_usize..6, tabs: bool,
        ) {
            let unit = if tabs { "\t" } else { "    " };
            let block = |indent: &str, more: usize, mark: Option<usize>| -> String {
                depths.iter().enumerate().map(|(n, depth)| {
                    let mark = if mark == Some(n) { "changed" } else { "line" };
                    format!("{}{mark}{n};\n", indent.repeat(depth + more))
                }).collect()
            };
            let changed = changed % depths.len();
            let around = |inner: String| format!("before\n{inner}after\n");
            let original = around(block(unit, shift, None));
            let result = made(&original, &block("    ", 0, None), &block("    ", 0, Some(changed)));
            prop_assert_eq!(result, around(block(unit, shift, Some(changed))));
        }

        /// Any bytes and any edits: an answer, never a panic; and no edits, no change.
        #[test]
        fn edit_of_any_bytes_never_panics(
            original in prop::collection::vec(any::<u8>(), 0..60), old in "\\PC{0,6}", new in "\\PC{0,6}", every: bool,
        ) {
            prop_assert_eq!(&applied(&original, &[]).content, &original);
            let edit = Edit { old: &old, new: &new, all: every };
            drop(apply_edits(&original, &[edit]));
        }
    }
}
