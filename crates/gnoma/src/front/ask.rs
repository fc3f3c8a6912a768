//! Permission questions on the terminal.
//!
//! The question goes to the terminal itself, not to standard output or input: these may be pipes.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    sync::Arc,
};

use gnoma_core::{Command, ToolCall, message::CallId, session::Answer};
use rustix::termios::{QueueSelector, tcflush};
use tokio::task::{JoinHandle, spawn_blocking};

use super::text::headline;
use crate::{report, screen::clean, surroundings::Surroundings};

/// Lines of a diff that are shown.
const MAX_PREVIEW_LINES: usize = 40;
/// Lines of a command that surely fit on the screen together with the question.
const MAX_SEEN_LINES: usize = 16;

/// Asks for permission, one call at a time.
pub(crate) struct Asker {
    who: Who,
    /// Questions that wait for the open one.
    waiting: VecDeque<Question>,
    open: Option<JoinHandle<Command>>,
}

/// Who is asked.
enum Who {
    /// The person at the terminal.
    Terminal(Arc<File>),
    /// Nobody: the demo allows what its own script does, and says so.
    Demo,
}

struct Question {
    call: CallId,
    text: String,
}

impl Asker {
    /// An asker, if there is a terminal and somebody looks at it.
    pub(crate) fn of_terminal(around: &Surroundings) -> Option<Self> {
        if !around.stderr_is_terminal {
            return None;
        }
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self::new(Who::Terminal(Arc::new(terminal))))
    }

    /// An asker that allows everything, for the demo's own script.
    pub(crate) fn of_demo() -> Self {
        Self::new(Who::Demo)
    }

    fn new(who: Who) -> Self {
        Self { who, waiting: VecDeque::new(), open: None }
    }

    /// Shows the question, after those that were there before; [`answered`] gives the answers.
    pub(super) fn ask(&mut self, call: &ToolCall, reason: &str, preview: Option<&str>) {
        let text = match self.who {
            Who::Terminal(_) => question(call, reason, preview),
            Who::Demo => format!("? {} ({reason}): allowed by the demo", headline(call)),
        };
        self.waiting.push_back(Question { call: call.id.clone(), text });
        self.open_next();
    }

    fn open_next(&mut self) {
        if self.open.is_some() {
            return;
        }
        let Some(Question { call, text }) = self.waiting.pop_front() else { return };
        self.open = Some(match &self.who {
            Who::Terminal(terminal) => {
                let terminal = Arc::clone(terminal);
                spawn_blocking(move || answer(call, read_answer(&terminal, &text).as_deref()))
            }
            Who::Demo => {
                report::say(text);
                spawn_blocking(|| answer(call, Some("y")))
            }
        });
    }
}

/// The answer to the question that is open; never, if none is.
pub(super) async fn answered(asker: &mut Option<Asker>) -> Command {
    let Some(asker) = asker else {
        return std::future::pending().await;
    };
    let Some(open) = &mut asker.open else {
        return std::future::pending().await;
    };
    let answer = open.await;
    asker.open = None;
    asker.open_next();
    answer.unwrap_or(Command::Cancel)
}

/// Asks, and waits for a line; nothing when there is none to come.
fn read_answer(mut terminal: &File, question: &str) -> Option<String> {
    // What was typed before the question was there is no answer to it.
    tcflush(terminal, QueueSelector::IFlush).ok();
    terminal.write_all(question.as_bytes()).ok()?;
    let mut line = String::new();
    if BufReader::new(terminal).read_line(&mut line).ok()? == 0 {
        terminal.write_all(b"\n").ok();
        return None;
    }
    Some(line.trim().to_owned())
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
        None => {
            let arguments = arguments(call);
            text.push_str(&format!("  {}", clean(&arguments)));
            let lines = arguments.lines().count();
            if lines > MAX_SEEN_LINES {
                text.push_str(&format!("\n(these were {lines} lines; scroll up to see them all)"));
            }
        }
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
    fn a_command_that_scrolls_away_is_announced() {
        let command = format!("rm -rf x{}ls", "\n".repeat(100));
        let arguments = RawJson::of(&serde_json::json!({"command": command})).unwrap();
        let call = ToolCall::new(CallId::new("c"), "bash", arguments);
        let text = question(&call, "mode auto: commands are asked for", None);
        assert!(text.contains("these were 101 lines"), "{text}");
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
