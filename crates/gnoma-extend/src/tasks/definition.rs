//! A task as its file defines it.

use gnoma_core::{session::PermissionMode, suggest::nearest_name};

use super::{
    arguments::{ArgumentError, MAX_ARGUMENTS, TaskArgument, usage_line},
    fault::{FIELDS, TaskError, TaskFault},
    steps::{StepAction, TaskStep, parse_timeout, split_steps},
    substitute::misspelt_variable,
};
use crate::front_matter::{FieldValue, FrontMatter, split_list};

/// Most commands that check a run.
const MAX_CHECKS: usize = 10;
/// Most sessions that a task can say it was made from.
const MAX_SESSIONS: usize = 20;
/// Longest description that is shown, in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// A task as its file defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDefinition {
    /// The name that people run the task by.
    pub name: String,
    /// The purpose of the task, in a line.
    pub description: String,
    /// The arguments, in order.
    pub arguments: Vec<TaskArgument>,
    /// The permission mode of its runs; a stricter one of the session holds.
    pub mode: Option<PermissionMode>,
    /// Commands that must succeed after the last step.
    pub checks: Vec<String>,
    /// The time limit in seconds of commands that name none, from 1.
    pub timeout_s: Option<u64>,
    /// Ids of the sessions that it was made from.
    pub sessions: Vec<String>,
    /// Text before the first step, which is sent with the first prompt.
    pub intro: String,
    /// The steps, in order.
    pub steps: Vec<TaskStep>,
}

impl TaskDefinition {
    /// Returns the name and the arguments for people: `release VERSION [REMOTE]`.
    #[must_use]
    pub fn usage(&self) -> String {
        usage_line(&self.name, &self.arguments)
    }

    /// Returns the shell commands of its steps and checks.
    pub fn shell_commands(&self) -> impl Iterator<Item = &str> {
        let steps = self.steps.iter().filter_map(|step| match &step.action {
            StepAction::Command(command) => Some(command.as_str()),
            StepAction::Prompt(_) | StepAction::Task { .. } | StepAction::Question { .. } => None,
        });
        steps.chain(self.checks.iter().map(String::as_str))
    }
}

/// Parses the text of a task file. `name`: the name of the file without `.md`.
///
/// # Errors
/// The first thing in the file that is wrong, with its line. Unknown fields are wrong: a misspelt `permission` would
/// otherwise allow more than the person has written.
pub fn parse_task(name: &str, text: &str) -> Result<TaskDefinition, TaskFault> {
    if let Some(at) = text.lines().position(|line| line.contains('\0')) {
        return Err(TaskFault { line: at + 1, error: TaskError::NulByte });
    }
    let (fields, body) = FrontMatter::split(text).unwrap_or((FrontMatter::default(), text));
    let first = line_of_body(text, body);
    let head = text.get(..text.len().saturating_sub(body.len())).unwrap_or_default();
    check_fields(name, head, &fields)?;
    let at =
        |field: &'static str| move |error| TaskFault { line: line_of_field(head, field), error };
    let arguments = parse_arguments(&fields)
        .map_err(|(name, error)| TaskFault { line: line_of_argument(head, &name), error })?;
    let mode = parse_mode(&fields).map_err(at("permission"))?;
    let checks =
        text_list(&fields, "checks", "commands that check", MAX_CHECKS).map_err(at("checks"))?;
    let sessions =
        text_list(&fields, "sessions", "sessions", MAX_SESSIONS).map_err(at("sessions"))?;
    let timeout_s = fields.text_field("timeout").map(|limit| parse_timeout(limit.trim()));
    let timeout_s = timeout_s.transpose().map_err(at("timeout"))?;
    let (intro, mut steps) = split_steps(body, first, name)?;
    check_variables(&arguments, &steps)?;
    if let Some(model) = fields.text_field("model") {
        for options in steps.iter_mut().map(|step| &mut step.options) {
            if options.role.is_none() {
                options.model.get_or_insert_with(|| model.clone());
            }
        }
    }
    let description =
        fields.text_field("description").unwrap_or_else(|| first_words(&intro, &steps));
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(TaskDefinition {
        name: name.to_owned(),
        description: description.chars().take(MAX_DESCRIPTION_CHARS).collect(),
        arguments,
        mode,
        checks,
        timeout_s,
        sessions,
        intro,
        steps,
    })
}

/// Refuses a command with a variable that was meant to be an argument: it would be empty.
fn check_variables(arguments: &[TaskArgument], steps: &[TaskStep]) -> Result<(), TaskFault> {
    let names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
    for step in steps {
        if let StepAction::Command(command) = &step.action
            && let Some((written, meant)) = misspelt_variable(command, &names)
        {
            let error = TaskError::MisspeltVariable { written, meant: meant.to_owned() };
            return Err(TaskFault { line: step.line, error });
        }
    }
    Ok(())
}

