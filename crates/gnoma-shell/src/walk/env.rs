//! `env`: sets variables, then runs a command; alone it shows all of them.

use super::Walker;
use super::assign::{VariableMeaning, variable_meaning};
use super::command_facts::CommandFacts;
use crate::expand::Field;
use crate::facts::Effect;

/// Options without a value.
const FLAGS: [&str; 11] = [
    "-i",
    "-",
    "-0",
    "-v",
    "-iv",
    "-vi",
    "--",
    "--ignore-environment",
    "--null",
    "--debug",
    "--help",
];

/// The meaning of an option with a value.
#[derive(Clone, Copy)]
enum EnvOption {
    Unset,
    Folder,
    Split,
    SearchPath,
}

/// Beginnings of options whose value is joined or the next word.
const VALUED: [(&str, EnvOption); 9] = [
    ("--unset", EnvOption::Unset),
    ("-u", EnvOption::Unset),
    ("--chdir", EnvOption::Folder),
    ("-C", EnvOption::Folder),
    ("--split-string", EnvOption::Split),
    ("-S", EnvOption::Split),
    ("-vS", EnvOption::Split),
    ("-iS", EnvOption::Split),
    ("-P", EnvOption::SearchPath),
];

impl Walker<'_> {
    /// Returns the effects of `env` with these words.
    pub(super) fn walk_env(&mut self, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        let mut rest = words.to_vec();
        let before = self.state.folders.clone();
        let mut empty = false;
        while let Some(word) = rest.first().cloned() {
            let Some(text) = word.known_text() else {
                facts.add(Effect::Unknown(format!("`{word}` may set a variable")));
                break;
            };
            if text.starts_with('-') {
                rest.remove(0);
                empty |= matches!(text, "-i" | "-" | "--ignore-environment");
                self.env_option(text, &mut rest, &mut facts);
            } else if let Some((name, _)) = text.split_once('=') {
                rest.remove(0);
                if variable_meaning(name) != VariableMeaning::Harmless {
                    facts.add(Effect::Environment(name.to_owned()));
                }
            } else {
                break;
            }
        }
        if rest.is_empty() {
            if !empty && !only_help(words) {
                facts.add(Effect::Settings("the environment".to_owned()));
            }
        } else {
            self.walk_child_command(&rest);
        }
        self.state.folders = before;
        facts
    }

    /// One option; its value and what it splits are taken from, or put before, `rest`.
    fn env_option(&mut self, text: &str, rest: &mut Vec<Field>, facts: &mut CommandFacts) {
        if FLAGS.contains(&text) {
            return;
        }
        let Some((option, joined)) = VALUED
            .iter()
            .find_map(|(start, option)| text.strip_prefix(start).map(|joined| (*option, joined)))
        else {
            facts.add(Effect::Unknown(format!("unknown option `{text}` of `env`")));
            return;
        };
        let value = if joined.is_empty() && !rest.is_empty() {
            rest.remove(0)
        } else {
            Field::Known(joined.strip_prefix('=').unwrap_or(joined).to_owned())
        };
        match option {
            EnvOption::Unset => {
                if value
                    .known_text()
                    .is_none_or(|name| variable_meaning(name) == VariableMeaning::Dangerous)
                {
                    facts.add(Effect::Environment(value.to_string()));
                }
            }
            EnvOption::Folder => {
                self.state.folders = self.state.folders.enter_folder(&value);
                facts.add_at_places(Effect::Look, self.state.folders.current_places());
            }
            EnvOption::Split => match value.known_text().and_then(simple_words) {
                Some(words) => {
                    rest.splice(0..0, words);
                }
                None => {
                    facts.add(Effect::Unknown(format!(
                        "gnoma does not know what `env -S {value}` runs"
                    )));
                }
            },
            EnvOption::SearchPath => facts.add(Effect::Environment("PATH".to_owned())),
        }
    }
}

fn only_help(words: &[Field]) -> bool {
    matches!(words, [word] if matches!(word.known_text(), Some("--help" | "--version")))
}

/// Words of a text with simple quotes.
fn simple_words(text: &str) -> Option<Vec<Field>> {
    if text.contains(['\\', '$', '#']) {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, Some(open)) if open == letter => quote = None,
            (' ' | '\t' | '\n', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then(|| words.into_iter().map(Field::Known).collect())
}
