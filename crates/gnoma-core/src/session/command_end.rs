//! How commands of tools end, for those who watch.

use serde::{Deserialize, Serialize};

/// How the command of a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandEnd {
    /// Exit code; `None` when a signal or a time-out ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What happened to its changes, if it ran on trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialEnd>,
}

/// What happened to the changes of a command that ran on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrialEnd {
    /// All were kept, or there were none.
    Kept,
    /// Some or all were not kept.
    NotKept,
}
