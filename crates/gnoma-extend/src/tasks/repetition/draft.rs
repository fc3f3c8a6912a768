//! Makes a task file of a chore: its commands are steps as they were, its changes of files are prompts with what the
//! person said.

use super::{
    Repetition,
    describe::{RepeatedAction, RepeatedArgument, RepeatedStep},
    history::PastSession,
};
use crate::tasks::{
    arguments::ArgumentKind, definition::parse_task, fault::TaskFault, steps::escape_headings,
};

/// Longest message that is put into a prompt, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 10;
/// Most sessions that are named as sources.
const MAX_SESSIONS: usize = 20;
/// Longest title of a step, in characters.
const MAX_TITLE_CHARS: usize = 50;

/// Returns the text of a task file that does a chore.
///
/// # Errors
/// The text is no valid task.
pub fn draft_from_repetition(
    name: &str,
    repetition: &Repetition,
    history: &[PastSession],
) -> Result<String, TaskFault> {
    let mut text = format!(
        "---\nname: {name}\ndescription: {}\n",
        serde_json::Value::from(repetition.summary())
    );
    if !repetition.arguments.is_empty() {
        text.push_str("arguments:\n");
    }
    for argument in &repetition.arguments {
        text.push_str(&format!("  {}: {}\n", argument.name, kind_word(&argument.kind)));
    }
    let mut sessions: Vec<&str> = Vec::new();
    for (session, _) in &repetition.occurrences {
        let id = history.get(*session).map_or("", |it| it.id.as_str());
        if !id.is_empty() && !sessions.contains(&id) && sessions.len() < MAX_SESSIONS {
            sessions.push(id);
        }
    }
    text.push_str(&format!("sessions: [{}]\n---\n", sessions.join(", ")));
    let message = sample_message(repetition, history);
    let mut files: Vec<&RepeatedStep> = Vec::new();
    for step in &repetition.steps {
        match (step.action, command_of(step, &repetition.arguments)) {
            (RepeatedAction::Command, Some(command)) => {
                push_prompt(&mut text, &mut files, &message);
                let title = title_of(&step.shape);
                text.push_str(&format!("\n## {title}\n\n```sh\n{command}\n```\n"));
            }
            (RepeatedAction::Command, None) | (RepeatedAction::Edit | RepeatedAction::Write, _) => {
                files.push(step);
            }
        }
    }
    push_prompt(&mut text, &mut files, &message);
    parse_task(name, &text)?;
    Ok(text)
}

/// Adds a prompt that changes files and runs the commands that differ too much to be steps.
fn push_prompt(text: &mut String, steps: &mut Vec<&RepeatedStep>, message: &str) {
    let Some(first) = steps.first() else { return };
    let subject = |step: &RepeatedStep| {
        let whole = step.template.as_ref().unwrap_or(&step.example);
        // A line of its own could begin another step.
        whole.replace('`', "'").replace(['\n', '\r'], " ")
    };
    let title = title_of(&first.shape);
    text.push_str(&format!("\n## {title}\n\n"));
    if !message.is_empty() {
        text.push_str(&format!("{message}\n\n"));
    }
    text.push_str("Do only this part now:\n");
    for step in steps.drain(..) {
        let what = match (step.action, step.template.is_some()) {
            (RepeatedAction::Command, _) => "run a command like",
            (RepeatedAction::Edit, true) => "change",
            (RepeatedAction::Edit, false) => "change a file like",
            (RepeatedAction::Write, true) => "write",
            (RepeatedAction::Write, false) => "write a file like",
        };
        text.push_str(&format!("- {what} `{}`\n", subject(step)));
    }
}

/// The message that names most of the arguments, with their names in the places of values. The newest of several.
fn sample_message(repetition: &Repetition, history: &[PastSession]) -> String {
    let messages = repetition.occurrences.iter().enumerate().filter_map(|(at, (session, turn))| {
        let message = &history.get(*session)?.turns.get(*turn)?.message;
        (message.len() <= MAX_MESSAGE_BYTES).then_some((at, message.as_str()))
    });
    let named = |(at, message): &(usize, &str)| {
        let is_named = |it: &&RepeatedArgument| {
            it.values.get(*at).is_some_and(|value| !value.is_empty() && message.contains(value))
        };
        repetition.arguments.iter().filter(is_named).count()
    };
    let Some((at, message)) = messages.max_by_key(named) else { return String::new() };
    let mut lines: Vec<&str> = Vec::new();
    for line in message.trim().trim_start_matches(['/', '?', '#', ' ']).lines() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        if !is_fence {
            lines.push(line);
        }
    }
    let mut text = escape_headings(&lines.join("\n"));
    let mut longest_first: Vec<&RepeatedArgument> = repetition.arguments.iter().collect();
    gnoma_core::sort::by_key(&mut longest_first, |it| {
        std::cmp::Reverse(it.values.get(at).map_or(0, String::len))
    });
    for argument in longest_first {
        if let Some(value) = argument.values.get(at).filter(|it| !it.is_empty()) {
            text = super::describe::replace_outside_names(&text, value, &named_as(argument));
        }
    }
    text
}

fn kind_word(kind: &ArgumentKind) -> &'static str {
    match kind {
        ArgumentKind::Version => "version",
        ArgumentKind::Path => "path",
        ArgumentKind::Branch => "branch",
        ArgumentKind::Number => "number",
        ArgumentKind::Text | ArgumentKind::Choice(_) => "text",
    }
}

fn named_as(argument: &RepeatedArgument) -> String {
    format!("${{{}}}", argument.name)
}

/// A command in which the arguments are variables of the shell, in quotes.
fn command_of(step: &RepeatedStep, arguments: &[RepeatedArgument]) -> Option<String> {
    let template = step.template.as_deref().filter(|it| !it.contains("```"))?;
    let mut command = String::new();
    let mut quote = None;
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        let name = arguments.iter().map(named_as).find(|name| rest.starts_with(name.as_str()));
        let taken = match (&name, quote) {
            (Some(name), None) => {
                command.push_str(&format!("\"{name}\""));
                name.len()
            }
            (Some(name), Some('\'')) => {
                command.push_str(&format!("'\"{name}\"'"));
                name.len()
            }
            (Some(name), _) => {
                command.push_str(name);
                name.len()
            }
            (None, _) => {
                match (quote, c) {
                    (None, '"' | '\'') => quote = Some(c),
                    (Some(open), _) if open == c => quote = None,
                    _ => {}
                }
                command.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    Some(command)
}

/// A title without signs that mean something in a task file.
fn title_of(shape: &str) -> String {
    let is_plain = |c: &char| !matches!(c, '{' | '}' | '#' | '`');
    let plain: String = shape.replace(['\n', '\r'], " ").chars().filter(is_plain).collect();
    let title = gnoma_core::text_truncation::head_chars(plain.trim(), MAX_TITLE_CHARS).trim_end();
    if title.is_empty() { "Step".to_owned() } else { title.to_owned() }
}
