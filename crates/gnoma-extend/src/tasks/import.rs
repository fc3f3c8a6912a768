//! Makes tasks of the commands of other programs: Claude Code, Codex and opencode. A command becomes a task of one step.

use super::{
    definition::parse_task,
    fault::TaskFault,
    steps::{LEAD, StepAction, escape_headings},
};
use crate::front_matter::FrontMatter;

/// The place that stands for all words behind a command.
const ALL_WORDS: &str = "$ARGUMENTS";
/// Stands before the number of a word.
const POSITION: &str = "$ARGUMENTS[";
/// Begins the names of arguments that a command numbers.
const NUMBERED: &str = "arg";
/// Fields of commands that tasks have under the same name.
const TAKEN_FIELDS: [&str; 1] = ["description"];
/// Most characters of a description that are taken.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// A task that was made of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedTask {
    /// The text of its file.
    pub text: String,
    /// The parts that the command has and the task has not, in a few words each.
    pub lost: Vec<String>,
}

/// Makes the text of a task file of a command's text. `has_named_words`: as in Codex, `$FILE` stands for an argument of
/// that name.
///
/// # Errors
/// The text is empty, or too long for a task.
pub fn import_command(
    name: &str,
    text: &str,
    has_named_words: bool,
) -> Result<ImportedTask, TaskFault> {
    let (fields, body) = FrontMatter::split(text).unwrap_or((FrontMatter::default(), text));
    let mut lost: Vec<String> = fields
        .unknown_fields(&TAKEN_FIELDS)
        .iter()
        .map(|field| format!("the field `{field}`"))
        .collect();
    let (body, arguments) = name_arguments(body.trim(), has_named_words);
    let is_numbered = |name: &&String| {
        name.strip_prefix(NUMBERED).is_some_and(|number| number.parse::<u8>().is_ok())
    };
    if let Some(last) = arguments.last().filter(is_numbered) {
        lost.push(format!(
            "that `${{{last}}}` is one word: as the last argument it takes all that are left"
        ));
    }
    if body.contains("!`") {
        lost.push("commands in its text (!`…`), which stay as text".to_owned());
    }
    let body = escape_headings(&body);
    let mut head = format!("---\nname: {name}\n");
    if let Some(description) = fields.text_field("description") {
        let short: String = description.chars().take(MAX_DESCRIPTION_CHARS).collect();
        head.push_str(&format!("description: {}\n", serde_json::Value::from(short)));
    }
    if !arguments.is_empty() {
        head.push_str("arguments:\n");
        head.extend(arguments.iter().map(|argument| format!("  {argument}: text = \"\"\n")));
    }
    head.push_str("---\n\n");
    let whole = format!("{head}{body}\n");
    let is_prompt = parse_task(name, &whole).is_ok_and(
        |task| matches!(&*task.steps, [step] if matches!(step.action, StepAction::Prompt(_))),
    );
    let text =
        if is_prompt || body.is_empty() { whole } else { format!("{head}{LEAD}\n\n{body}\n") };
    parse_task(name, &text)?;
    Ok(ImportedTask { text, lost })
}

/// Replaces the places of arguments by names that tasks have, and returns the names in order.
fn name_arguments(body: &str, has_named_words: bool) -> (String, Vec<String>) {
    let mut text = String::new();
    let (mut highest, mut named, mut takes_all) = (0, Vec::new(), false);
    // Codex counts from one, and knows no `$0`.
    let first = u8::from(has_named_words || !counts_from_zero(body));
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        let (before, place) = rest.split_at(at);
        text.push_str(before);
        if let Some((number, length)) = read_position(place, first) {
            highest = highest.max(number);
            text.push_str(&format!("${{{NUMBERED}{number}}}"));
            rest = place.get(length..).unwrap_or_default();
            continue;
        }
        let word = word_behind_dollar(place);
        if place.starts_with(ALL_WORDS) && word.len() + 1 == ALL_WORDS.len() {
            takes_all = true;
            text.push_str(ALL_WORDS);
        } else if has_named_words && is_argument_name(word) {
            let name = word.to_lowercase();
            text.push_str(&format!("${{{name}}}"));
            if !named.contains(&name) {
                named.push(name);
            }
        } else {
            text.push('$');
            text.push_str(word);
        }
        rest = place.get(1 + word.len()..).unwrap_or_default();
    }
    text.push_str(rest);
    let mut names: Vec<String> =
        (1..=highest).map(|number| format!("{NUMBERED}{number}")).collect();
    names.extend(named);
    if takes_all {
        // The last argument takes the words behind those of the others, which alone are one word.
        let rest = "words".to_owned();
        if !names.contains(&rest) {
            names.push(rest);
        }
        let all: Vec<String> = names.iter().map(|name| format!("${{{name}}}")).collect();
        text = text.replace(ALL_WORDS, &all.join(" "));
    }
    (text, names)
}

