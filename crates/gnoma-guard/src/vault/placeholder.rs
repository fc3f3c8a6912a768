//! The format of a secret's placeholder, and the forms into which models change it.
//!
//! Models copy with small changes: spaces inside the braces, another case, escaped braces. Such a text is
//! recognized, so that it can be reported; it never becomes a secret.

use std::ops::Range;

/// Longest rule name in a placeholder, in characters; longer ones are cut.
pub(super) const MAX_RULE_CHARS: usize = 64;
/// Most digits of a number.
const MAX_DIGITS: usize = 20;
/// Most spaces in each place where a model may have put some.
const MAX_SPACES: usize = 8;

const OPENINGS: [&str; 3] = ["{{", "\\{\\{", "%7b%7b"];
const CLOSINGS: [&str; 3] = ["}}", "\\}\\}", "%7d%7d"];
const COLONS: [&str; 2] = [":", "%3a"];
const WORD: &str = "secret";

pub(super) fn format_placeholder(rule: &str, number: u64) -> String {
    format!("{{{{{WORD}:{rule}:{number}}}}}")
}

pub(super) fn is_rule_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The positions of placeholders in a text, well written or not.
pub(super) fn find_placeholders(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + text.get(from..)?.find(['{', '\\', '%'])?;
            from = at + 1;
            let rest = text.get(at..)?;
            if let Some(length) = placeholder_length(rest) {
                from = at + length;
                return Some(at..from);
            }
        }
    })
}

/// The number in a placeholder that was found.
pub(super) fn placeholder_number(written: &str) -> Option<u64> {
    parse_placeholder(written)?.1.parse().ok()
}

fn placeholder_length(text: &str) -> Option<usize> {
    Some(parse_placeholder(text)?.0)
}

/// The length of the placeholder that `text` starts with, and its digits.
fn parse_placeholder(text: &str) -> Option<(usize, &str)> {
    let mut rest = OPENINGS.iter().find_map(|opening| strip_start(text, opening))?;
    rest = strip_start(skip_spaces(rest), WORD)?;
    rest = skip_colon(rest)?;
    rest = skip_run(rest, MAX_RULE_CHARS, is_rule_char)?;
    let digits = skip_colon(rest)?;
    rest = skip_run(digits, MAX_DIGITS, |c| c.is_ascii_digit())?;
    let digits = digits.get(..digits.len() - rest.len())?;
    rest = CLOSINGS.iter().find_map(|closing| strip_start(skip_spaces(rest), closing))?;
    Some((text.len() - rest.len(), digits))
}

/// `text` without its start, whatever its case.
fn strip_start<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let head = text.get(..start.len())?;
    if head.eq_ignore_ascii_case(start) { text.get(start.len()..) } else { None }
}

fn skip_spaces(text: &str) -> &str {
    let count = text.bytes().take(MAX_SPACES).take_while(|b| *b == b' ').count();
    text.get(count..).unwrap_or_default()
}

fn skip_colon(text: &str) -> Option<&str> {
    COLONS.iter().find_map(|colon| strip_start(skip_spaces(text), colon)).map(skip_spaces)
}

/// `text` without one to `most` characters of a kind.
fn skip_run(text: &str, most: usize, is_one: impl Fn(char) -> bool) -> Option<&str> {
    let count = text.chars().take(most + 1).take_while(|c| is_one(*c)).count();
    // Only ASCII characters are of a kind, so that they count as bytes.
    if count == 0 || count > most { None } else { text.get(count..) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        find_placeholders(text).filter_map(|range| text.get(range)).collect()
    }

    #[test]
    fn secret_placeholder_variants_that_models_write_are_recognized() {
        let text = "a {{secret:aws-key:7}} b {{ Secret : AWS : 12 }} \\{\\{secret:x:1\\}\\} %7B%7Bsecret%3Ax%3A1%7D%7D";
        assert_eq!(found(text).len(), 4);
        assert_eq!(found("{{{secret:x:1}}}"), ["{{secret:x:1}}"]);
    }

    #[test]
    fn templates_of_other_programs_are_no_secret_placeholders() {
        for text in [
            "{{secrets.TOKEN}}",
            "{{secret}}",
            "{secret:x:1}",
            "{{secret:RULE:N}}",
            "{{",
            "${{ secrets.X }}",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
