//! Other programs' agents, which speak the Agent Client Protocol.

use std::collections::BTreeMap;

use gnoma_core::Secret;

use super::section::Section;
use crate::{layer::MergedLayers, value::Value};

/// The table of agents; each is written as an entry of a list that has a name.
const AGENTS: &str = "cli_agents";

/// The agents whose programs are known: name, program, arguments, and where they keep what is
/// their own, in the home and in a project.
const KNOWN: [(&str, &str, &[&str], &[&str]); 6] = [
    ("claude", "claude-code-acp", &[], &["~/.claude", "~/.claude.json", ".claude", ".mcp.json"]),
    ("codex", "codex-acp", &[], &["~/.codex", ".codex"]),
    ("gemini", "gemini", &["--experimental-acp"], &["~/.gemini", ".gemini"]),
    (
        "goose",
        "goose",
        &["acp"],
        &["~/.config/goose", "~/.local/share/goose", "~/.local/state/goose"],
    ),
    (
        "opencode",
        "opencode",
        &["acp"],
        &[
            "~/.cache/opencode",
            "~/.config/opencode",
            "~/.local/share/opencode",
            "~/.local/state/opencode",
            ".opencode",
            "opencode.json",
        ],
    ),
    ("vibe", "vibe-acp", &[], &["~/.vibe"]),
];

/// An agent of another program.
#[derive(Clone, Debug)]
pub struct CliAgent {
    /// The name of the agent.
    pub name: String,
    /// `true` if the agent is used.
    pub enabled: bool,
    /// The router may choose it unasked.
    pub automatic: bool,
    /// The program to run.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The program's environment, besides what programs of a session get.
    pub env: BTreeMap<String, Secret<String>>,
    /// The program may use the network.
    pub network: bool,
    /// Files and folders besides the workspace that the program may write.
    pub writable: Vec<String>,
}

/// All agents, by name.
pub(super) fn read_agents(layers: &MergedLayers) -> Vec<CliAgent> {
    let table = Section::from_key(layers, AGENTS);
    layers
        .table_names(AGENTS)
        .into_iter()
        .map(|name| read_agent(name, &table.child_section(name)))
        .collect()
}

fn read_agent(name: &str, agent: &Section<'_>) -> CliAgent {
    let known = KNOWN.iter().find(|(known, ..)| *known == name);
    let usual =
        known.map_or((name, [].as_slice(), [].as_slice()), |known| (known.1, known.2, known.3));
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (command, args) = (agent.text("command"), agent.texts("args"));
    // Arguments belong to the program that they were written for.
    let is_usual = command.is_none() && args.is_empty();
    let mut writable = owned(usual.2);
    writable.extend(agent.texts("writable"));
    let secret = |(name, value)| match value {
        Value::Secret(secret) => Some((name, secret)),
        _ => None,
    };
    CliAgent {
        name: name.to_owned(),
        enabled: agent.read_switch("enabled").unwrap_or(true),
        automatic: agent.read_switch("automatic").unwrap_or(false),
        command: command.unwrap_or_else(|| usual.0.to_owned()),
        args: if is_usual { owned(usual.1) } else { args },
        env: gnoma_core::sort::to_map(agent.entries_below("env").into_iter().filter_map(secret)),
        network: agent.read_switch("network").unwrap_or(true),
        writable,
    }
}
