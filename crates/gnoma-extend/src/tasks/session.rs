//! Makes a task of what a person has said and run in a session: each message and each shell line is a step, and values
//! that look like parameters become arguments. No model is asked.

use gnoma_core::shell_line::split_shell_lines;

use super::{
    definition::parse_task,
    fault::TaskFault,
    steps::{BRACES, LEAD, escape_headings, has_only_blocks},
};

/// Most messages that become steps; later ones are left out.
const MAX_STEPS: usize = 20;
/// Most arguments that are made.
const MAX_ARGUMENTS: usize = 8;
/// Longest message that becomes a step, in bytes.
const MAX_MESSAGE_BYTES: usize = 8 << 10;
/// Longest title of a step, in characters.
const MAX_TITLE_CHARS: usize = 50;

/// A task that was made of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTask {
    /// The text of its file.
    pub text: String,
    /// The number of steps that were left out, because they are too long or too many.
    pub omitted: usize,
}

/// A value that looks like a parameter.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) value: String,
}

/// Makes the text of a task file of a person's messages, the oldest first.
///
/// # Errors
/// No message can be a step.
pub fn draft_from_messages(
    name: &str,
    session: &str,
    messages: &[String],
) -> Result<DraftTask, TaskFault> {
    let is_said = |text: &&String| !text.trim().is_empty() && !text.trim_start().starts_with('/');
    let said: Vec<&String> = messages.iter().filter(is_said).collect();
    let all: Vec<DraftStep<'_>> = said.iter().flat_map(|text| steps_of(text)).collect();
    let fits = |step: &&DraftStep<'_>| step.as_str().len() <= MAX_MESSAGE_BYTES;
    let steps: Vec<DraftStep<'_>> = all.iter().filter(fits).take(MAX_STEPS).copied().collect();
    let mut parameters: Vec<Parameter> = Vec::new();
    for step in &steps {
        for word in step.as_str().split_whitespace().map(bare_word) {
            add_parameter(word, &mut parameters);
        }
    }
    let mut text = format!("---\nname: {name}\n");
    if let Some(first) = steps.first() {
        let title = title_without_values(first.as_str(), &parameters);
        text.push_str(&format!("description: {}\n", quote_json(&title)));
    }
    if !parameters.is_empty() {
        text.push_str("arguments:\n");
    }
    // A version is another one each time, and what must be given comes first.
    let (versions, others): (Vec<&Parameter>, Vec<&Parameter>) =
        parameters.iter().partition(|parameter| parameter.kind == "version");
    for Parameter { name, kind, value } in versions.into_iter().chain(others) {
        let default = if *kind == "version" { String::new() } else { format!(" = {value}") };
        text.push_str(&format!("  {name}: {kind}{default}\n"));
    }
    text.push_str(&format!("sessions: [{session}]\n---\n"));
    for step in &steps {
        let body = match step {
            DraftStep::Prompt(prompt) => step_text(prompt, &parameters),
            DraftStep::Command(line) => {
                format!("```sh\n{}\n```", command_with_names(line, &parameters))
            }
        };
        let title = title_without_values(step.as_str(), &parameters);
        text.push_str(&format!("\n## {title}\n\n{body}\n"));
    }
    parse_task(name, &text)?;
    Ok(DraftTask { omitted: all.len() - steps.len(), text })
}

/// An action of a person that becomes a step.
#[derive(Clone, Copy)]
enum DraftStep<'t> {
    /// A message to the model.
    Prompt(&'t str),
    /// A shell line of the person's.
    Command(&'t str),
}

impl DraftStep<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Prompt(text) | Self::Command(text) => text,
        }
    }
}

/// Returns the steps that a message becomes: the shell lines at its beginning, and the text behind them.
fn steps_of(message: &str) -> Vec<DraftStep<'_>> {
    let (lines, rest) = split_shell_lines(message);
    let is_command = |line: &&str| !line.trim().is_empty() && !line.contains("```");
    let commands = lines.into_iter().filter(is_command).map(DraftStep::Command);
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty() && !rest.starts_with('/'));
    commands.chain(rest.map(DraftStep::Prompt)).collect()
}

