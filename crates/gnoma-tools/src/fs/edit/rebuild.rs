//! What a loose match is replaced with.
//!
//! The old and the new text are compared line by line. A line in both keeps the bytes it has in the
//! file, with its quotes, tabs and line end; a line only in the new text is written in the file's
//! indentation and with its line end.

use std::ops::Range;

use gnoma_core::diff::{DiffOp, diff_sequences};

use super::{loose::SoughtText, reindent::IndentTranslation};

/// New text would hold `U+FFFD` in place of bytes that are not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UndecodableText;

/// The text that matched, and how it sits in the file.
pub(super) struct MatchedText<'a> {
    pub(super) bytes: &'a [u8],
    /// `true` if the match begins where a line begins, indentation included.
    pub(super) begins_line: bool,
    /// The line end of new lines.
    pub(super) line_end: &'static str,
}

/// Returns the bytes that replace `matched`.
pub(super) fn rebuild_match(
    matched: &MatchedText<'_>,
    wanted: SoughtText<'_>,
) -> Result<Vec<u8>, UndecodableText> {
    let there: Vec<&[u8]> = matched.bytes.split(|&byte| byte == b'\n').collect();
    let old: Vec<&str> = wanted.old.split('\n').collect();
    let new: Vec<&str> = wanted.new.split('\n').collect();
    let decoded: Vec<_> = there.iter().map(|line| String::from_utf8_lossy(line)).collect();
    // The first line may be the rest of a line, whose indentation is not part of the match.
    let partial = usize::from(!matched.begins_line);
    let pairs = old.iter().zip(&decoded).skip(partial);
    let reindent =
        IndentTranslation::from_pairs(pairs.map(|(theirs, ours)| (*theirs, ours.as_ref())));
    let written = |at: usize, beside: usize| {
        let line = new.get(at).copied().unwrap_or_default();
        if at < partial {
            NewLine::from_text(line.to_owned())
        } else {
            NewLine::from_text(reindent.reindent_line(line, beside.saturating_sub(partial)))
        }
    };
    let mut lines = Vec::with_capacity(new.len());
    for op in diff_sequences(&old, &new, None) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                lines.extend(kept_lines(&there, old_index..old_index + len));
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                let beside = op.old_range().start..;
                lines.extend(op.new_range().zip(beside).map(|(at, beside)| written(at, beside)));
            }
        }
    }
    if std::str::from_utf8(matched.bytes).is_err() && lines.iter().any(NewLine::is_undecodable) {
        return Err(UndecodableText);
    }
    Ok(join_lines(&lines, matched.line_end))
}

/// Lines of the match that stay; all but its last have their end in it.
fn kept_lines(there: &[&[u8]], range: Range<usize>) -> impl Iterator<Item = NewLine> {
    let last = there.len().saturating_sub(1);
    let lines = there.iter().enumerate().skip(range.start).take(range.len());
    lines.map(move |(at, line)| NewLine::from_match(line, at < last))
}

/// A line of the replacement.
struct NewLine {
    body: Vec<u8>,
    /// The line end of the line itself, when it brings one along.
    end: Option<&'static str>,
    is_fresh: bool,
}

impl NewLine {
    fn from_match(line: &[u8], has_end: bool) -> Self {
        let (body, end) = match line.strip_suffix(b"\r") {
            Some(body) if has_end => (body, Some("\r\n")),
            _ => (line, has_end.then_some("\n")),
        };
        Self { body: body.to_vec(), end, is_fresh: false }
    }

    fn from_text(line: String) -> Self {
        Self { body: line.into_bytes(), end: None, is_fresh: true }
    }

    fn is_undecodable(&self) -> bool {
        self.is_fresh && String::from_utf8_lossy(&self.body).contains(char::REPLACEMENT_CHARACTER)
    }
}

fn join_lines(lines: &[NewLine], line_end: &'static str) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        out.extend_from_slice(&line.body);
        if at + 1 < lines.len() {
            out.extend_from_slice(line.end.unwrap_or(line_end).as_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rebuilt(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, UndecodableText> {
        let matched = MatchedText { bytes, begins_line: true, line_end: "\n" };
        rebuild_match(&matched, SoughtText::new(old, new))
    }

    #[test]
    fn fuzzy_edit_preserves_bytes_of_repeated_lines() {
        let there = "\tsay(“a”);  \r\n\tb();".as_bytes();
        let made =
            rebuilt(there, "    say(\"a\");\n    b();", "    say(\"a\");\n    c();\n    b();");
        assert_eq!(made.unwrap(), "\tsay(“a”);  \r\n\tc();\n\tb();".as_bytes());
    }

    #[test]
    fn fuzzy_edit_preserves_invalid_utf8_but_never_adds_it() {
        let there = b"caf\xe9\n  b";
        let kept = rebuilt(there, "caf\u{fffd}\nb", "caf\u{fffd}\nc");
        assert_eq!(kept.unwrap(), b"caf\xe9\n  c");
        let invented = rebuilt(there, "caf\u{fffd}\nb", "the caf\u{fffd}\nb");
        assert_eq!(invented, Err(UndecodableText));
    }
}
