//! A `#` in a sentence, which YAML takes for the beginning of a comment.

use std::borrow::Cow;

use super::repair::split_field;

/// Fields that are sentences, in which `#1` is a number and no comment.
const SENTENCES: [&str; 4] = ["description", "whenToUse", "when_to_use", "argument-hint"];

/// Puts quotes around the sentences with such a `#`, and gives a remark on each.
pub(super) fn quote_hash_values<'l>(lines: &[&'l str]) -> (Vec<Cow<'l, str>>, Vec<String>) {
    let mut remarks = Vec::new();
    let mut quote_line = |line: &'l str| match parse_sentence(line) {
        Some((name, value)) => {
            remarks.push(format!("the value of `{name}` contains ` #` and needs quotes"));
            let value = value.replace('\'', "''");
            Cow::Owned(format!("{name}: '{value}'"))
        }
        None => Cow::Borrowed(line),
    };
    let lines = lines.iter().map(|line| quote_line(line)).collect();
    (lines, remarks)
}

/// The name and the value of a line that is such a sentence. Behind the `#` of a comment people write a blank.
fn parse_sentence(line: &str) -> Option<(String, &str)> {
    const MARKS: [char; 9] = ['"', '\'', '|', '>', '[', '{', '&', '*', '!'];
    let (name, value) = split_field(line)?;
    let value = value.trim();
    let is_sentence = SENTENCES.iter().any(|known| known.eq_ignore_ascii_case(&name));
    let is_number = |behind: &str| behind.starts_with(|letter: char| !letter.is_whitespace());
    let has_hash = value.split(" #").skip(1).any(is_number);
    let is_whole = !line.starts_with(char::is_whitespace) && !value.contains(" # ");
    (is_sentence && has_hash && is_whole && !value.starts_with(MARKS)).then_some((name, value))
}
