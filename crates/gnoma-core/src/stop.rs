//! Stop reasons (finish reasons) of a model's answer.

use serde::{Deserialize, Serialize};

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It waits for the results of its calls. The only reason on which calls are run.
    ToolUse,
    /// The output limit cut it off.
    MaxTokens,
    /// It met one of the request's stop sequences.
    StopSequence,
    /// It refused.
    Refusal,
    /// The provider's filter stopped it.
    ContentFilter,
    /// The provider paused a long turn; sending the history again continues it.
    Pause,
    /// Anything else.
    Other,
}
