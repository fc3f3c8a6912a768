//! What a session is opened with. Arguments, environment and a front end's wishes are lowered into
//! this once; whatever makes the session sees nothing else of where it came from.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{json::RawJson, session::PermissionMode, thinking::ThinkingMode};

/// What a session is opened with.
///
/// The client sends all of it, because a server that the system started has neither the client's
/// keys nor its `PATH`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SessionSpec {
    /// Folder to work in; absolute.
    pub folder: PathBuf,
    /// Further folders to work in; absolute.
    pub more_folders: Vec<PathBuf>,
    /// The client's environment variables.
    pub environment: Environment,
    /// Permission bits that new files do not get, as the client has them (`umask`); `None` keeps the
    /// server's.
    pub umask: Option<u32>,
    /// Profile of the settings.
    pub profile: Option<String>,
    /// Settings that override those of all files.
    pub overrides: Overrides,
    /// System prompt in place of the built-in one.
    pub system: Option<String>,
    /// JSON Schema that final answers must match.
    pub answer_schema: Option<RawJson>,
    /// Which conversation to continue.
    pub start: Start,
    /// Somebody can answer questions.
    pub interactive: bool,
    /// What happens to the session when its last subscriber has left.
    pub detach: Detach,
    /// MCP servers that the client adds to those of the settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<ClientServer>,
    /// The agent that the session works as: its prompt behind the system prompt, its tools and its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl SessionSpec {
    /// Returns whether the session has a budget of its own, as runs of scheduled tasks have.
    #[must_use]
    pub fn has_own_budget(&self) -> bool {
        self.overrides.budget_micro_usd.is_some()
    }
}

/// An MCP server that a client adds for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientServer {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// How it is reached.
    pub address: ServerAddress,
}

/// How an MCP server of a client is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerAddress {
    /// A program to start, which speaks over its standard input and output.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, in addition to what every server gets.
        environment: Environment,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// What is sent with each request; debugging output shows no values.
        headers: Environment,
    },
}

/// Settings that a command line or a front end sets for one session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Overrides {
    /// Provider to ask.
    pub provider: Option<String>,
    /// Model to ask.
    pub model: Option<String>,
    /// Which tools need approval before they run.
    pub mode: Option<PermissionMode>,
    /// Mode bypass also runs what needs approval in every other mode.
    pub confirm_bypass: bool,
    /// Whether nothing is saved; `None` leaves it to the settings.
    pub incognito: Option<bool>,
    /// Most model calls in one turn.
    pub max_rounds: Option<u32>,
    /// What the session may cost, in millionths of a dollar; a smaller cap of the settings holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_micro_usd: Option<u64>,
    /// How much models think.
    pub thinking: Option<ThinkingMode>,
}

/// Which conversation a session continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// A new one.
    #[default]
    New,
    /// The most recent one of this project.
    Newest {
        /// In a copy; the stored session stays as it is.
        fork: bool,
    },
    /// The stored one whose id begins with this.
    Stored {
        /// Its id, or a unique beginning of it.
        id: String,
        /// In a copy; the stored session stays as it is.
        fork: bool,
    },
}

/// What happens to a session when its last subscriber has left
/// ([`Request::Detach`](super::Request)). A broken connection does not count: the session
/// continues, and ends only if nothing was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Detach {
    /// It ends; what it runs is cancelled.
    #[default]
    Close,
    /// It continues.
    Keep,
}

/// Environment variables. They contain keys, so debugging output names them without their values.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Wraps variables.
    #[must_use]
    pub fn new(variables: BTreeMap<String, String>) -> Self {
        Self(variables)
    }

    /// The variables with their values, for whoever reads settings or starts a program with them.
    #[must_use]
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// The value of a variable that is set to something.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_spec_debug_output_hides_environment_variable_values() {
        let variables = BTreeMap::from([("MISTRAL_API_KEY".to_owned(), "sk-1".to_owned())]);
        let spec =
            SessionSpec { environment: Environment::new(variables), ..SessionSpec::default() };
        let text = format!("{spec:?}");
        assert!(text.contains("MISTRAL_API_KEY") && !text.contains("sk-1"), "{text}");
    }
}