/// Returns a shell line with variables in the places of values that are whole words. Words in quotes of other forms stay,
/// because a shell would not expand all of them.
pub(super) fn command_with_names(line: &str, parameters: &[Parameter]) -> String {
    let word = |piece: &str| {
        let word = piece.trim_end();
        let bare = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap_or(word);
        let named = parameters.iter().find(|parameter| parameter.value == bare);
        let blanks = piece.get(word.len()..).unwrap_or_default();
        named.map_or_else(|| piece.to_owned(), |named| format!("\"${}\"{blanks}", named.name))
    };
    line.split_inclusive(char::is_whitespace).map(word).collect()
}

/// A word without the signs around it.
fn bare_word(word: &str) -> &str {
    let word = word.trim_matches(|c: char| "\"'`()[]{}<>,;:!?".contains(c));
    word.trim_end_matches('.')
}

fn add_parameter(word: &str, parameters: &mut Vec<Parameter>) {
    let Some((name, kind)) = kind_of(word) else { return };
    let is_known = parameters.iter().any(|known| known.value == word);
    if is_known || parameters.len() == MAX_ARGUMENTS {
        return;
    }
    let count = parameters.iter().filter(|known| known.kind == kind).count();
    let name = if count == 0 { name.to_owned() } else { format!("{name}{}", count + 1) };
    parameters.push(Parameter { name, kind, value: word.to_owned() });
}

/// The name and the type of the argument that a word looks like a value of.
fn kind_of(word: &str) -> Option<(&'static str, &'static str)> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./~".contains(c);
    if word.len() < 3 || word.len() > 200 || !word.chars().all(plain) || word.starts_with('-') {
        return None;
    }
    let digits = word.strip_prefix('v').unwrap_or(word);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if digits.contains('.') && digits.split('.').all(is_number) {
        return Some(("version", "version"));
    }
    let parts: Vec<&str> = word.split('/').collect();
    let is_rooted =
        word.starts_with(['/', '~']) || word.starts_with("./") || word.starts_with("../");
    let has_ending = parts.last().is_some_and(|last| {
        last.rsplit_once('.').is_some_and(|(stem, ending)| !stem.is_empty() && ending.len() <= 5)
    });
    match parts.as_slice() {
        [_] => None,
        _ if is_rooted || has_ending => Some(("file", "path")),
        // `and/or` is one word; a branch has a digit or a hyphen.
        [_, second] if second.contains(|c: char| c.is_ascii_digit() || c == '-') => {
            Some(("branch", "branch"))
        }
        _ => None,
    }
}

/// A message as the text of a step: its values are names, and nothing in it begins another step.
pub(super) fn step_text(message: &str, parameters: &[Parameter]) -> String {
    let escaped = escape_headings(message.trim_start_matches("? "));
    let lines: Vec<String> = escaped.lines().map(|line| with_names(line, parameters)).collect();
    let text = lines.join("\n");
    // What somebody has said to a model is no command and no question.
    if text.starts_with('?') || has_only_blocks(&text) {
        return format!("{LEAD}\n\n{text}");
    }
    text
}

/// A line with names in the places of values that are whole words.
fn with_names(line: &str, parameters: &[Parameter]) -> String {
    let mut result = String::new();
    for piece in line.split_inclusive(char::is_whitespace) {
        let word = bare_word(piece.trim_end());
        let named = parameters.iter().find(|parameter| parameter.value == word);
        match named {
            Some(parameter) => {
                result.push_str(&piece.replacen(word, &format!("${{{}}}", parameter.name), 1));
            }
            None => result.push_str(piece),
        }
    }
    result
}

pub(super) fn step_title(message: &str) -> String {
    let first = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    // Braces would be options of the step.
    let first = first.replace(BRACES, "");
    let first = first.trim_start_matches(['#', '?', '`', ' ']).trim_end_matches(['#', ' ']);
    let title = gnoma_core::text_truncation::head_chars(first, MAX_TITLE_CHARS);
    let title = title.trim_end_matches(['#', ' ']);
    if title.is_empty() { "Step".to_owned() } else { title.to_owned() }
}

/// A title with the names of arguments in capitals in the places of values, which are others in each run.
pub(super) fn title_without_values(text: &str, parameters: &[Parameter]) -> String {
    let named = parameters.iter().fold(with_names(text, parameters), |text, parameter| {
        text.replace(&format!("${{{}}}", parameter.name), &parameter.name.to_uppercase())
    });
    step_title(&named)
}

