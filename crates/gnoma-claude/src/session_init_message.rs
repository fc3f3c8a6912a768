//! The `system`/`init` message that describes a session before its first turn. Pure.

use gnoma_core::{
    info::{Choice, CommandInfo},
    json_value::json,
    session::PermissionMode,
};
use gnoma_extend::claude::their_name;
use serde_json::Value;

use super::{agents::Agent, driver::Program, ids::random_uuid, names::mode_name};

/// The version of the program whose wire this is: the SDKs ask for it.
pub(super) const COMPATIBLE: &str = "2.1.330";

/// The facts that are known about the session.
#[derive(Clone, Debug, Default)]
pub(super) struct InitMessageFacts {
    pub(super) session: String,
    pub(super) cwd: String,
    pub(super) tools: Vec<String>,
    pub(super) mode: PermissionMode,
    pub(super) model: String,
    pub(super) commands: Vec<CommandInfo>,
    pub(super) models: Vec<Choice>,
}

/// The message with which each turn begins.
pub(super) fn init_message(facts: &InitMessageFacts, program: &Program, denies: bool) -> Value {
    let mode = if denies { "dontAsk" } else { mode_name(facts.mode) };
    // Both belong to others, and that program has none like them.
    let shown = facts.tools.iter().filter(|tool| !["read_result", "job"].contains(&tool.as_str()));
    let tools: Vec<_> = shown.map(|tool| their_name(tool)).collect();
    let commands: Vec<_> = facts.commands.iter().map(|command| command.name.as_str()).collect();
    let agents: Vec<_> = program.agents.all_agents().into_iter().map(|agent| agent.name).collect();
    let servers: Vec<_> = server_states(facts, program)
        .into_iter()
        .map(|(name, status, _)| json!({"name": name, "status": status}))
        .collect();
    json!({"type": "system", "subtype": "init", "cwd": facts.cwd, "session_id": facts.session,
        "tools": tools, "mcp_servers": servers, "model": facts.model, "permissionMode": mode,
        "slash_commands": commands, "apiKeySource": "none", "claude_code_version": COMPATIBLE,
        "output_style": "default", "agents": agents, "skills": [], "plugins": [],
        "gnoma_version": env!("CARGO_PKG_VERSION"), "uuid": random_uuid()})
}

/// The servers by name, how they are, and why they are not.
fn server_states(
    facts: &InitMessageFacts,
    program: &Program,
) -> Vec<(String, &'static str, Option<String>)> {
    let said = program.lock_session_setup();
    let own = said.sdk_servers.iter().map(|server| {
        let status = if server.fault.is_some() { "failed" } else { "connected" };
        (server.name.clone(), status, server.fault.clone())
    });
    let others = program.servers.iter().map(|server| {
        let prefix = format!("mcp__{}__", server.name);
        let is_there = facts.tools.iter().any(|tool| tool.starts_with(&prefix));
        (server.name.clone(), if is_there { "connected" } else { "pending" }, None)
    });
    own.chain(others).collect()
}

/// The answer to `mcp_status`.
pub(super) fn mcp_status(facts: &InitMessageFacts, program: &Program) -> Value {
    let one = |(name, status, fault): (String, &str, Option<String>)| {
        let prefix = format!("mcp__{name}__");
        let tools = facts.tools.iter().filter_map(|tool| tool.strip_prefix(&prefix));
        let tools: Vec<_> = tools.map(|tool| json!({"name": tool})).collect();
        let mut server = json!({"name": name, "status": status, "scope": "dynamic",
            "tools": tools});
        if let (Some(fault), Some(fields)) = (fault, server.as_object_mut()) {
            fields.insert("error".to_owned(), fault.into());
        }
        server
    };
    let servers: Vec<_> = server_states(facts, program).into_iter().map(one).collect();
    json!({ "mcpServers": servers })
}

/// The answer to `initialize`.
pub(super) fn initialize_response(facts: &InitMessageFacts, agents: &[Agent]) -> Value {
    let command = |command: &CommandInfo| json!({"name": command.name, "description": command.about, "argumentHint": command.hint});
    let agent = |agent: &Agent| json!({"name": agent.name, "description": agent.description});
    let model = |choice: &Choice| json!({"value": choice.name, "displayName": choice.name, "description": choice.about});
    let first = json!({"value": "default", "displayName": "Default",
        "description": "the model that gnoma chooses"});
    let models: Vec<_> = std::iter::once(first).chain(facts.models.iter().map(model)).collect();
    json!({
        "commands": facts.commands.iter().map(command).collect::<Vec<_>>(),
        "agents": agents.iter().map(agent).collect::<Vec<_>>(),
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": models,
        "account": {},
        "pid": std::process::id(),
        "hook_on_failure_supported": true,
    })
}
