//! `declare`, `export`, `local` and their like.
//!
//! An option may keep a variable from becoming what is written, or make it refuse what it is set to later;
//! what such a variable holds is not known from then on. What an array is set to is read once more when it
//! looks like a list in parentheses, however it is quoted: `declare -a 'a=($(ls))'` runs `ls`.

use super::Walker;
use super::assign::{VariableMeaning, add_variable_effect, variable_meaning};
use super::builtins::is_name;
use super::command_facts::CommandFacts;
use crate::expand::{Field, Value};
use crate::facts::Effect;

/// The way in which a builtin declares variables.
#[derive(Default)]
struct DeclarationFlags {
    /// True if programs get the variables.
    shares: bool,
    /// In a function they are its own.
    owns: bool,
    /// They need not become what they are set to later.
    stays: bool,
    /// They become what is written.
    plainly: bool,
    /// True if the variables become arrays.
    arrays: bool,
}

/// Arrays that a shell has from its start, or makes by itself.
const OWN_ARRAYS: [&str; 18] = [
    "BASH_ALIASES",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_CMDS",
    "BASH_LINENO",
    "BASH_REMATCH",
    "BASH_SOURCE",
    "BASH_VERSINFO",
    "COMP_WORDS",
    "COMPREPLY",
    "COPROC",
    "DIRSTACK",
    "FUNCNAME",
    "GROUPS",
    "MAPFILE",
    "PIPESTATUS",
    "argv",
    "path",
];

impl Walker<'_> {
    pub(super) fn declare_builtin(&mut self, name: &str, words: &[Field]) -> CommandFacts {
        let mut facts = CommandFacts::default();
        let options: String = words
            .iter()
            .filter_map(Field::known_text)
            .filter(|text| text.starts_with(['-', '+']))
            .collect();
        let mut sets = DeclarationFlags {
            shares: name == "export" || options.contains('x'),
            ..DeclarationFlags::default()
        };
        sets.owns = !matches!(name, "export" | "readonly") && !options.contains('g');
        // One list makes the shell read all words once more.
        sets.arrays = options.contains(['a', 'A']) || words.iter().any(is_list);
        sets.stays = name == "readonly" || options.contains(['r', 'u', 'l', 'c']);
        // With any other option the value may become another, or none be set at all.
        sets.plainly = options.chars().all(|letter| "-xr".contains(letter))
            && (name != "local" || !self.calls.is_empty());
        if options.contains(['n', 'i']) {
            facts.add(Effect::Unknown(format!(
                "`{name}` makes the value refer to another variable or an expression"
            )));
        }
        let mut shows = !options.contains(['f', 'F']);
        for word in words {
            if word.known_start().starts_with(['-', '+']) && word.known_text().is_some() {
                continue;
            }
            shows = false;
            self.declare_one(word, &sets, &mut facts);
        }
        if shows && name != "local" {
            facts.add(Effect::Settings("all variables".to_owned()));
        }
        facts
    }

    fn declare_one(&mut self, word: &Field, sets: &DeclarationFlags, facts: &mut CommandFacts) {
        let Some((variable, value)) = assigned_word(word) else {
            facts.add(Effect::Unknown(format!(
                "which variable `{word}` sets is only known at run time"
            )));
            return;
        };
        if sets.shares && variable_meaning(&variable) == VariableMeaning::Own {
            facts.add(Effect::Environment(variable.clone()));
        }
        add_variable_effect(&variable, value.as_ref(), facts);
        if sets.arrays || is_list(word) {
            self.state.arrays.insert(variable.clone());
        }
        if self.is_array(&variable) && may_be_read_again(word) {
            facts.add(Effect::Unknown(format!(
                "the shell evaluates `{word}` again, and may run it"
            )));
        }
        if let Some(own) = self.locals.last_mut().filter(|_| sets.owns) {
            own.push((variable.clone(), self.state.variables.get(&variable).cloned()));
        }
        match value {
            Some(value) if sets.plainly => self.assign_variable(&variable, value),
            // In a function it is a new one without a value.
            None if !sets.owns || self.locals.is_empty() => {}
            Some(_) | None => self.assign_variable(&variable, Value::Unknown),
        }
        if sets.stays {
            self.state.stubborn.insert(variable);
        }
    }
}

impl Walker<'_> {
    fn is_array(&self, variable: &str) -> bool {
        self.state.arrays.contains(variable) || OWN_ARRAYS.contains(&variable)
    }
}

/// True if a word is written as `name=( … )`: its elements are then examined where they stand.
fn is_list(word: &Field) -> bool {
    let Field::Unknown { written, .. } = word else { return false };
    let name = written.split_once('=').filter(|(_, value)| value.starts_with('('));
    name.is_some_and(|(name, _)| is_name(name.strip_suffix('+').unwrap_or(name)))
}

/// True if the value to which a word sets an array may begin with a parenthesis that is not written as such.
fn may_be_read_again(word: &Field) -> bool {
    let Some((_, value)) = word.known_start().split_once('=') else {
        return word.known_text().is_none();
    };
    let value = value.trim_start();
    !is_list(word) && (value.starts_with('(') || value.is_empty() && word.known_text().is_none())
}

/// A variable's name and value as `declare` and `export` take them; `None` when the name is not certain.
fn assigned_word(word: &Field) -> Option<(String, Option<Value>)> {
    let start = word.known_start();
    let Some((name, value)) = start.split_once('=') else {
        let name = word.known_text().filter(|name| is_name(name))?;
        return Some((name.to_owned(), None));
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let known = word.known_text().is_some() && !start.contains("+=");
    let value = if known { Value::Text(value.to_owned()) } else { Value::Unknown };
    is_name(name).then(|| (name.to_owned(), Some(value)))
}
