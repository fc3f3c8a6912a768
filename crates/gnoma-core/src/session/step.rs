//! Steps of tasks, as sessions run them.

use serde::{Deserialize, Serialize};

use crate::{ModelRef, message::CallId};

/// A step of a task, for a turn of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The role whose model the step wants, such as `small`, if it names no model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The steps that run side by side in this turn, in the place of a prompt or a command. Only `announcement` counts
    /// beside them, and `name`, which is the name of the task alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_steps: Vec<SideStep>,
}

/// A step of a task that runs side by side with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideStep {
    /// The id of the call that does its work. No other call of the session has it.
    pub call: CallId,
    /// The line above its result in the conversation.
    pub text: String,
    /// The title of the step. Its elf is named after it.
    pub title: String,
    /// The work of the step.
    pub work: SideWork,
}

/// The work of a step that runs side by side with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SideWork {
    /// A shell command. If it changes something, it waits for the steps before it, and those behind it wait for it.
    Command {
        /// The command.
        command: String,
        /// The time limit, in seconds.
        timeout_s: u64,
    },
    /// A prompt for an elf.
    Prompt {
        /// The text of the prompt.
        text: String,
        /// The model that the step wants.
        model: Option<String>,
        /// The role whose model the step wants, if it names no model.
        role: Option<String>,
    },
}
