//! The steps of a task file: one below each heading `## Title`. A file without headings is one step.

use serde::{Deserialize, Serialize};

use super::fault::{TaskError, TaskFault};

/// Most steps of a file.
const MAX_STEPS: usize = 50;
/// Most choices of a question.
const MAX_CHOICES: usize = 9;
/// Languages of code blocks whose content is a command.
const SHELLS: [&str; 3] = ["sh", "bash", "shell"];
/// The time limit of a command that names none, in seconds: long enough for a release build.
pub(super) const STEP_TIMEOUT_S: u64 = 60 * 60;
/// The longest time limit of a command, in seconds. The shell tool allows no longer one.
const MAX_TIMEOUT_S: u64 = 60 * 60;
/// Begins the line of a step that runs another task.
const TASK: &str = "/task";

/// A step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStep {
    /// The heading of the step.
    pub title: String,
    /// The line of its heading, counted from 1.
    pub line: usize,
    /// The model that it wants.
    pub model: Option<String>,
    /// The time limit of its command in seconds, from 1, if it names one.
    pub timeout_s: Option<u64>,
    /// The work of the step.
    pub action: StepAction,
}

/// The work of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepAction {
    /// Sends this to the model.
    Prompt(String),
    /// Runs this in a shell.
    Command(String),
    /// Runs another task within this one.
    Task {
        /// The name of the task.
        name: String,
        /// The words behind the name.
        arguments: String,
    },
    /// Asks the person a question.
    Question {
        /// The text of the question.
        text: String,
        /// The answers to choose from; if there are none, any words are an answer.
        choices: Vec<String>,
    },
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A prompt to a model.
    Prompt,
    /// A command for the shell.
    Command,
    /// A question to the person.
    Question,
}

impl StepKind {
    /// Returns the name of the kind, as in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Command => "command",
            Self::Question => "question",
        }
    }
}

/// The text before the first heading, and the steps.
pub(super) type IntroAndSteps = (String, Vec<TaskStep>);

/// A heading and the lines below it.
struct Section<'t> {
    heading: Option<&'t str>,
    line: usize,
    lines: Vec<&'t str>,
}

/// Splits the text behind the fields, whose first line is line `first` of the file. `title`: the title of the step of
/// a file without headings.
pub(super) fn split_steps(
    body: &str,
    first: usize,
    title: &str,
) -> Result<IntroAndSteps, TaskFault> {
    let mut sections = split_sections(body, first)?.into_iter();
    let intro = sections.next();
    let intro = intro.map(|section| section.lines.join("\n").trim().to_owned()).unwrap_or_default();
    let mut steps = Vec::new();
    for Section { heading, line, lines } in sections {
        if steps.len() == MAX_STEPS {
            let error = TaskError::TooMany { what: "steps in one file", limit: MAX_STEPS };
            return Err(TaskFault { line, error });
        }
        let at = |error| TaskFault { line, error };
        let options = heading_parts(heading.unwrap_or_default()).map_err(at)?;
        let Heading { title, model, timeout_s } = options;
        let text = lines.join("\n");
        let action = parse_action(text.trim(), &title).map_err(at)?;
        if timeout_s.is_some() && !matches!(action, StepAction::Command(_)) {
            return Err(at(TaskError::TimeLimitOfOther));
        }
        steps.push(TaskStep { title, line, model, timeout_s, action });
    }
    if steps.is_empty() && !intro.is_empty() {
        let fault = |error| TaskFault { line: first, error };
        let action = parse_action(&intro, title).map_err(fault)?;
        let title = title.to_owned();
        let step = TaskStep { title, line: first, model: None, timeout_s: None, action };
        return Ok((String::new(), vec![step]));
    }
    if steps.is_empty() {
        return Err(TaskFault { line: first, error: TaskError::NoSteps });
    }
    Ok((intro, steps))
}