/// Refuses fields that cannot be read, that tasks do not have, and a name other than the file's. `head`: their text.
fn check_fields(name: &str, head: &str, fields: &FrontMatter) -> Result<(), TaskFault> {
    let fault = |field: &str, error| TaskFault { line: line_of_field(head, field), error };
    if let Some(why) = fields.faults.first() {
        let field = why.split('`').nth(1).unwrap_or_default();
        return Err(fault(field, TaskError::Fields(why.clone())));
    }
    if let Some((key, _)) = fields.fields.iter().find(|(key, _)| !FIELDS.contains(&key.as_str())) {
        let nearest = nearest_name(key, FIELDS.into_iter());
        return Err(fault(key, TaskError::UnknownField { name: key.clone(), nearest }));
    }
    match fields.text_field("name").filter(|field| field != name) {
        Some(field) => Err(fault("name", TaskError::NameDiffers { field, file: name.to_owned() })),
        None => Ok(()),
    }
}

/// Returns the text of a new task file, which works as it is and shows every kind of step.
#[must_use]
pub fn new_task_text(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Say what changed since a tag\narguments:\n  since: version = v0.1.0\n\
         permission: auto\n---\n\n## Look at the changes\n\n```sh\ngit log --oneline -20\n```\n\n\
         ## Summarize\n\nSummarize these commits in at most five lines for people who know version $since.\n"
    )
}

fn first_words(intro: &str, steps: &[TaskStep]) -> String {
    let first = intro.lines().map(str::trim).find(|line| !line.is_empty());
    let first = first.map(|line| line.trim_start_matches('#').trim().to_owned());
    first.unwrap_or_else(|| {
        let text = steps.first().map(|step| match &step.action {
            StepAction::Prompt(text) if steps.len() == 1 => text.trim_start_matches(['#', ' ']),
            _ => step.title.as_str(),
        });
        text.and_then(|text| text.lines().next()).unwrap_or_default().to_owned()
    })
}

/// The line of the file in which the text behind the fields begins.
fn line_of_body(text: &str, body: &str) -> usize {
    let head = text.get(..text.len().saturating_sub(body.len())).unwrap_or_default();
    head.matches('\n').count() + 1
}

/// The line of a field of the first level.
fn line_of_field(head: &str, field: &str) -> usize {
    let is_field = |line: &str| {
        let rest = line.trim_start_matches(['"', '\'']).strip_prefix(field);
        rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    };
    head.lines().position(is_field).map_or(1, |at| at + 1)
}

/// The line of an argument's definition.
fn line_of_argument(head: &str, name: &str) -> usize {
    let from = line_of_field(head, "arguments");
    let is_it = |line: &str| line.trim_start().starts_with(&format!("{name}:"));
    let below = head.lines().skip(from).position(is_it);
    below.map_or(from, |at| from + at + 1)
}

fn parse_arguments(fields: &FrontMatter) -> Result<Vec<TaskArgument>, (String, TaskError)> {
    let written: Vec<(String, String)> = match fields.get("arguments") {
        None => Vec::new(),
        Some(FieldValue::Map(all)) => all.clone(),
        // As commands of other programs have them: names alone.
        Some(FieldValue::List(names)) => {
            names.iter().map(|name| (name.clone(), String::new())).collect()
        }
        Some(FieldValue::Text(names)) => {
            let names = names.split(|c: char| c.is_whitespace() || c == ',');
            let names = names.filter(|name| !name.is_empty());
            names.map(|name| (name.to_owned(), String::new())).collect()
        }
    };
    if written.len() > MAX_ARGUMENTS {
        let error = TaskError::TooMany { what: "arguments", limit: MAX_ARGUMENTS };
        return Err((String::new(), error));
    }
    let mut all: Vec<TaskArgument> = Vec::new();
    for (name, written) in written {
        let read = TaskArgument::parse(&name, &written);
        let argument = read.and_then(|argument| fit_behind(argument, &all));
        all.push(argument.map_err(|error| (name, TaskError::Argument(error)))?);
    }
    Ok(all)
}

/// Refuses an argument that cannot stand behind others: values are given in their order, and by name.
fn fit_behind(
    argument: TaskArgument,
    others: &[TaskArgument],
) -> Result<TaskArgument, ArgumentError> {
    let name = &argument.name;
    if others.iter().any(|other| other.name == *name) {
        return Err(ArgumentError::Double(name.clone()));
    }
    match others.iter().find(|other| other.default.is_some() && argument.default.is_none()) {
        Some(TaskArgument { name: optional, .. }) => {
            Err(ArgumentError::Order { name: name.clone(), optional: optional.clone() })
        }
        None => Ok(argument),
    }
}

