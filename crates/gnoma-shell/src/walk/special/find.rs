//! `find` and `fd`: tests that only look, and actions that run, write and delete.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use super::super::listing;
use crate::expand::Field;
use crate::facts::{Effect, FilePlace, Risk};
use crate::programs::Role;

/// Tests that look at another file.
const COMPARING: [&str; 5] = ["-newer", "-anewer", "-cnewer", "-samefile", "-newermt"];

pub(super) fn analyse_find(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::default();
    let (places, expression) = split_expression(call.words, &mut facts);
    if places.is_empty() {
        facts.add_at_places(Effect::Read, call.cwd.current_places());
    }
    for place in places {
        walker.apply_role(call, Role::List, place, &mut facts);
    }
    let mut rest = expression;
    while let Some((word, after)) = rest.split_first() {
        let Some(text) = word.known_text() else {
            facts.add(Effect::Unknown(format!("find: `{word}` may be any action")));
            rest = after;
            continue;
        };
        rest = after;
        if listing::FLAGS.contains(&text) {
            continue;
        }
        if listing::VALUED.contains(&text) || text.starts_with("-newer") {
            let value = rest.first();
            if let Some(value) = value.filter(|_| COMPARING.contains(&text) && text != "-newermt") {
                walker.apply_role(call, Role::Read, value, &mut facts);
            }
            if value.is_some_and(Field::may_be_many) {
                facts.add(Effect::Unknown(format!(
                    "find: the value of `{text}` may be several words"
                )));
            }
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        rest = apply_action(walker, call, text, rest, places, &mut facts);
    }
    facts
}

/// Places come first, after a few options; the expression begins with `-`, `(` or `!`.
fn split_expression<'w>(
    words: &'w [Field],
    facts: &mut CommandFacts,
) -> (&'w [Field], &'w [Field]) {
    let mut start = 0;
    while let Some(word) = words.get(start).and_then(Field::known_text) {
        match word {
            "-H" | "-L" | "-P" | "-E" | "-x" | "-s" | "--" => start += 1,
            "-D" => start += 2,
            _ if word.starts_with("-O") => start += 1,
            _ => break,
        }
    }
    let words = words.get(start..).unwrap_or_default();
    let is_place = |word: &Field| !word.known_start().starts_with(['-', '(', ')', '!', ',']);
    let end = words.iter().position(|word| !is_place(word)).unwrap_or(words.len());
    let (places, expression) = words.split_at(end);
    if let Some(word) =
        places.iter().find(|word| word.known_text().is_none() && word.may_be_option())
    {
        facts.add(Effect::Unknown(format!("find: `{word}` may be any action")));
    }
    (places, expression)
}

/// An action that does more than look. Gives the words after it.
fn apply_action<'w>(
    walker: &mut Walker<'_>,
    call: &ProgramCall<'_>,
    action: &str,
    rest: &'w [Field],
    places: &[Field],
    facts: &mut CommandFacts,
) -> &'w [Field] {
    match action {
        "-delete" => {
            add_deletions(walker, call, places, rest, facts);
            rest
        }
        "-exec" | "-execdir" | "-ok" | "-okdir" => {
            let end = rest.iter().position(|word| matches!(word.known_text(), Some(";" | "+")));
            let command = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            let in_place = action.ends_with("dir");
            let found = found_field(call, places, rest, in_place);
            run_on_found(walker, command, &found);
            end.and_then(|end| rest.get(end + 1..)).unwrap_or_default()
        }
        "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
            if let Some(file) = rest.first() {
                walker.apply_role(call, Role::Write, file, facts);
            }
            facts.at_least(Risk::Medium);
            rest.get(if action == "-fprintf" { 2 } else { 1 }..).unwrap_or_default()
        }
        "-files0-from" => {
            if let Some(file) = rest.first() {
                walker.apply_role(call, Role::Read, file, facts);
            }
            facts.add(Effect::Unknown("find: a file says where it starts".to_owned()));
            rest.get(1..).unwrap_or_default()
        }
        _ => {
            facts.add(Effect::Unknown(format!("find: unknown action `{action}`")));
            rest
        }
    }
}

