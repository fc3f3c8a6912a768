//! Decides whether two patterns can match the same name.
//!
//! One alignment serves three alphabets: letters of a name, names of a path, words of a command. The callers decide
//! what the steps mean, and how an unsure answer may be used.

use unicode_normalization::UnicodeNormalization as _;

/// Most pairs of steps that are compared; beyond it there is no answer.
const MAX_PAIRS: usize = 1 << 20;

/// A step of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternStep<T> {
    /// Exactly one of these.
    One(T),
    /// Any number of anything, also none.
    Run,
}

/// A letter; `None` for any.
pub(crate) type Letter = Option<char>;

/// The dialect of a text, which says which of its characters stand for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// No character stands for others.
    Plain,
    /// `*` and `?`, as in rules.
    Rule,
    /// Every character that a shell might expand.
    Shell,
}

/// Reports whether some sequence fits both `left` and `right`; `None` when they are too long to say.
pub(crate) fn patterns_overlap<T>(
    left: &[PatternStep<T>],
    right: &[PatternStep<T>],
    same: impl Fn(&T, &T) -> bool,
) -> Option<bool> {
    if left.len().saturating_mul(right.len()) > MAX_PAIRS {
        return None;
    }
    // `row` says for each beginning of `right` whether it can be had by the steps of `left` so far.
    let mut row = vec![true];
    row.extend(right.iter().scan(true, |so_far, step| {
        *so_far &= matches!(step, PatternStep::Run);
        Some(*so_far)
    }));
    for step in left {
        row = advance_row(&row, step, right, &same);
    }
    Some(row.last() == Some(&true))
}

fn advance_row<T>(
    row: &[bool],
    step: &PatternStep<T>,
    right: &[PatternStep<T>],
    same: impl Fn(&T, &T) -> bool,
) -> Vec<bool> {
    let mut before = matches!(step, PatternStep::Run) && row.first() == Some(&true);
    let mut next = vec![before];
    for (other, (&diagonal, &above)) in right.iter().zip(row.iter().zip(row.iter().skip(1))) {
        before = match (step, other) {
            (PatternStep::Run, _) | (_, PatternStep::Run) => above || before,
            (PatternStep::One(one), PatternStep::One(two)) => diagonal && same(one, two),
        };
        next.push(before);
    }
    next
}

/// Reports whether one letter can be the other.
pub(crate) fn same_letter(one: &Letter, two: &Letter) -> bool {
    one.is_none() || two.is_none() || one == two
}

/// The letters of `text`.
pub(crate) fn pattern_letters(text: &str, dialect: Dialect) -> Vec<PatternStep<Letter>> {
    // Groups of alternatives can be anything.
    if dialect == Dialect::Shell && text.contains(['{', '(']) {
        return vec![PatternStep::Run];
    }
    let mut steps = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        let step = match (dialect, letter) {
            (Dialect::Plain, _) => PatternStep::One(Some(letter)),
            (_, '*') => PatternStep::Run,
            (_, '?') => PatternStep::One(None),
            (Dialect::Shell, '\\') => PatternStep::One(rest.next()),
            (Dialect::Shell, '[') => match parse_class(rest.as_str()) {
                Some((step, after)) => {
                    rest = after.chars();
                    step
                }
                None => PatternStep::One(Some('[')),
            },
            (Dialect::Shell | Dialect::Rule, _) => PatternStep::One(Some(letter)),
        };
        if step != PatternStep::Run || steps.last() != Some(&PatternStep::Run) {
            steps.push(step);
        }
    }
    steps
}

/// Sets of letters that a bracket expression may name.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Returns what a bracket expression stands for, given the text behind its bracket, and the text that follows it.
/// The expression is one letter, whichever; where shells differ about its end it is all the rest. `None` when it is
/// not closed, so that the bracket is a letter.
fn parse_class(text: &str) -> Option<(PatternStep<Letter>, &str)> {
    let mut rest = text.strip_prefix(['!', '^']).unwrap_or(text);
    // A bracket right at the start is a member of the class.
    rest = rest.strip_prefix(']').unwrap_or(rest);
    loop {
        if let Some(inner) = rest.strip_prefix("[:") {
            match inner.split_once(":]") {
                Some((name, after)) if CLASSES.contains(&name) => rest = after,
                _ => return Some((PatternStep::Run, "")),
            }
            continue;
        }
        if rest.starts_with("[.") || rest.starts_with("[=") {
            return Some((PatternStep::Run, ""));
        }
        let mut letters = rest.chars();
        match letters.next()? {
            ']' => return Some((PatternStep::One(None), letters.as_str())),
            '\\' => {
                letters.next()?;
            }
            _ => {}
        }
        rest = letters.as_str();
    }
}

