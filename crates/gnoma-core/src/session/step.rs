//! Steps of tasks, as sessions run them.

use serde::{Deserialize, Serialize};

/// A step of a task, for a turn of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepTurn {
    /// The prompt; for a command, the line above it in the conversation.
    pub text: String,
    /// The shell command. It is judged like a model's, and no model answers.
    pub command: Option<String>,
    /// The model that the step wants.
    pub model: Option<String>,
}
