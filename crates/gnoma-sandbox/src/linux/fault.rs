//! What went wrong while the walls were built, for a person.

use std::{
    ffi::OsStr,
    fmt,
    io::{self, Write, stderr},
};

/// Exit code when the command cannot be started.
const NOT_STARTED: u8 = 126;
/// Exit code when there is no such command.
const NOT_FOUND: u8 = 127;

/// A step that failed, with the cause.
#[derive(Debug)]
pub(super) struct Fault {
    step: String,
    cause: String,
}

impl Fault {
    /// A step that failed for `cause`.
    pub(super) fn new(step: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self { step: step.into(), cause: cause.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {}", self.step, self.cause)
    }
}

/// Names the step that an error belongs to.
pub(super) trait FaultStep<T> {
    /// Adds the step, told as what was to be done: "make `/` read-only".
    fn with_step(self, step: impl FnOnce() -> String) -> Result<T, Fault>;
}

impl<T, E: Into<io::Error>> FaultStep<T> for Result<T, E> {
    fn with_step(self, step: impl FnOnce() -> String) -> Result<T, Fault> {
        self.map_err(|error| Fault::new(step(), error.into()))
    }
}

/// Says that a program could not be started. Returns the exit code for that.
pub(super) fn report_not_started(program: &OsStr, error: &io::Error) -> u8 {
    let program = program.to_string_lossy();
    writeln!(stderr(), "gnoma: `{program}` could not be started: {error}").ok();
    match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_STARTED,
    }
}
