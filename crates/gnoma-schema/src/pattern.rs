//! Regular expressions of ECMA-262, as JSON Schema has them, for an engine that cannot blow up.

use regex_automata::{meta, util::syntax};

use crate::node::Pattern;

/// Most memory that one expression may take, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A regular expression that is broken, can only be matched by trying (look-around, back references), or has scripts of
/// Unicode.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{words}` is not a regular expression that can be used here: it is broken, too large, or has look-around, back \
     references or `\\p{{…}}` with more than a general category"
)]
pub(crate) struct SchemaPatternError {
    words: String,
}

/// Parses a regular expression of ECMA-262.
pub(crate) fn parse_pattern(words: &str) -> Result<Pattern, SchemaPatternError> {
    let limits = meta::Config::new().nfa_size_limit(Some(MAX_REGEX_BYTES));
    let regex = meta::Builder::new()
        .configure(limits)
        .syntax(syntax::Config::new().dot_matches_new_line(false))
        .build(&translate_pattern(words));
    let words = words.to_owned();
    match regex {
        Ok(regex) => Ok(Pattern { words, regex }),
        Err(_) => Err(SchemaPatternError { words }),
    }
}

/// The expression in the engine's spelling: the classes `\d`, `\w` and `\s` mean there what all of Unicode
/// has, and in a set of characters `[`, `&&`, `--` and `~~` have a meaning of their own.
fn translate_pattern(words: &str) -> String {
    let mut out = String::with_capacity(words.len() + 16);
    let mut in_set = false;
    let mut chars = words.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[A-Za-z0-9_]"),
                Some('W') => out.push_str("[^A-Za-z0-9_]"),
                Some('b') if !in_set => out.push_str(r"(?-u:\b)"),
                Some('b') => out.push_str(r"\x08"),
                Some('0') => out.push_str(r"\x00"),
                Some('c') => out.push_str(&control_escape(chars.next())),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if in_set => out.push_str(r"\["),
            '[' => {
                in_set = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // The empty set and its opposite.
                if chars.next_if_eq(&']').is_some() {
                    in_set = false;
                    let is_opposite = out.ends_with('^');
                    out.truncate(out.len() - 1 - usize::from(is_opposite));
                    out.push_str(if is_opposite { r"[\s\S]" } else { r"[^\s\S]" });
                }
            }
            ']' => {
                in_set = false;
                out.push(']');
            }
            '&' | '~' if in_set => out.extend(['\\', c]),
            '-' if in_set && chars.peek() == Some(&'-') => out.push_str(r"\-"),
            c => out.push(c),
        }
    }
    out
}

/// Translates a control character, written `\cX`.
fn control_escape(letter: Option<char>) -> String {
    match letter.filter(char::is_ascii_alphabetic) {
        Some(letter) => format!(r"\x{:02x}", u32::from(letter) % 32),
        // Broken, and told so.
        None => r"\c".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_schema_pattern_follows_ecma_262_regex_rules() {
        for (words, text, expected) in [
            ("^a+$", "aaa", true),
            ("b", "abc", true),
            (r"^\d{3}-\w+$", "123-ab_9", true),
            (r"^\d$", "٣", false),
            (r"^\w$", "é", false),
            (r"^[\d.]+$", "1.2", true),
            (r"^[[]$", "[", true),
            (r"^[a&&b]+$", "&&", true),
            (r"^[^]$", "\n", true),
            (r"[]", "a", false),
            (r"^\p{L}+$", "äß", true),
            (r"^\u00e9$", "é", true),
            (r"^(?:a|b)/\/$", "a//", true),
            (r"^.$", "😀", true),
            (r"\bfoo\b", "a foo b", true),
        ] {
            let regex = parse_pattern(words).unwrap().regex;
            assert_eq!(regex.is_match(text), expected, "{words} {text}");
        }
        for words in [r"(?=a)", r"(a)\1", "(", "a{2,1}", r"(?<!x)y", r"\c1"] {
            assert!(parse_pattern(words).is_err(), "{words}");
        }
    }
}
