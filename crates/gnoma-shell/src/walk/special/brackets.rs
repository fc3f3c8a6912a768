//! Lists of characters in regular expressions, `[a-z]`, where a program text is read to find its end.
//!
//! Programs differ in what a `]` at the front, a class or a delimiter within the list mean: only a list that
//! all read alike is passed over.

/// The text after a list whose `[` was just read; `None` when programs may see its end elsewhere.
pub(super) fn after_list(text: &str, delimiter: char) -> Option<&str> {
    let mut rest = text.strip_prefix('^').unwrap_or(text);
    if rest.starts_with(']') {
        return None;
    }
    loop {
        let mut letters = rest.chars();
        let letter = letters.next()?;
        let after = letters.as_str();
        rest = match letter {
            ']' => return Some(after),
            '[' if after.starts_with(':') => class_end(after)?,
            '[' if after.starts_with(['.', '=']) => return None,
            '\\' => {
                let mut letters = after.chars();
                // To some the backslash is a plain character, and this would be the end.
                if matches!(letters.next()?, ']' | '\n') {
                    return None;
                }
                letters.as_str()
            }
            '\n' => return None,
            letter if letter == delimiter => return None,
            _ => after,
        };
    }
}

/// The text after a class such as `:alpha:]`.
fn class_end(text: &str) -> Option<&str> {
    let name =
        text.strip_prefix(':')?.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    name.strip_prefix(":]")
}

#[cfg(test)]
mod tests {
    use super::after_list;

    #[test]
    fn bracket_expression_with_one_meaning_is_skipped() {
        for (text, rest) in [
            ("a-z]+/", "+/"),
            ("^ \\t]*x", "*x"),
            ("[:alpha:]_]/", "/"),
            ("a[b]/", "/"),
            ("\\/.]/", "/"),
        ] {
            assert_eq!(after_list(text, '/'), Some(rest), "{text}");
        }
    }

    #[test]
    fn ambiguous_bracket_expression_is_rejected() {
        for text in ["]/]", "^]/]", "a/]", "[.].]]", "[=x=]]", "a\\]", "a", "[:al]/", "a\n]"] {
            assert_eq!(after_list(text, '/'), None, "{text}");
        }
    }
}
