//! `xargs` and `parallel`: a command with arguments that come from elsewhere.

use std::sync::Arc;

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use super::super::input::Input;
use super::find::with_name;
use crate::expand::Field;
use crate::facts::{Effect, Risk};

pub(super) fn analyse_xargs(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let facts = walker.option_facts(call);
    let mark = replacement_mark(call);
    let command = &call.sorted.operands;
    if command.is_empty() {
        return facts;
    }
    let names = input_words(walker, call);
    let mut fields: Vec<Field> = match &mark {
        Some(mark) => command.iter().map(|word| with_name(word, mark, &names)).collect(),
        None => command.clone(),
    };
    if fields == *command {
        fields.push(names);
    }
    walker.walk_child_command(&fields);
    facts
}

/// The words it reads. Those of a listing are one for each name only where zero bytes part them.
fn input_words(walker: &Walker<'_>, call: &ProgramCall<'_>) -> Field {
    let parted = call.sorted.has_option(&["0", "null"]);
    let elsewhere = call.sorted.has_option(&["a", "arg-file", "d", "delimiter"]);
    match &walker.input {
        Input::Listing(listing) if !elsewhere => Field::Listed {
            written: "…".to_owned(),
            start: if parted { listing.start.clone() } else { String::new() },
            places: Arc::clone(&listing.places),
            exact: listing.exact && parted,
        },
        _ => Field::unknown_word("…"),
    }
}

/// Returns the stand-in for the arguments in the command, if an option sets one.
fn replacement_mark(call: &ProgramCall<'_>) -> Option<String> {
    let given = call
        .sorted
        .options
        .iter()
        .rev()
        .find(|given| matches!(given.name.as_str(), "I" | "i" | "replace" | "J"))?;
    match given.values.last() {
        Some(value) => value.known_text().filter(|mark| !mark.is_empty()).map(str::to_owned),
        None => Some("{}".to_owned()),
    }
}

/// `parallel command ::: arguments`: a shell reads the command once more.
pub(super) fn analyse_parallel(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    let is_separator = |word: &Field| word.known_text().is_some_and(|text| text.starts_with(":::"));
    let operands = &call.sorted.operands;
    let end = operands.iter().position(is_separator).unwrap_or(operands.len());
    let (command, arguments) = operands.split_at(end);
    if command.is_empty() {
        let certain: Option<Vec<&str>> =
            arguments.iter().filter(|word| !is_separator(word)).map(Field::known_text).collect();
        match certain {
            Some(texts) => {
                for text in texts {
                    let ran = walker.walk_child_shell(text);
                    facts.merge_with(ran);
                }
            }
            None => facts.add(Effect::Unknown(
                "parallel: its commands are only known at run time".to_owned(),
            )),
        }
        if arguments.is_empty() {
            facts.add(Effect::Unknown("parallel runs what it reads".to_owned()));
        }
        return facts;
    }
    let mut fields: Vec<Field> =
        command.iter().map(|word| with_name(word, "{", &Field::unknown_word("{}"))).collect();
    fields.push(Field::unknown_word("…"));
    walker.walk_child_command(&fields);
    facts.add(Effect::Unknown(
        "parallel: a shell reads the arguments as part of the command".to_owned(),
    ));
    facts.at_least(Risk::Medium);
    facts
}
