//! What every secret of a rule has in common, so that text without it need not be searched.
//!
//! Only one thing is looked at: an unbroken run of the characters of tokens. Source code is full of
//! names of services and seldom holds such a run near one.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Longer runs are not asked for.
const MAX_RUN: usize = 24;

/// Length of the run of token characters that every secret of the pattern holds; 0 if none is certain.
pub(super) fn least_run(pattern: &Hir) -> usize {
    let mut groups = Vec::new();
    collect_groups(pattern, &mut groups);
    // A match without its group would be a secret as a whole.
    if pattern.properties().static_explicit_captures_len().is_none() {
        return 0;
    }
    let secrets = if groups.is_empty() { vec![pattern] } else { groups };
    let runs = secrets.into_iter().map(|secret| {
        if is_run(secret) { secret.properties().minimum_len().unwrap_or(0) } else { 0 }
    });
    runs.min().unwrap_or(0).min(MAX_RUN)
}

fn collect_groups<'h>(hir: &'h Hir, groups: &mut Vec<&'h Hir>) {
    match hir.kind() {
        HirKind::Capture(capture) => groups.push(&capture.sub),
        HirKind::Repetition(repetition) => collect_groups(&repetition.sub, groups),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            for part in parts {
                collect_groups(part, groups);
            }
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {}
    }
}

/// Whether all text that the expression matches consists of token characters.
fn is_run(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => literal.0.iter().all(|&byte| is_token_byte(byte)),
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().iter().all(|range| (range.start()..=range.end()).all(is_token_byte))
        }
        HirKind::Class(Class::Unicode(class)) => class.ranges().iter().all(|range| {
            (range.start()..=range.end()).all(|c| u8::try_from(c).is_ok_and(is_token_byte))
        }),
        HirKind::Repetition(repetition) => is_run(&repetition.sub),
        HirKind::Capture(capture) => is_run(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(is_run),
    }
}

/// Whether `text` holds `length` token characters in a row. Looks at few bytes where it does not.
pub(super) fn has_run(text: &[u8], length: usize) -> bool {
    let mut low = 0;
    while let Some(part) = text.get(low..low + length) {
        // Backwards: what is left of the last other byte cannot be a part of the run.
        match part.iter().rposition(|&byte| !is_token_byte(byte)) {
            Some(at) => low += at + 1,
            None => return true,
        }
    }
    false
}

const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(pattern: &str) -> usize {
        let syntax = regex_automata::util::syntax::Config::new().unicode(false).utf8(false);
        least_run(&regex_automata::util::syntax::parse_with(pattern, &syntax).unwrap())
    }

    #[test]
    fn the_shortest_secret_decides() {
        assert_eq!(run_of(r"(?i)name\s{0,4}([a-f0-9]{16}|[\w-]{20})\b"), 16);
        assert_eq!(run_of(r"key-[a-z]{10}"), 14);
        assert_eq!(run_of(r"name=([^\s]{20})"), 0);
        assert_eq!(run_of(r"(a{9})|(b{7})"), 7);
        assert_eq!(run_of(r"(a{9})|.{3}"), 0);
        assert_eq!(run_of(r"([A-Za-z0-9]{64})"), MAX_RUN);
    }

    #[test]
    fn runs_are_found_wherever_they_begin() {
        for before in 0..40 {
            let text = format!("{} {}", "a b".repeat(before), "x".repeat(9));
            assert!(has_run(text.as_bytes(), 9), "{text}");
            assert!(!has_run(text.as_bytes(), 10), "{text}");
        }
        assert!(has_run(b"", 0));
    }
}
