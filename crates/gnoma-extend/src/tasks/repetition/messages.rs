//! Finds arguments that only the messages name: words that look like values and are others each time.

use super::slots::Values;

/// Returns the words that look like values, if each message has one of the same form that the others lack.
pub(super) fn find_named_values(messages: &[&str]) -> Option<Values> {
    let words: Vec<Vec<(&str, ValueForm)>> = messages.iter().map(|it| value_words(it)).collect();
    let own = |at: usize, form: ValueForm| {
        let is_elsewhere =
            |word: &str| messages.iter().enumerate().any(|(i, it)| i != at && it.contains(word));
        let mut own = words.get(at)?.iter().filter(|it| it.1 == form && !is_elsewhere(it.0));
        own.next().map(|(word, _)| (*word).to_owned())
    };
    words.first()?.iter().find_map(|(_, form)| {
        (0..messages.len()).map(|at| own(at, *form).map(Some)).collect::<Option<Values>>()
    })
}

/// The form of a value: whether it holds a digit, a capital after a small letter, or a sign between letters.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct ValueForm {
    has_digit: bool,
    has_hump: bool,
    has_sign: bool,
}

/// The words of a message that look like values.
fn value_words(message: &str) -> Vec<(&str, ValueForm)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./@#".contains(c);
    message
        .split(|c: char| !is_part(c))
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .map(|word| (word, form_of(word)))
        .filter(|(word, form)| word.len() > 1 && *form != ValueForm::default())
        .collect()
}

fn form_of(word: &str) -> ValueForm {
    let mut form = ValueForm::default();
    let mut before = ' ';
    for c in word.chars() {
        form.has_hump |= before.is_ascii_lowercase() && c.is_ascii_uppercase();
        form.has_digit |= c.is_ascii_digit();
        form.has_sign |= !c.is_ascii_alphanumeric() && c != '-';
        before = c;
    }
    form
}
