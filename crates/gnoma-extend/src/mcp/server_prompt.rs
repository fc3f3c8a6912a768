//! A prompt of a server, as it is shown and remembered.

use serde::{Deserialize, Serialize};

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPrompt {
    /// What is written behind the slash.
    pub name: String,
    /// What is written behind that.
    pub hint: String,
    /// What it is for.
    pub about: String,
}
