//! Questions to the person at the terminal: not on standard input or output, which may be pipes.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
};

use rustix::termios::{LocalModes, OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};

use crate::environment::ProcessEnvironment;

/// Opens the terminal, if standard error is one, so that a person sees questions.
pub fn open_terminal(around: &ProcessEnvironment) -> Option<File> {
    if !around.stderr_is_terminal {
        return None;
    }
    OpenOptions::new().read(true).write(true).open("/dev/tty").ok()
}

/// Asks a question at the terminal and waits for a line; `None` if input ended. The caller has removed control characters
/// from `question`.
pub fn ask_line(mut terminal: &File, question: &str) -> Option<String> {
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

/// Asks for a line that is not shown while it is typed.
pub fn ask_hidden(terminal: &File, question: &str) -> Option<String> {
    let before = tcgetattr(terminal).ok()?;
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(terminal, OptionalActions::Flush, &hidden).ok()?;
    let said = ask_line(terminal, question);
    tcsetattr(terminal, OptionalActions::Flush, &before).ok();
    let mut out: &File = terminal;
    out.write_all(b"\n").ok();
    said
}

/// Asks a question at the terminal and returns true if the answer is yes.
pub fn is_yes(terminal: &File, question: &str) -> bool {
    matches!(ask_line(terminal, question).as_deref(), Some("y" | "Y" | "yes" | "Yes"))
}
