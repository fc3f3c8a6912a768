//! Standard output of commands that write once and end.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Result;
use gnoma_host::HostError;

use crate::{
    report::{self, Exit},
    screen,
};

/// Writes text to standard output without what hides in it or steers a terminal: a pipe or a file
/// ends on one, too.
///
/// # Errors
/// Standard output is closed or cannot be written.
pub fn print_safe_text(text: &str) -> Result<Exit> {
    write_stdout(&screen::mark_unsafe_chars(text))
}

/// Writes what programs read back to standard output, byte for byte. To a terminal like text.
///
/// # Errors
/// Standard output is closed or cannot be written.
pub fn print_raw_data(text: &str) -> Result<Exit> {
    if std::io::stdout().is_terminal() { print_safe_text(text) } else { write_stdout(text) }
}

/// Fails where standard output was closed: what would be written there would be lost.
///
/// # Errors
/// Standard output was closed when the program started.
pub fn refuse_closed_stdout() -> Result<()> {
    if gnoma_sandbox::stdout_was_closed() {
        let error = HostError::failure("standard output is closed, so the answer would be lost");
        let remedy = "redirect it, as in `gnoma … > answer.txt`".to_owned();
        return Err(HostError { remedy: Some(remedy), ..error }.into());
    }
    Ok(())
}

fn write_stdout(shown: &str) -> Result<Exit> {
    refuse_closed_stdout()?;
    let mut out = std::io::stdout().lock();
    match out.write_all(shown.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => report::exit_after_write_error(error),
    }
}
