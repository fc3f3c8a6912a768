//! What went wrong while the walls were built, for a person.

use std::{fmt, io};

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
