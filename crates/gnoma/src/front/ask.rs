//! Permission questions on the terminal.
//!
//! The question goes to the terminal itself, not to standard output or input: these may be pipes.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
};

use gnoma_core::{Command, ToolCall, message::CallId, session::Answer};
use tokio::task::JoinHandle;

use super::text::headline;
use crate::{report, surroundings::Surroundings};

/// Lines of a diff that are shown.
const MAX_PREVIEW_LINES: usize = 40;

/// Asks for permission, one call at a time.
pub(crate) struct Asker {
    who: Who,
    pending: Option<JoinHandle<Command>>,
}

/// Who is asked.
enum Who {
    /// The person at the terminal.
    Terminal(File),
    /// Nobody: the demo allows what its own script does, and says so.
    Demo,
}

impl Asker {
    /// An asker, if there is a terminal and somebody looks at it.
    pub(crate) fn of_terminal(around: &Surroundings) -> Option<Self> {
        if !around.stderr_is_terminal {
            return None;
        }
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { who: Who::Terminal(terminal), pending: None })
    }

    /// An asker that allows everything, for the demo's own script.
    pub(crate) fn of_demo() -> Self {
        Self { who: Who::Demo, pending: None }
    }

    /// Shows the question; [`answered`] gives the answer.
    pub(super) fn ask(&mut self, call: &ToolCall, reason: &str, preview: Option<&str>) {
        let id = call.id.clone();
        let terminal = match &self.who {
            Who::Terminal(terminal) => terminal.try_clone(),
            Who::Demo => {
                report::say(format_args!("? {} ({reason}): allowed by the demo", headline(call)));
                self.pending = Some(tokio::task::spawn_blocking(|| answer(id, Some("y"))));
                return;
            }
        };
        let Ok(mut terminal) = terminal else { return };
        let question = question(call, reason, preview);
        self.pending = Some(tokio::task::spawn_blocking(move || {
            let _gone = terminal.write_all(question.as_bytes());
            let mut line = String::new();
            let read = BufReader::new(terminal).read_line(&mut line);
            answer(id, read.is_ok_and(|bytes| bytes > 0).then_some(line.trim()))
        }));
    }
}

/// The answer to the question that is open; never, if none is.
pub(super) async fn answered(asker: &mut Option<Asker>) -> Command {
    let Some(Asker { pending, .. }) = asker else {
        return std::future::pending().await;
    };
    let Some(reading) = pending else {
        return std::future::pending().await;
    };
    let answer = reading.await;
    *pending = None;
    answer.unwrap_or(Command::Cancel)
}

fn question(call: &ToolCall, reason: &str, preview: Option<&str>) -> String {
    let mut text = format!("\ngnoma wants to run {}\n", call.name);
    match preview {
        Some(diff) => {
            let shown: Vec<_> = diff.lines().take(MAX_PREVIEW_LINES).collect();
            text.push_str(&clean(&shown.join("\n")));
            let more = diff.lines().count().saturating_sub(MAX_PREVIEW_LINES);
            if more > 0 {
                text.push_str(&format!("\n… {more} more lines"));
            }
        }
        None => text.push_str(&format!("  {}", clean(&arguments(call)))),
    }
    text.push_str(&format!("\n({reason})\n[y]es, [n]o, or a reason why not: "));
    text
}

/// The whole command where there is one: what runs must be seen.
fn arguments(call: &ToolCall) -> String {
    let arguments: serde_json::Value = call.arguments.read().unwrap_or_default();
    match arguments.get("command").and_then(serde_json::Value::as_str) {
        Some(command) if arguments.as_object().is_some_and(|all| all.len() == 1) => {
            command.to_owned()
        }
        Some(_) | None => call.arguments.get().to_owned(),
    }
}

/// Text from a model without what would let it draw over the question.
fn clean(text: &str) -> String {
    let safe = |c: char| matches!(c, '\n' | '\t') || !c.is_control();
    text.chars().map(|c| if safe(c) { c } else { '\u{FFFD}' }).collect()
}

fn answer(call: CallId, line: Option<&str>) -> Command {
    let answer = match line {
        Some("y" | "Y" | "yes" | "Yes") => Answer::Allow,
        None | Some("" | "n" | "N" | "no" | "No") => Answer::Deny { reason: String::new() },
        Some(reason) => Answer::Deny { reason: reason.to_owned() },
    };
    Command::Answer { call, answer }
}

#[cfg(test)]
mod tests {
    use gnoma_core::RawJson;

    use super::*;

    #[test]
    fn the_question_shows_the_whole_command_and_no_control_characters() {
        let arguments = RawJson::parse(r#"{"command":"rm -rf x\u001b[2K\r ls"}"#).unwrap();
        let call = ToolCall::new(CallId::new("c"), "bash", arguments);
        let text = question(&call, "mode auto: commands are asked for", None);
        assert!(text.contains("rm -rf x\u{FFFD}[2K\u{FFFD} ls"), "{text}");
    }

    #[test]
    fn anything_but_yes_is_no() {
        let denied = |line| {
            let Command::Answer { answer, .. } = answer(CallId::new("c"), line) else { panic!() };
            answer
        };
        assert_eq!(denied(Some("y")), Answer::Allow);
        assert_eq!(denied(Some("")), Answer::Deny { reason: String::new() });
        assert_eq!(denied(Some("use make")), Answer::Deny { reason: "use make".into() });
        assert_eq!(denied(None), Answer::Deny { reason: String::new() });
    }
}
