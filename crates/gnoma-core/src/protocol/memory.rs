//! What a person wants remembered for later sessions of a project.

use serde::{Deserialize, Serialize};

/// A request about the memory of the session's project: lines that the person has stated. The reply is `Text`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryRequest {
    /// Show the lines, each with its number and source, behind the list of the project's instructions.
    Show,
    /// Add a line.
    Add {
        /// What to remember.
        text: String,
    },
    /// Replace a line.
    Edit {
        /// Its number, from 1.
        line: usize,
        /// What to remember instead.
        text: String,
    },
    /// Delete a line, or all lines.
    Delete {
        /// Its number, from 1; `None` for all.
        line: Option<usize>,
    },
}