fn parse_mode(fields: &FrontMatter) -> Result<Option<PermissionMode>, TaskError> {
    let Some(text) = fields.text_field("permission") else { return Ok(None) };
    let wanted = "a permission mode: plan, default, auto, accept_edits, deny or bypass";
    text.parse().map(Some).map_err(|_| TaskError::Value { field: "permission", wanted })
}

fn text_list(
    fields: &FrontMatter,
    field: &'static str,
    what: &'static str,
    limit: usize,
) -> Result<Vec<String>, TaskError> {
    let all = match fields.get(field) {
        None => Vec::new(),
        Some(FieldValue::Text(text)) if field == "sessions" => split_list(text),
        Some(FieldValue::Text(text)) => vec![text.clone()],
        Some(FieldValue::List(all)) => all.clone(),
        Some(FieldValue::Map(_)) => {
            return Err(TaskError::Value { field, wanted: "a text or a list of texts" });
        }
    };
    let all: Vec<String> = all.into_iter().filter(|text| !text.trim().is_empty()).collect();
    if all.len() > limit { Err(TaskError::TooMany { what, limit }) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "---\nname: release\ndescription: Tag and push\narguments:\n  version: version\n  \
        kind: choice(patch, minor) = patch\n  notes: text = \"\"\npermission: plan\nchecks:\n  - cargo test\n\
        sessions: a, b\nmodel: opus\n---\n\nIntro.\n\n## One {model=haiku}\nDo $version.\n\n## Two\nMore.\n";

    #[test]
    fn fields_and_steps_are_parsed() {
        let task = parse_task("release", WHOLE).unwrap();
        assert_eq!(task.usage(), "release VERSION [KIND] [NOTES]");
        assert_eq!((task.mode, task.checks.len()), (Some(PermissionMode::Plan), 1));
        assert_eq!(
            (task.intro.as_str(), &*task.sessions),
            ("Intro.", &["a".to_owned(), "b".to_owned()][..])
        );
        let models: Vec<_> = task.steps.iter().map(|step| step.options.model.as_deref()).collect();
        assert_eq!(models, [Some("haiku"), Some("opus")]);
        assert_eq!(task.steps[0].line, 17);
    }

    #[test]
    fn slash_command_file_is_parsed_as_a_task_of_one_step() {
        let task =
            parse_task("fix", "---\ndescription: fix it\narguments: [issue, by]\n---\nFix $issue.")
                .unwrap();
        assert_eq!((task.usage().as_str(), task.steps.len()), ("fix ISSUE BY", 1));
        assert_eq!(parse_task("x", "Do it well.").unwrap().description, "Do it well.");
        let new = parse_task("fresh", &new_task_text("fresh")).unwrap();
        assert_eq!((new.usage().as_str(), new.steps.len()), ("fresh [SINCE]", 2));
    }

    #[test]
    fn task_file_errors_name_their_line() {
        for (text, told) in [
            (
                "---\npermision: plan\n---\nx",
                "2: unknown field `permision`; did you mean `permission`?",
            ),
            (
                "---\nallowed-tools: Read\n---\nx",
                "2: unknown field `allowed-tools`; tasks have name",
            ),
            ("---\ndescription: d\nname: other\n---\nx", "3: the name is `other`, but"),
            ("---\nname: t\ntimeout: long\n---\nx", "3: `long` is not a time limit"),
            ("---\npermission: everything\n---\nx", "2: `permission` must be a permission mode"),
            ("---\narguments:\n  a: text\n  b: thing\n---\nx", "4: `thing` is no type"),
            ("---\narguments:\n  A: text\n---\nx", "3: `A` cannot name"),
            (
                "---\narguments: [version]\n---\n## A\n```sh\nrm -rf \"$verson/\"\n```",
                "4: `$verson` is no argument and has no value in this command; did you mean `$version`?",
            ),
            ("---\narguments: [k, k]\n---\nx", "2: two arguments are called `k`"),
            (
                "---\narguments:\n  a: text = x\n  b: text\n---\nx",
                "4: `b` must be given and is behind `a`",
            ),
            ("---\nname: t\nname: t\n---\nx", "2: `name` occurs twice"),
            ("---\nchecks:\n  a: b\n---\nx", "2: `checks` must be"),
            ("---\nname: t\n---\nx\0y", "4: the line contains a byte 0"),
            ("---\nname: t\n", "1: the line `---` behind its fields is missing"),
            ("---\nname: t\n---\n", "4: the task has no step"),
            ("---\nname: t\n---\n\n## A\n\n## B\nx", "5: the step `A` has no text"),
        ] {
            let error = parse_task("t", text).unwrap_err().to_string();
            assert!(error.starts_with(told), "{text:?}: {error}");
        }
        let names: Vec<String> = (0..=MAX_ARGUMENTS).map(|at| format!("a{at}")).collect();
        let many = format!("---\narguments: {}\n---\nx", names.join(" "));
        assert!(parse_task("t", &many).unwrap_err().to_string().contains("more than 16 arguments"));
    }
}
