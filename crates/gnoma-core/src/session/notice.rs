//! Levels of notices: information, warning, error.

use serde::{Deserialize, Serialize};

/// How loud a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is wrong.
    Warning,
}
