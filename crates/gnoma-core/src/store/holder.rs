//! The process that holds a session for writing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The process that writes a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}
