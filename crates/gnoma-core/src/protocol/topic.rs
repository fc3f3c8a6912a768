//! What only a host can explain.

use serde::{Deserialize, Serialize};

/// What can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// How models are chosen, and why this one is.
    Routing,
    /// What fills the context window.
    Context,
    /// What models are told in place of the beginning of the conversation.
    Summary,
    /// What prompt caches saved, and what broke them.
    Cache,
    /// The hooks, and how they ran last.
    Hooks,
    /// The MCP servers, and how they are.
    Mcp,
    /// The elfs of the session, and how they are.
    Elfs,
    /// The agents that elfs can be.
    Agents,
    /// The skills, and who brought them.
    Skills,
    /// The plugins, and whether they are loaded.
    Plugins,
    /// The instructions that every request contains.
    Instructions,
}
