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
/// The number of blanks that make a line Markdown code.
const CODE_INDENT: usize = 4;
/// The signs around the options of a step.
pub(super) const BRACES: [char; 2] = ['{', '}'];
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
    let (mut blocks, mut opened) = (CodeBlocks::default(), first);
    for (line, text) in (first..).zip(body.lines()) {
        let was_open = blocks.is_open();
        let is_text = blocks.is_text(text);
        if is_text && is_near_heading(text) {
            return Err(TaskFault { line, error: TaskError::NearHeading });
        }
        let heading = if is_text { heading_text(text) } else { None };
        if blocks.is_open() && !was_open {
            opened = line;
        }
        match heading {
            Some("") => return Err(TaskFault { line, error: TaskError::UntitledStep }),
            Some(heading) => {
                all.push(Section { heading: Some(heading), line, lines: Vec::new() });
            }
            None => {
                if let Some(section) = all.last_mut() {
                    section.lines.push(text);
                }
            }
        }
    }
    if blocks.is_open() {
        return Err(TaskFault { line: opened, error: TaskError::OpenBlock });
    }
    Ok(all)
}

/// The code blocks of a text, whose lines are read one by one.
#[derive(Default)]
struct CodeBlocks<'t> {
    /// The backticks or tildes that began the block which has not ended.
    mark: Option<&'t str>,
}

impl<'t> CodeBlocks<'t> {
    /// Reads a line. Returns whether it is outside of code blocks.
    fn is_text(&mut self, line: &'t str) -> bool {
        match (self.mark, code_fence(line)) {
            (None, Some(mark)) => self.mark = Some(mark),
            (Some(mark), Some(end)) if end.starts_with(mark) && line.trim() == end => {
                self.mark = None;
            }
            (mark, _) => return mark.is_none(),
        }
        false
    }

    fn is_open(&self) -> bool {
        self.mark.is_some()
    }
}

/// The text of a heading that begins a step; `None` if the line is none.
fn heading_text(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("##")?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}

/// Returns whether a person may take a line for a heading that begins a step: `##Title`, or one behind a few blanks.
fn is_near_heading(line: &str) -> bool {
    let text = line.trim_start_matches(' ');
    let is_heading = text.strip_prefix("##").is_some_and(|rest| !rest.starts_with('#'));
    is_heading && line.len() - text.len() < CODE_INDENT && heading_text(line).is_none()
}

/// Returns a text without headings that would begin a step: they get a sign more. A code block without an end is ended.
pub(super) fn escape_headings(text: &str) -> String {
    let mut blocks = CodeBlocks::default();
    let mut escaped = String::new();
    for line in text.lines() {
        let is_text = blocks.is_text(line);
        if is_text && (heading_text(line).is_some() || is_near_heading(line)) {
            escaped.push_str(&line.replacen("##", "###", 1));
        } else {
            escaped.push_str(line);
        }
        escaped.push('\n');
    }
    escaped.extend(blocks.mark);
    escaped.truncate(escaped.trim_end().len());
    escaped
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
    let is_prompt = matches!(action, StepAction::Prompt(_));
    if options.timeout_s.is_some() && !is_command {
        return Err(TaskError::TimeLimitOfOther);
    }
    if (options.model.is_some() || options.role.is_some()) && !is_prompt {
        return Err(TaskError::ModelOfOther);
    }
    if options.is_parallel && !is_command && !is_prompt {
        return Err(TaskError::ParallelOther);
    }
    Ok(TaskStep { title, line, options, action })
}

/// Splits a heading into its title and its options.
fn split_heading(heading: &str) -> Result<(String, StepOptions), TaskError> {
    let heading = heading.trim().trim_end_matches('#').trim_end();
    let (title, written) = split_braces(heading)?;
    let mut options = StepOptions::default();
    let mut keys: Vec<&str> = Vec::new();
    for option in written.split_whitespace() {
        let key = option.split_once('=').map_or(option, |(key, _)| key);
        if keys.contains(&key) {
            return Err(TaskError::DoubleOption { key: key.to_owned() });
        }
        keys.push(key);
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
    if options.model.is_some() && options.role.is_some() {
        return Err(TaskError::ModelAndRole);
    }
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() {
        return Err(TaskError::UntitledStep);
    }
    Ok((title, options))
}

/// Splits a heading into its title and the text in the braces at its end, which is empty only if there are none. Braces
/// behind a `$` belong to the title.
fn split_braces(heading: &str) -> Result<(&str, &str), TaskError> {
    if !has_braces(heading) {
        return Ok((heading, ""));
    }
    let options = heading.strip_suffix('}').and_then(|heading| heading.rsplit_once('{'));
    let fits = |(title, written): &(&str, &str)| {
        !has_braces(title) && !has_braces(written) && !written.trim().is_empty()
    };
    options.filter(fits).ok_or(TaskError::Braces)
}

/// Returns whether a text has braces other than those of `${name}`.
fn has_braces(text: &str) -> bool {
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        match behind.split_once('}') {
            Some((name, tail)) if !before.contains(BRACES) && !name.contains('{') => rest = tail,
            Some(_) | None => return true,
        }
    }
    rest.contains(BRACES)
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
    let mut blocks = CodeBlocks::default();
    text.lines().all(|line| !blocks.is_text(line) || line.trim().is_empty())
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
mod tests;