/// The text before the first heading, and what is below each. Headings in code blocks are none.
fn split_sections(body: &str, first: usize) -> Result<Vec<Section<'_>>, TaskFault> {
    let mut all = vec![Section { heading: None, line: first, lines: Vec::new() }];
    let mut open: Option<(usize, &str)> = None;
    for (line, text) in (first..).zip(body.lines()) {
        let fence = code_fence(text);
        match (&open, fence) {
            (None, Some(mark)) => open = Some((line, mark)),
            (Some((_, mark)), Some(end)) if end.starts_with(mark) && text.trim() == end => {
                open = None;
            }
            _ => (),
        }
        match text.strip_prefix("## ").filter(|_| open.is_none()) {
            Some(heading) => {
                all.push(Section { heading: Some(heading), line, lines: Vec::new() });
            }
            None if text.trim_end() == "##" && open.is_none() => {
                return Err(TaskFault { line, error: TaskError::UntitledStep });
            }
            None => {
                if let Some(section) = all.last_mut() {
                    section.lines.push(text);
                }
            }
        }
    }
    match open {
        Some((line, _)) => Err(TaskFault { line, error: TaskError::OpenBlock }),
        None => Ok(all),
    }
}

/// The backticks or tildes that begin or end a code block.
fn code_fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    line.get(..length).filter(|_| length >= 3)
}

/// A heading with its options.
struct Heading {
    title: String,
    model: Option<String>,
    timeout_s: Option<u64>,
}

/// Parses a time limit such as `90s`, `20m` or `1h`. Returns seconds.
pub(super) fn parse_timeout(written: &str) -> Result<u64, TaskError> {
    let wrong = || TaskError::TimeLimit { written: written.to_owned() };
    let (number, unit) =
        written.split_at(written.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.len()));
    let unit_s = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(unit_s).ok_or_else(wrong)?;
    if (1..=MAX_TIMEOUT_S).contains(&seconds) { Ok(seconds) } else { Err(wrong()) }
}

/// Splits a heading into its title and its options.
fn heading_parts(heading: &str) -> Result<Heading, TaskError> {
    let heading = heading.trim().trim_end_matches('#').trim_end();
    let options = heading.strip_suffix('}').and_then(|heading| heading.rsplit_once('{'));
    let (title, options) = options.unwrap_or((heading, ""));
    let (mut model, mut timeout_s) = (None, None);
    for option in options.split_whitespace() {
        match option.split_once('=') {
            Some(("model", name)) if !name.is_empty() => model = Some(name.to_owned()),
            Some(("timeout", limit)) => timeout_s = Some(parse_timeout(limit)?),
            _ => return Err(TaskError::UnknownOption { option: option.to_owned() }),
        }
    }
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() {
        return Err(TaskError::UntitledStep);
    }
    Ok(Heading { title, model, timeout_s })
}

fn parse_action(text: &str, title: &str) -> Result<StepAction, TaskError> {
    if text.is_empty() {
        return Err(TaskError::EmptyStep { title: title.to_owned() });
    }
    if let Some(command) = whole_command(text) {
        let is_empty = command.trim().is_empty();
        return if is_empty {
            Err(TaskError::EmptyStep { title: title.to_owned() })
        } else {
            Ok(StepAction::Command(command))
        };
    }
    if text == TASK || text.strip_prefix(TASK).is_some_and(|rest| rest.starts_with(' ')) {
        let rest = text.strip_prefix(TASK).unwrap_or_default().trim();
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if !super::is_task_name(name) || rest.contains('\n') {
            return Err(TaskError::TaskLine);
        }
        let (name, arguments) = (name.to_owned(), arguments.trim().to_owned());
        return Ok(StepAction::Task { name, arguments });
    }
    match text.strip_prefix("? ") {
        Some(question) => self::parse_question(question),
        None => Ok(StepAction::Prompt(text.to_owned())),
    }
}

/// The command of a text that is one code block of a shell and nothing else.
fn whole_command(text: &str) -> Option<String> {
    let mark = code_fence(text)?;
    let (head, rest) = text.split_once('\n')?;
    let language = head.strip_prefix(mark)?.trim();
    let (inside, last) = rest.rsplit_once('\n').unwrap_or(("", rest));
    let is_closed = last.trim() == mark && !inside.lines().any(|line| line.trim() == mark);
    (SHELLS.contains(&language) && is_closed).then(|| inside.to_owned())
}

