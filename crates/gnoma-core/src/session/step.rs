//! Steps of tasks, as sessions run them.

use serde::{Deserialize, Serialize};

use crate::ModelRef;

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
    /// The time limit of the command, in seconds; 0 for a prompt.
    #[serde(default)]
    pub timeout_s: u64,
    /// The text of the notice with which the turn of the step begins. No event of the step precedes it.
    #[serde(default)]
    pub announcement: String,
    /// Models that failed at this step: a stronger one is asked, as after a failed check of their work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_models: Vec<ModelRef>,
    /// The task and the title of the step, such as `release/Write the entry`: the router learns which model does it
    /// well. Empty if there is nothing to learn.
    #[serde(default)]
    pub name: String,
}
