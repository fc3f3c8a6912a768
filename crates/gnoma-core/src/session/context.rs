//! Token counts of a conversation and its context window.

use serde::{Deserialize, Serialize};

/// How full a context window is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fullness {
    /// There is room, or nobody knows how large the window is.
    #[default]
    Ok,
    /// Fewer than 20,000 tokens are left, or less than half of a small window.
    Warning,
    /// Fewer than 13,000 tokens are left, or less than a third of a small window: the conversation is
    /// compacted before the next call.
    Critical,
}

/// What the next call of a model carries: the one number for all who show or judge it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ContextUse {
    /// Tokens: what the provider counted of the last call, its answer included, and an estimate of what
    /// came after.
    pub tokens: u64,
    /// Tokens of the window, where that is known.
    pub window: Option<u64>,
    /// How full that is.
    pub fullness: Fullness,
}