/// Reports whether a command calls its first word `$0` or `$ARGUMENTS[0]`; other commands call it `$1`.
fn counts_from_zero(body: &str) -> bool {
    body.contains(POSITION)
        || body
            .match_indices('$')
            .any(|(at, _)| word_behind_dollar(body.get(at..).unwrap_or_default()) == "0")
}

/// Reads the position of a word, `$2` or `$ARGUMENTS[2]`. Returns its number, counted from one, and the length of the
/// place in bytes; `first` is what the command calls its first word.
fn read_position(place: &str, first: u8) -> Option<(u8, usize)> {
    let (word, length) = match place.strip_prefix(POSITION).and_then(|rest| rest.split_once(']')) {
        Some((word, _)) => (word, POSITION.len() + word.len() + 1),
        None => (word_behind_dollar(place), 1 + word_behind_dollar(place).len()),
    };
    let [digit @ b'0'..=b'9'] = word.as_bytes() else { return None };
    let number = (digit - b'0').checked_sub(first)? + 1;
    (number <= 9).then_some((number, length))
}

/// The letters, digits and `_` behind the `$` at the beginning of a text.
fn word_behind_dollar(place: &str) -> &str {
    let from = place.get(1..).unwrap_or_default();
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    from.get(..from.find(is_end).unwrap_or(from.len())).unwrap_or_default()
}

/// Returns whether a word is a name of an argument as Codex writes it: `FILE`.
fn is_argument_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && word.len() <= MAX_WORD_BYTES
}

/// Longest name of an argument, in bytes.
const MAX_WORD_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_tasks_of_one_prompt_with_arguments() {
        let text = "---\ndescription: \"Fix: an issue\"\nallowed-tools: Bash(git *)\nargument-hint: [n]\n---\n\
            Fix $1 for $2 ($ARGUMENTS), not $HOME or $10.\n\n## Steps\n1. !`git status`\n";
        let imported = import_command("fix", text, false).unwrap();
        let task = parse_task("fix", &imported.text).unwrap();
        assert_eq!(
            (task.usage().as_str(), &*task.description),
            ("fix [ARG1] [ARG2] [WORDS]", "Fix: an issue")
        );
        let StepAction::Prompt(prompt) = &task.steps[0].action else { panic!("{task:?}") };
        assert!(
            prompt
                .contains("Fix ${arg1} for ${arg2} (${arg1} ${arg2} ${words}), not $HOME or $10."),
            "{prompt}"
        );
        assert!(prompt.contains("### Steps") && task.steps.len() == 1, "{prompt}");
        let lost = imported.lost.join(", ");
        for part in ["`allowed-tools`", "`argument-hint`", "commands in its text"] {
            assert!(lost.contains(part), "{part}: {lost}");
        }
    }

    #[test]
    fn imported_slash_command_placeholders_become_task_arguments() {
        let usage = |text: &str, named: bool| {
            let imported = import_command("t", text, named).unwrap();
            parse_task("t", &imported.text).unwrap().usage()
        };
        assert_eq!(usage("Do $ARGUMENTS", false), "t [WORDS]");
        assert_eq!(usage("Read $FILE, then $FILE and $1", true), "t [ARG1] [FILE]");
        assert_eq!(usage("Read $FILE", false), "t");
        assert_eq!(usage("Compare $0 with $1", false), "t [ARG1] [ARG2]");
        assert_eq!(usage("Read $ARGUMENTS[0]", false), "t [ARG1]");
        assert_eq!(usage("Print $1 as awk prints $0", true), "t [ARG1]");
        assert_eq!(
            usage("Costs $5.00 or 3$", false),
            "t [ARG5]".replace("[ARG5]", "[ARG1] [ARG2] [ARG3] [ARG4] [ARG5]")
        );
    }

    #[test]
    fn imported_text_that_looks_like_a_command_or_question_stays_a_prompt() {
        for text in [
            "```sh\nrm -rf x\n```",
            "? Push it?",
            "/task release v1",
            "Say it.\n##\tOne\n```sh\nrm -rf x\n```",
            "Say it.\n```\n~~~\n```\n## One\n```sh\nrm -rf x\n```",
            "Say it.\n##\n```sh\nrm -rf x",
        ] {
            let imported = import_command("t", text, false).unwrap();
            let task = parse_task("t", &imported.text).unwrap();
            let is_prompt = |it: &StepAction| matches!(it, StepAction::Prompt(_));
            assert!(task.steps.len() == 1 && is_prompt(&task.steps[0].action), "{task:?}");
        }
        assert!(import_command("t", "---\ndescription: x\n---\n", false).is_err());
    }
}
