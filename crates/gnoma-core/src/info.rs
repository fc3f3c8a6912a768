//! Facts about a session that front ends show before the first turn.

use serde::{Deserialize, Serialize};

use crate::{
    message::{CallId, ModelRef},
    usage::Usage,
};

/// What a front end shows of a session before the session itself says anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SessionInfo {
    /// The version of the program that the session runs in.
    pub version: String,
    /// The working folder for people: with `~` for the home.
    pub folder: String,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    /// The profile of the settings, where one is in use.
    pub profile: Option<String>,
    /// Nothing is stored.
    pub incognito: bool,
    /// What is said is stored, so that the session can be resumed.
    pub is_kept: bool,
    /// The model that will be called first, as `provider/model`, as far as that is known.
    pub model: Option<String>,
    /// Tokens of its context window, where that is known.
    pub window: Option<u64>,
    /// Tokens of the last call of the conversation that goes on.
    pub last_call: Usage,
    /// Tokens of all its calls.
    pub before: Usage,
    /// Name of the theme that the settings choose.
    pub theme: String,
    /// The settings want vim's keys in the editor.
    pub vim: bool,
    /// No provider is configured; this is what one could be made of.
    pub found: Option<FoundProviders>,
    /// Hosted providers for which a key can be entered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connectable: Vec<String>,
    /// What can be written behind a slash at the start of a message: commands and skills.
    pub commands: Vec<CommandInfo>,
    /// The stored conversation that it continues, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<ResumedFrom>,
    /// The files of instructions that hold in its folder, for people: with `~` for the home.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<String>,
    /// Whose it is, where a tool of another session has started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildInfo>,
}

/// The stored conversation that a session continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResumedFrom {
    /// Its title, or else the beginning of its first message.
    pub title: String,
    /// When it was last added to, in milliseconds since 1970.
    pub changed_ms: i64,
    /// It continues in a copy.
    pub is_copy: bool,
}

/// What a session that a tool has started is to the session that it has started it for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChildInfo {
    /// The call of the tool.
    pub call: CallId,
    /// What people and the model call it; may be empty.
    pub name: String,
}

/// A command or skill that a message can begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CommandInfo {
    /// What is written behind the slash.
    pub name: String,
    /// What is written behind the name, such as `[issue]`.
    pub hint: String,
    /// What it does, in a line.
    pub about: String,
    /// Who brought it along: `bundled`, `user`, `project`, or `mcp` for a prompt of a server.
    pub origin: String,
}

/// Something of which one can be chosen by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Choice {
    /// The name to choose it by.
    pub name: String,
    /// A few words about it.
    pub about: String,
    /// It is in use.
    pub current: bool,
    /// The session can be pinned to it, by this name.
    pub arm: Option<ModelRef>,
    /// Tokens of its context window, where it is a model and that is known.
    pub window: Option<u64>,
}

/// What was found that a provider could be made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundProviders {
    /// Keys in the client's environment.
    pub keys: Vec<FoundKey>,
    /// Servers on the host's machine that answer.
    pub servers: Vec<FoundServer>,
    /// Providers for which a key can be entered.
    pub providers: Vec<String>,
}

/// A key in the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundKey {
    /// The provider that it is for.
    pub provider: String,
    /// The variable that holds it.
    pub variable: String,
}

/// A model server on the host's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundServer {
    /// The provider to use it as.
    pub provider: String,
    /// Its address.
    pub address: String,
    /// How many models it has.
    pub models: usize,
}
