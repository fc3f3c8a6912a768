//! The builtin `printf`: it sets variables by `-v` and by `%n`.

use super::Walker;
use super::command_facts::CommandFacts;
use crate::expand::Field;
use crate::facts::Effect;

impl Walker<'_> {
    pub(super) fn printf_builtin(&mut self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        let words = match words.first().and_then(Field::known_text) {
            Some("--") => words.get(1..).unwrap_or_default(),
            _ => words,
        };
        let Some(first) = words.first() else { return facts };
        match first.known_text() {
            // One that stands twice leaves the second for the shell to calculate.
            Some(text) if text.starts_with("-v") => {
                let (names, format) = if text == "-v" { (words.get(1..2), 2) } else { (None, 1) };
                let joined = [Field::Known(text.get(2..).unwrap_or_default().to_owned())];
                self.assign_unknown(names.unwrap_or(&joined), &mut facts);
                if words.get(format).is_none_or(sets_by_format) {
                    facts.add(Effect::Unknown(
                        "the format of `printf` may set variables".to_owned(),
                    ));
                }
            }
            Some(text) if words.len() > 1 && has_count_conversion(text) => {
                facts.add(Effect::Unknown("`%n` of `printf` sets variables".to_owned()));
            }
            None if first.may_be_option() || words.len() > 1 => {
                facts.add(Effect::Unknown(format!("the format `{first}` may set variables")));
            }
            Some(_) | None => {}
        }
        facts
    }
}

/// True if a format of `printf` sets a variable, or looks like an option instead.
fn sets_by_format(word: &Field) -> bool {
    word.known_text().is_none_or(|format| format.starts_with('-') || has_count_conversion(format))
}

/// True if a format has a conversion `n`, which sets the variable its argument names.
fn has_count_conversion(format: &str) -> bool {
    let of_conversion = |piece: &str| {
        let letter = piece.find(|c: char| c.is_ascii_alphabetic() || c == '%');
        letter.is_some_and(|at| piece[at..].starts_with('n'))
    };
    format.split('%').skip(1).any(of_conversion)
}