fn parse_question(text: &str) -> Result<StepAction, TaskError> {
    let mut words: Vec<&str> = Vec::new();
    let mut choices = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            Some(choice) => choices.push(choice.trim().to_owned()),
            None if choices.is_empty() => words.push(line),
            None => return Err(TaskError::QuestionForm),
        }
    }
    if choices.len() > MAX_CHOICES {
        return Err(TaskError::TooMany { what: "choices of a question", limit: MAX_CHOICES });
    }
    if words.is_empty() {
        return Err(TaskError::QuestionForm);
    }
    Ok(StepAction::Question { text: words.join(" "), choices })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(body: &str) -> Result<IntroAndSteps, String> {
        split_steps(body, 1, "all").map_err(|fault| fault.to_string())
    }

    #[test]
    fn each_heading_begins_a_step_of_its_kind() {
        let (intro, steps) = split(
            "# Release\nFor people.\n\n## Write {model=opus}\nWrite it.\n\n```sh\nnot a step of its own\n```\n\
             ## Test\n\n```sh\ncargo test\n## no heading\n```\n## Push\n/task push $version\n\
             ## Sure?\n? Push it\nnow?\n- yes\n- no\n",
        )
        .unwrap();
        assert_eq!(intro, "# Release\nFor people.");
        let titles: Vec<_> = steps.iter().map(|step| (&*step.title, step.line)).collect();
        assert_eq!(titles, [("Write", 4), ("Test", 10), ("Push", 16), ("Sure?", 18)]);
        assert_eq!(steps[0].model.as_deref(), Some("opus"));
        assert!(matches!(&steps[0].action, StepAction::Prompt(text) if text.ends_with("```")));
        assert_eq!(steps[1].action, StepAction::Command("cargo test\n## no heading".to_owned()));
        let (name, arguments) = ("push".to_owned(), "$version".to_owned());
        assert_eq!(steps[2].action, StepAction::Task { name, arguments });
        let choices = vec!["yes".to_owned(), "no".to_owned()];
        assert_eq!(
            steps[3].action,
            StepAction::Question { text: "Push it now?".to_owned(), choices }
        );
    }

    #[test]
    fn file_without_headings_is_one_step() {
        let (intro, steps) = split("Do the thing.\n\nWell.\n").unwrap();
        assert_eq!((intro.as_str(), steps.len(), &*steps[0].title), ("", 1, "all"));
        assert_eq!(steps[0].action, StepAction::Prompt("Do the thing.\n\nWell.".to_owned()));
    }

    #[test]
    fn steps_that_are_wrong_are_named_with_their_line() {
        for (body, told) in [
            ("", "1: the task has no step"),
            ("## A\n", "1: the step `A` has no text"),
            ("x\n##\ny", "2: the step needs a title"),
            ("## {model=a}\ny", "1: the step needs a title"),
            ("## A {modle=x}\ny", "1: unknown option `modle=x`"),
            ("## A {timeout=soon}\n```sh\nls\n```", "1: `soon` is not a time limit"),
            ("## A {timeout=0s}\n```sh\nls\n```", "1: `0s` is not a time limit"),
            ("## A {timeout=2h}\n```sh\nls\n```", "1: `2h` is not a time limit"),
            ("## A {timeout=5m}\ny", "1: only a command has a time limit"),
            ("## A\n```sh\n\n```", "1: the step `A` has no text"),
            ("## A\nx\n```sh\nls\n", "3: the code block that begins here does not end"),
            ("## A\n/task\n", "1: write `/task NAME"),
            ("## A\n/task run\n", "1: write `/task NAME"),
            ("## A\n? ok?\n- yes\nmore", "1: a question is"),
            ("## A\n? - yes", "1: a question is"),
        ] {
            let error = split(body).unwrap_err();
            assert!(error.starts_with(told), "{body:?}: {error}");
        }
        let many = "## A\nx\n".repeat(MAX_STEPS + 1);
        assert!(split(&many).unwrap_err().contains("more than 50 steps"));
    }
}
