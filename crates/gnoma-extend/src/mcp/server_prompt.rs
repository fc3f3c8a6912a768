//! A prompt of a server, as it is shown and remembered.

use serde::{Deserialize, Serialize};

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPrompt {
    /// The name after the slash.
    pub name: String,
    /// The hint at what to write after the name.
    pub hint: String,
    /// The description of the prompt's purpose.
    pub about: String,
}
