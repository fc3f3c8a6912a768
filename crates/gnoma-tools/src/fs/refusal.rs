//! Errors of the file tools.

use gnoma_core::{ToolOutcome, tool::ToolOutput};

/// The reason why a call was not carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The reason and what to try instead, for the model.
    Failed(String),
    /// The call was cancelled; a message about it.
    Stopped(String),
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<Refusal> for ToolOutcome {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Failed(why) => Self::failure_text(why),
            Refusal::Stopped(so_far) => Self::Interrupted(so_far),
        }
    }
}

/// The answer of a file tool to a call.
pub(super) type FileAnswer = Result<ToolOutput, Refusal>;
