//! The steps of a task file: one below each heading `## Title`. A file without headings is one step.

use serde::{Deserialize, Serialize};

use super::fault::{ROLES, TaskError, TaskFault};

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
/// Stands before a prompt that would otherwise be a command or a question.
pub(super) const LEAD: &str = "Follow this:";
/// Begins the line of a step that runs another task.
const TASK: &str = "/task";

/// A step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStep {
    /// The heading of the step.
    pub title: String,
    /// The line of its heading, counted from 1.
    pub line: usize,
    /// The options behind the heading.
    pub options: StepOptions,
    /// The work of the step.
    pub action: StepAction,
}

/// The options behind the heading of a step: `{model=opus}`, `{timeout=90s parallel}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepOptions {
    /// The model that the step wants.
    pub model: Option<String>,
    /// The role whose model it wants, such as `small`.
    pub role: Option<String>,
    /// The time limit of its command in seconds, from 1, if it names one.
    pub timeout_s: Option<u64>,
    /// The step runs side by side with its neighbours that are marked so.
    pub is_parallel: bool,
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
        let step = parse_step(heading.unwrap_or_default(), line, &lines.join("\n"));
        steps.push(step.map_err(|error| TaskFault { line, error })?);
    }
    if steps.is_empty() && !intro.is_empty() {
        let fault = |error| TaskFault { line: first, error };
        let action = parse_action(&intro, title).map_err(fault)?;
        let title = title.to_owned();
        let step = TaskStep { title, line: first, options: StepOptions::default(), action };
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
        let heading = text.strip_prefix("##").filter(|rest| rest.starts_with([' ', '\t']));
        match heading.filter(|_| open.is_none()) {
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

/// Parses a step of its heading and the text below it.
fn parse_step(heading: &str, line: usize, text: &str) -> Result<TaskStep, TaskError> {
    let (title, options) = split_heading(heading)?;
    let action = parse_action(text.trim(), &title)?;
    let is_command = matches!(action, StepAction::Command(_));
    if options.timeout_s.is_some() && !is_command {
        return Err(TaskError::TimeLimitOfOther);
    }
    if options.is_parallel && !is_command && !matches!(action, StepAction::Prompt(_)) {
        return Err(TaskError::ParallelOther);
    }
    Ok(TaskStep { title, line, options, action })
}

/// Splits a heading into its title and its options.
fn split_heading(heading: &str) -> Result<(String, StepOptions), TaskError> {
    let heading = heading.trim().trim_end_matches('#').trim_end();
    let options = heading.strip_suffix('}').and_then(|heading| heading.rsplit_once('{'));
    let (title, written) = options.unwrap_or((heading, ""));
    let mut options = StepOptions::default();
    for option in written.split_whitespace() {
        match option.split_once('=') {
            Some(("model", name)) if !name.is_empty() => options.model = Some(name.to_owned()),
            Some(("role", role)) if ROLES.contains(&role) => options.role = Some(role.to_owned()),
            Some(("role", role)) => {
                return Err(TaskError::UnknownRole { written: role.to_owned() });
            }
            Some(("timeout", limit)) => options.timeout_s = Some(parse_timeout(limit)?),
            None if option == "parallel" => options.is_parallel = true,
            _ => return Err(TaskError::UnknownOption { option: option.to_owned() }),
        }
    }
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() {
        return Err(TaskError::UntitledStep);
    }
    Ok((title, options))
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
    match text.strip_prefix('?') {
        Some(question) if question.starts_with(char::is_whitespace) => parse_question(question),
        // A model would be asked in the place of the person.
        Some(_) => Err(TaskError::QuestionForm),
        None if has_only_blocks(text) => {
            let written = text.lines().next().unwrap_or_default().trim().to_owned();
            Err(TaskError::BlockForm { written })
        }
        None => Ok(StepAction::Prompt(text.to_owned())),
    }
}

/// Returns whether a text is nothing but code blocks.
pub(super) fn has_only_blocks(text: &str) -> bool {
    let mut open = None;
    text.lines().all(|line| {
        let fence = code_fence(line);
        match (open, fence) {
            (None, Some(mark)) => open = Some(mark),
            (Some(mark), Some(end)) if end.starts_with(mark) && line.trim() == end => open = None,
            (None, None) => return line.trim().is_empty(),
            (Some(_), _) => (),
        }
        true
    })
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
        assert_eq!(steps[0].options.model.as_deref(), Some("opus"));
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
    fn blank_behind_the_signs_of_a_heading_may_be_a_tab() {
        let (_, steps) = split("##\tA\nx\n```json\n{}\n```\n##\t B\n?\tSure?\n").unwrap();
        let titles: Vec<_> = steps.iter().map(|step| &*step.title).collect();
        assert_eq!(titles, ["A", "B"]);
        assert!(matches!(steps[1].action, StepAction::Question { .. }));
    }

    #[test]
    fn file_without_headings_is_one_step() {
        let (intro, steps) = split("Do the thing.\n\nWell.\n").unwrap();
        assert_eq!((intro.as_str(), steps.len(), &*steps[0].title), ("", 1, "all"));
        assert_eq!(steps[0].action, StepAction::Prompt("Do the thing.\n\nWell.".to_owned()));
    }

    #[test]
    fn options_stand_behind_the_heading() {
        let (_, steps) =
            split("## A {role=small parallel}\nx\n## B {parallel timeout=2m}\n```sh\nls\n```\n")
                .unwrap();
        let role = Some("small".to_owned());
        let wanted = [
            StepOptions { role, is_parallel: true, ..StepOptions::default() },
            StepOptions { timeout_s: Some(120), is_parallel: true, ..StepOptions::default() },
        ];
        assert_eq!(steps.into_iter().map(|step| step.options).collect::<Vec<_>>(), wanted);
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
            ("## A {role=boss}\ny", "1: `boss` is no role of a model; the roles are small"),
            ("## A {parallel}\n/task b", "1: only prompts and commands run side by side"),
            ("## A {parallel=2}\ny", "1: unknown option `parallel=2`"),
            ("## A\n```sh\n\n```", "1: the step `A` has no text"),
            ("## A\nx\n```sh\nls\n", "3: the code block that begins here does not end"),
            ("## A\n/task\n", "1: write `/task NAME"),
            ("## A\n/task run\n", "1: write `/task NAME"),
            ("## A\n? ok?\n- yes\nmore", "1: a question is"),
            ("## A\n? - yes", "1: a question is"),
            ("## A\n?Push it now?\n- yes", "1: a question is"),
            ("## A\n```console\nls\n```", "1: a step that begins with ````console` and is only"),
            ("## A\n```bash title=x\nls\n```", "1: a step that begins with ````bash title=x`"),
            ("## A\n```\nls\n```", "1: a step that begins with `````"),
            ("## A\n```sh\nls\n```\n\n```sh\npwd\n```", "1: a step that begins with ````sh`"),
        ] {
            let error = split(body).unwrap_err();
            assert!(error.starts_with(told), "{body:?}: {error}");
        }
        let many = "## A\nx\n".repeat(MAX_STEPS + 1);
        assert!(split(&many).unwrap_err().contains("more than 50 steps"));
    }
}