fn add_deletions(
    walker: &mut Walker<'_>,
    call: &ProgramCall<'_>,
    places: &[Field],
    rest: &[Field],
    facts: &mut CommandFacts,
) {
    facts.at_least(Risk::High);
    if let Some(found) = chosen_places(call, places, rest).filter(|it| listing::are_named(it)) {
        return facts.add_at_places(Effect::Delete, found);
    }
    for place in places {
        walker.apply_role(call, Role::Delete, place, facts);
    }
    if places.is_empty() {
        facts.add_at_places(Effect::Delete, call.cwd.current_places());
    }
}

/// Returns the places of the files that an action gets, if their names say all there is to know. `rest` are the words
/// behind the action: `find` applies tests in their order, so only those before the action choose.
fn chosen_places(
    call: &ProgramCall<'_>,
    starts: &[Field],
    rest: &[Field],
) -> Option<Vec<FilePlace>> {
    let (_, is_exact) = listing::found_places(&call.cwd, starts, call.words)?;
    let before = call.words.get(..call.words.len().checked_sub(rest.len() + 1)?)?;
    let (_, tests) = split_expression(before, &mut CommandFacts::default());
    let without_tests = before.get(..before.len().checked_sub(tests.len())?)?;
    let choosing = if listing::are_plain_tests(tests) { before } else { without_tests };
    let (places, _) = listing::found_places(&call.cwd, starts, choosing)?;
    is_exact.then_some(places)
}

/// The names that are found, each one word.
fn found_field(call: &ProgramCall<'_>, places: &[Field], rest: &[Field], in_place: bool) -> Field {
    let start = match places {
        _ if in_place => "./",
        [] => "./",
        [place] => place.known_start(),
        _ => "",
    };
    match chosen_places(call, places, rest).filter(|_| !in_place) {
        Some(places) => Field::Listed {
            written: "{}".to_owned(),
            start: start.to_owned(),
            places: places.into(),
            exact: true,
        },
        None => Field::from_known_start("{}", start),
    }
}

/// A command that gets names for `{}`.
fn run_on_found(walker: &mut Walker<'_>, command: &[Field], found: &Field) {
    let fields: Vec<Field> = command.iter().map(|word| with_name(word, "{}", found)).collect();
    if !fields.is_empty() {
        walker.walk_child_command(&fields);
    }
}

/// `word` with such a name for each `mark` in it.
pub(super) fn with_name(word: &Field, mark: &str, name: &Field) -> Field {
    match word.known_text().and_then(|text| text.split_once(mark)) {
        Some(("", "")) if matches!(name, Field::Listed { .. }) => name.clone(),
        Some((before, _)) => {
            let start = format!("{before}{}", name.known_start());
            Field::from_known_start(word.known_text().unwrap_or_default(), &start)
        }
        None => word.clone(),
    }
}

/// `fd -x command` takes the words up to `;`, else the rest; after it more may follow.
pub(super) fn analyse_fd(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let (own, commands) = commands_of_fd(call.words);
    let sorted = crate::programs::sort_words(call.entry, &own);
    let own_call = ProgramCall { words: &own, sorted: &sorted, cwd: call.cwd.clone(), ..*call };
    let facts = walker.generic_facts(&own_call);
    let found = Field::from_known_start("{}", "");
    for command in commands.into_iter().filter(|command| !command.is_empty()) {
        let mut fields: Vec<Field> =
            command.iter().map(|word| with_name(word, "{", &found)).collect();
        if !command.iter().any(|word| word.known_text().is_some_and(|text| text.contains('{'))) {
            fields.push(found.clone());
        }
        walker.walk_child_command(&fields);
    }
    facts
}

/// The words of `fd` itself, and those of each command it runs.
fn commands_of_fd(words: &[Field]) -> (Vec<Field>, Vec<&[Field]>) {
    let is_run = |word: &Field| {
        word.known_text()
            .is_some_and(|text| matches!(text, "-x" | "-X" | "--exec" | "--exec-batch"))
    };
    let (mut own, mut commands, mut rest) = (Vec::new(), Vec::new(), words);
    while let Some(at) = rest.iter().position(is_run) {
        own.extend_from_slice(rest.get(..at).unwrap_or_default());
        let after = rest.get(at + 1..).unwrap_or_default();
        let end =
            after.iter().position(|word| word.known_text() == Some(";")).unwrap_or(after.len());
        commands.push(after.get(..end).unwrap_or_default());
        rest = after.get(end + 1..).unwrap_or_default();
    }
    own.extend_from_slice(rest);
    (own, commands)
}