/// `name` as a file system that minds neither case nor composition nor invisible characters sees it.
pub(crate) fn fold_name(name: &str) -> String {
    let folded = fold_letters(name);
    // Windows ends a name before these and takes what follows a colon for a stream of the file.
    let file = folded.find(':').filter(|at| *at > 0).and_then(|at| folded.get(..at));
    let file = file.unwrap_or(&folded);
    let trimmed = file.trim_end_matches(['.', ' ']);
    if trimmed.is_empty() { file.to_owned() } else { trimmed.to_owned() }
}

/// [`fold_name`] for what a shell expands to names: colons and dots in it may be part of a class.
pub(crate) fn fold_pattern(pattern: &str) -> Vec<PatternStep<Letter>> {
    let mut steps = pattern_letters(&fold_letters(pattern), Dialect::Shell);
    let is = |step: &PatternStep<Letter>, ends: &[char]| matches!(step, PatternStep::One(Some(letter)) if ends.contains(letter));
    if let Some(colon) = steps.iter().skip(1).position(|step| is(step, &[':'])) {
        steps.truncate(colon + 1);
    }
    let length = steps.iter().rposition(|step| !is(step, &['.', ' '])).map_or(0, |last| last + 1);
    if length > 0 {
        steps.truncate(length);
    }
    steps
}

fn fold_letters(name: &str) -> String {
    let visible = name.chars().filter(|letter| !is_ignored(*letter));
    // Upper case first: it brings together letters that have one capital, such as `s` and `ſ`.
    visible.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

/// Characters that some file systems do not look at when they compare names.
fn is_ignored(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn overlap(one: &str, two: &str) -> bool {
        patterns_overlap(
            &pattern_letters(one, Dialect::Shell),
            &pattern_letters(two, Dialect::Rule),
            same_letter,
        )
        .unwrap()
    }

    #[test]
    fn glob_patterns_overlap_if_one_name_matches_both() {
        for (one, two, expected) in [
            (".e*v", ".env", true),
            (".[de]nv", ".env", true),
            (".[]e]nv", ".env", true),
            (".[!]a]nv", ".env", true),
            (".[[:alpha:]]nv", ".env", true),
            (".[\\]e]nv", ".env", true),
            (".[[.e.]]nv", ".env", true),
            (".[[:alpha:]nv", ".env", false),
            ("[a]]", "b]", true),
            (".{env,x}", ".env", true),
            ("*.rs", "*.key", false),
            ("a*", "*b", true),
            ("a\\*", "ab", false),
            ("*", "id_rsa", true),
        ] {
            assert_eq!(overlap(one, two), expected, "{one} {two}");
        }
    }

    #[test]
    fn fold_name_equates_case_unicode_and_trailing_dot_variants() {
        for name in [".cUrSoR", ".curſor", ".cur\u{200c}sor", ".cursor ", ".cursor.", ".cursor::$I"]
        {
            assert_eq!(fold_name(name), ".cursor", "{name:?}");
        }
        assert_eq!(fold_name("e\u{301}"), fold_name("É"));
        assert_eq!(fold_name(".."), "..");
    }

    proptest! {
        #[test]
        fn glob_overlaps_the_text_that_it_was_made_from(parts in prop::collection::vec("[a-c]{0,3}", 1..5)) {
            prop_assert!(overlap(&parts.join("cab"), &parts.join("*")));
            prop_assert!(overlap(&parts.concat(), &parts.concat()));
        }

        #[test]
        fn glob_overlap_is_symmetric(one in "[ab*?]{0,8}", two in "[ab*?]{0,8}") {
            prop_assert_eq!(overlap(&one, &two), overlap(&two, &one));
        }
    }
}