fn quote_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use gnoma_core::shell_line::describe_shell_line;

    use super::{super::steps::StepAction, *};

    #[test]
    fn messages_become_steps_with_arguments() {
        let messages = [
            "Write the entry for v1.2.0 in docs/CHANGELOG.md, please.",
            "/model opus",
            "Tag v1.2.0 and push feat/x-1",
            "## A plan\n```\ncode",
        ]
        .map(str::to_owned);
        let draft = draft_from_messages("release", "s1", &messages).unwrap();
        let task = parse_task("release", &draft.text).unwrap();
        assert_eq!(task.usage(), "release VERSION [FILE] [BRANCH]");
        assert_eq!(task.steps.len(), 3);
        assert!(draft.text.contains("entry for ${version} in ${file}, please."), "{}", draft.text);
        assert!(draft.text.contains("Tag ${version} and push ${branch}"), "{}", draft.text);
        assert!(draft.text.contains("\n### A plan\n"), "{}", draft.text);
        assert_eq!(task.sessions, ["s1"]);
        let titles: Vec<_> = task.steps.iter().map(|step| step.title.as_str()).collect();
        assert_eq!(titles[1], "Tag VERSION and push BRANCH");
        assert!(!draft.text.contains("v1.2.0"), "{}", draft.text);
    }

    #[test]
    fn shell_lines_become_commands_with_arguments() {
        let tag = describe_shell_line("git tag v1.2.0 -m 'v1.2.0'", "fatal: \n## no step");
        let messages = [format!("{tag}\nPush v1.2.0."), format!("{tag}\n/help")];
        let draft = draft_from_messages("release", "s1", &messages).unwrap();
        let task = parse_task("release", &draft.text).unwrap();
        let command = StepAction::Command("git tag \"$version\" -m 'v1.2.0'".to_owned());
        let actions: Vec<_> = task.steps.into_iter().map(|step| step.action).collect();
        let push = StepAction::Prompt("Push ${version}.".to_owned());
        assert_eq!(actions, [command.clone(), push, command]);
        assert!(!draft.text.contains("fatal"), "{}", draft.text);
    }

    #[test]
    fn task_from_session_escapes_step_options_and_headings() {
        let messages = [
            "Tag HEAD@{1} {parallel",
            "Show {timeout=1s}",
            "##\tOne\n```\n~~~\n```\n## Two\n```sh\nrm -rf x\n```",
            "Begin\n~~~\n## Three",
        ]
        .map(str::to_owned);
        let draft = draft_from_messages("t", "s1", &messages).unwrap();
        let task = parse_task("t", &draft.text).unwrap();
        let titles: Vec<_> = task.steps.iter().map(|step| step.title.as_str()).collect();
        assert_eq!(titles, ["Tag HEAD@1 parallel", "Show timeout=1s", "One", "Begin"]);
        let is_prompt = |it: &StepAction| matches!(it, StepAction::Prompt(_));
        assert!(task.steps.iter().all(|step| is_prompt(&step.action)), "{}", draft.text);
        assert!(draft.text.contains("\n~~~\n## Three\n~~~\n"), "{}", draft.text);
    }

    #[test]
    fn task_from_session_puts_required_arguments_first() {
        let messages = ["Write docs/CHANGELOG.md for v1.2.0".to_owned()];
        let draft = draft_from_messages("t", "s1", &messages).unwrap();
        assert_eq!(parse_task("t", &draft.text).unwrap().usage(), "t VERSION [FILE]");
    }

    #[test]
    fn task_from_session_leaves_code_and_question_messages_as_prompts() {
        let messages = ["?? what is this", "```sh\nrm -rf x\n```"].map(str::to_owned);
        let draft = draft_from_messages("t", "s1", &messages).unwrap();
        let task = parse_task("t", &draft.text).unwrap();
        let is_prompt = task.steps.iter().all(|step| matches!(step.action, StepAction::Prompt(_)));
        assert!(is_prompt && task.steps.len() == 2, "{}", draft.text);
    }

    #[test]
    fn task_from_session_does_not_turn_ordinary_words_into_arguments() {
        for word in ["and/or", "1", "a", "TCP/IP", "e.g", "--flag", "src/", "...", "x..y"] {
            assert_eq!(kind_of(bare_word(word)), None, "{word}");
        }
        assert!(draft_from_messages("t", "s", &["/help".to_owned()]).is_err());
        let long = vec!["x".repeat(MAX_MESSAGE_BYTES + 1), "short".to_owned()];
        assert_eq!(draft_from_messages("t", "s", &long).unwrap().omitted, 1);
    }
}
