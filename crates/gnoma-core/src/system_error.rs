//! The words of the operating system's errors.

use std::borrow::Cow;

/// The text with which the standard library begins the number of an error. The number adds nothing to the error's
/// words.
const NUMBER: &str = " (os error ";

/// Removes the numbers of system errors from a text: `No such file or directory (os error 2)` becomes `No such file or
/// directory`.
///
/// ```
/// let text = "cannot read `a` (Permission denied (os error 13)): skipped";
/// assert_eq!(
///     gnoma_core::system_error::without_numbers(text),
///     "cannot read `a` (Permission denied): skipped",
/// );
/// ```
#[must_use]
pub fn without_numbers(text: &str) -> Cow<'_, str> {
    let mut parts = text.split(NUMBER);
    let Some(first) = parts.next().filter(|first| first.len() < text.len()) else {
        return Cow::Borrowed(text);
    };
    let mut plain = first.to_owned();
    for part in parts {
        let behind = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        match behind.strip_prefix(')').filter(|_| behind.len() < part.len()) {
            Some(behind) => plain.push_str(behind),
            None => {
                plain.push_str(NUMBER);
                plain.push_str(part);
            }
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn os_error_numbers_are_stripped_from_error_messages() {
        for (text, plain) in [
            ("No such file or directory (os error 2)", "No such file or directory"),
            ("a: x (os error 13); b: y (os error 2)", "a: x; b: y"),
            ("the crate says (os error here)", "the crate says (os error here)"),
            ("(os error 2", "(os error 2"),
            ("x (os error )", "x (os error )"),
            ("", ""),
        ] {
            assert_eq!(without_numbers(text), plain);
        }
    }
}
