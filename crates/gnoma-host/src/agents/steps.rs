//! The steps of an agent as calls of tools: what a round ends with. Pure.

use std::time::{Duration, Instant};

use gnoma_acp::client::{AgentCall, AgentRequestKind};
use gnoma_core::{RawJson, diff::unified_diff, tool::ToolOutput};
use serde_json::{Map, Value};

use super::live_agent::PendingStep;

/// Lines around a change that are shown.
const CONTEXT_LINES: usize = 3;
/// After this long the difference is made coarse instead of small.
const PATIENCE: Duration = Duration::from_millis(200);
/// Most lines that are read of a file at once.
const MAX_LINES: u64 = 1 << 24;

/// The purpose of an agent's tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentStep {
    /// The tool begins a turn.
    Begin,
    /// Reports what the agent has done on its own.
    Did,
    /// Reads a file for it.
    Read,
    /// Writes a file for it.
    Write,
    /// The agent wants to run a command.
    Run,
    /// The agent wants to read a file on its own.
    Look,
    /// The agent wants to change a file on its own.
    Edit,
    /// The agent wants to ask an address.
    Fetch,
    /// The agent wants to do something else.
    Act,
}

impl AgentStep {
    /// All steps of agents.
    pub(super) const ALL: [Self; 9] = [
        Self::Begin,
        Self::Did,
        Self::Read,
        Self::Write,
        Self::Run,
        Self::Look,
        Self::Edit,
        Self::Fetch,
        Self::Act,
    ];

    /// The name of the tool for this agent.
    pub(super) fn tool_name(self, agent: &str) -> String {
        let verb = match self {
            Self::Begin => return agent.to_owned(),
            Self::Did => "did",
            Self::Read => "read",
            Self::Write => "write",
            Self::Run => "run",
            Self::Look => "look",
            Self::Edit => "edit",
            Self::Fetch => "fetch",
            Self::Act => "act",
        };
        format!("{agent}.{verb}")
    }
}

/// A step as a call.
pub(super) struct StepCall {
    pub(super) step: AgentStep,
    pub(super) arguments: Value,
    pub(super) waits: PendingStep,
    /// The agent's description of the call.
    pub(super) call: Box<AgentCall>,
}

fn json_object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// The call for what an agent asks for.
pub(super) fn requested_call(wish: AgentRequestKind) -> StepCall {
    match wish {
        AgentRequestKind::Read { path, line, limit } => {
            let number = |it: Option<u64>| it.map_or(Value::Null, |it| it.min(MAX_LINES).into());
            let arguments = json_object([
                ("path", path.into()),
                ("line", number(line)),
                ("limit", number(limit)),
            ]);
            let call = Box::default();
            StepCall { step: AgentStep::Read, arguments, waits: PendingStep::Text, call }
        }
        AgentRequestKind::Write { path, content } => {
            let arguments = json_object([("path", path.into()), ("content", content.into())]);
            let call = Box::default();
            StepCall { step: AgentStep::Write, arguments, waits: PendingStep::Written, call }
        }
        AgentRequestKind::Permission { id, call, .. } => {
            let (step, field, value) = permission_subject(&call);
            let title = Value::from(call.title.clone());
            let fields = [(field, value.into()), ("name", title), ("call", id.clone().into())];
            StepCall { step, arguments: json_object(fields), waits: PendingStep::Leave(id), call }
        }
    }
}

/// Returns what a call of an agent is judged by: a command, one file, an address, or nothing that is known.
fn permission_subject(call: &AgentCall) -> (AgentStep, &'static str, String) {
    let one_path = || match call.paths.as_slice() {
        [path] => Some(path.clone()),
        _ => None,
    };
    match (&*call.kind, &call.command, &call.url) {
        (_, Some(command), _) => (AgentStep::Run, "command", command.clone()),
        (_, None, Some(url)) => (AgentStep::Fetch, "url", url.clone()),
        ("edit", None, None) if let Some(path) = one_path() => (AgentStep::Edit, "path", path),
        ("read", None, None) if let Some(path) = one_path() => (AgentStep::Look, "path", path),
        _ => (AgentStep::Act, "kind", call.kind.clone()),
    }
}

/// The call that tells what an agent did by itself.
pub(super) fn completed_call(id: String, call: Box<AgentCall>) -> StepCall {
    let title = Value::from(call.title.clone());
    let arguments =
        json_object([("name", title), ("kind", call.kind.clone().into()), ("call", id.into())]);
    StepCall { step: AgentStep::Did, arguments, waits: PendingStep::Nothing, call }
}

/// Returns what an agent told about a call, as the output of a tool.
pub(super) fn call_output(call: &AgentCall) -> ToolOutput {
    let mut text = call.text.trim_end().to_owned();
    if text.is_empty() {
        text = if call.failed { "failed" } else { "done" }.to_owned();
    }
    ToolOutput { diff: call_diff(call), ..ToolOutput::from_text(text) }
}

/// The change that a call makes, as far as the agent told of it.
pub(super) fn call_diff(call: &AgentCall) -> Option<String> {
    let (path, old, new) = call.change.as_ref()?;
    let name = path.trim_start_matches('/');
    let hunks = unified_diff(old, new, CONTEXT_LINES, Instant::now().checked_add(PATIENCE));
    let before = if old.is_empty() { "/dev/null".to_owned() } else { format!("a/{name}") };
    (!hunks.is_empty()).then(|| format!("--- {before}\n+++ b/{name}\n{hunks}"))
}

/// Arguments as a call carries them.
pub(super) fn to_raw_json(arguments: &Value) -> RawJson {
    RawJson::from_value(arguments).unwrap_or_else(|_| RawJson::empty_object())
}

#[cfg(test)]
mod tests {
    use gnoma_acp::client::PermissionChoices;

    use super::*;

    #[test]
    fn external_agent_call_is_judged_by_its_known_paths_and_command() {
        let step = |call: AgentCall| {
            let id = "c".to_owned();
            requested_call(AgentRequestKind::Permission {
                id,
                call: call.into(),
                answers: PermissionChoices::default(),
            })
        };
        let path = |paths: &[&str]| paths.iter().map(|it| (*it).to_owned()).collect();
        let edit = AgentCall { kind: "edit".into(), paths: path(&["/w/a"]), ..Default::default() };
        let two = AgentCall { paths: path(&["/w/a", "/w/b"]), ..edit.clone() };
        let run = AgentCall { command: Some("make".into()), ..edit.clone() };
        let read = AgentCall { kind: "read".into(), ..edit.clone() };
        assert_eq!(step(edit).step, AgentStep::Edit);
        assert_eq!(step(two).step, AgentStep::Act, "both would have to be judged");
        assert_eq!(step(run).arguments["command"], "make");
        assert_eq!(step(read).step, AgentStep::Look);
        assert_eq!(step(AgentCall::default()).step, AgentStep::Act);
    }
}
