//! The context meter: how full a model's context window is.

use serde::{Deserialize, Serialize};

/// What fills the context window, in tokens as they are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowUse {
    /// gnoma's own instructions.
    pub system: u64,
    /// Descriptions of the tools.
    pub tools: u64,
    /// The project's instructions.
    pub instructions: u64,
    /// What was said.
    pub history: u64,
    /// What tools returned.
    pub results: u64,
}
