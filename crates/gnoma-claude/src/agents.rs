//! Sub-agents that the driving program defines: the tool that starts them, and their status messages.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gnoma_core::{
    CallId, Content, RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    json_value::json,
    protocol::{Overrides, SessionSpec},
    tool::{Access, BoxFuture, ChildEnd, ChildResult, ChildTask, Tier, ToolKind},
};
use gnoma_extend::claude::tool_list;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{control::ControlChannel, error::DriverError, ids::random_uuid, names, rules};

/// The name of the tool that starts a sub-agent.
pub(super) const TOOL: &str = "agent";
/// The agent that may do whatever its parent may.
const GENERAL: &str = "general-purpose";
const GENERAL_PROMPT: &str = "You are a sub-agent. Do the task that you are given, and end with a report \
                              of what you found or did: nothing else of your work is seen.";
/// Most sub-agents that a program may define.
const MAX_AGENTS: usize = 200;
/// Longest description of one, in characters, in that of the tool.
const MAX_ABOUT_CHARS: usize = 300;

/// A sub-agent that the program or a file defines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) prompt: String,
    /// All that it has, as the program names it; `None`: whatever its parent has.
    pub(super) tools: Option<Vec<String>>,
    /// The rules that its tools are held to, where its definition has any such as `Bash(git:*)`.
    pub(super) held_to: Option<Vec<String>>,
    pub(super) withheld: Vec<String>,
    /// A part of the name of the model that it would rather have.
    pub(super) model: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) max_turns: Option<u32>,
}

impl Agent {
    /// True if the agent may use the given tool of gnoma.
    pub(super) fn has_tool(&self, tool: &str) -> bool {
        let is_it = |listed: &String| listed == "*" || rules::names_tool(listed, tool);
        // Agents start no agents.
        tool != TOOL
            && self.tools.as_ref().is_none_or(|tools| tools.iter().any(is_it))
            && !self.withheld.iter().any(is_it)
    }
}

/// The agents that a program defines, those of files beside them, and the one that needs no definition.
fn merge_agents(defined: &Map<String, Value>, files: &[Agent]) -> Vec<Agent> {
    let mut agents: Vec<Agent> =
        defined.iter().take(MAX_AGENTS).map(|(name, value)| parse_agent(name, value)).collect();
    agents.extend(files.iter().filter(|file| !defined.contains_key(&file.name)).cloned());
    if !agents.is_empty() && agents.iter().all(|agent| agent.name != GENERAL) {
        agents.push(Agent {
            name: GENERAL.to_owned(),
            description: "for any task of several steps".to_owned(),
            prompt: GENERAL_PROMPT.to_owned(),
            ..Agent::default()
        });
    }
    agents
}

/// The tool that a rule is about.
fn tool_of_rule(rule: &str) -> String {
    rule.split('(').next().unwrap_or(rule).trim().to_owned()
}

/// The rules that an agent is held to, where the list of its tools has any.
fn held_to(listed: &[&str]) -> Option<Vec<String>> {
    let has_rules = listed.iter().any(|tool| tool.contains('('));
    has_rules.then(|| listed.iter().flat_map(|tool| tool_list(tool)).collect())
}

/// An agent that somebody wrote into a file.
impl From<gnoma_tools::Agent> for Agent {
    fn from(file: gnoma_tools::Agent) -> Self {
        let gnoma_tools::Agent { name, description, tools, forbidden, model, mode, prompt, .. } =
            file;
        let listed: Vec<&str> = tools.iter().flatten().map(|tool| &**tool).collect();
        let held_to = held_to(&listed);
        let tools =
            tools.as_ref().map(|tools| tools.iter().map(|rule| tool_of_rule(rule)).collect());
        let withheld = forbidden;
        let mode = mode.map(|mode| names::mode_name(mode).to_owned());
        Self { name, description, tools, held_to, withheld, model, mode, prompt, max_turns: None }
    }
}

fn parse_agent(name: &str, value: &Value) -> Agent {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let tools = |name: &str| {
        let tools = value.get(name).and_then(Value::as_array)?;
        Some(tools.iter().filter_map(Value::as_str).map(tool_of_rule).collect::<Vec<_>>())
    };
    let listed = value.get("tools").and_then(Value::as_array);
    let listed: Vec<_> = listed.into_iter().flatten().filter_map(Value::as_str).collect();
    let turns = value.get("maxTurns").and_then(Value::as_u64);
    Agent {
        name: name.to_owned(),
        description: text("description").unwrap_or_default(),
        prompt: text("prompt").unwrap_or_default(),
        tools: tools("tools"),
        held_to: held_to(&listed),
        withheld: tools("disallowedTools").unwrap_or_default(),
        model: text("model").filter(|model| model != "inherit"),
        mode: text("permissionMode"),
        max_turns: turns.and_then(|turns| u32::try_from(turns).ok()).filter(|turns| *turns > 0),
    }
}

/// The agents, and those that run now. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Agents(Arc<AgentList>);

#[derive(Default)]
struct AgentList {
    /// The agents that files define.
    files: Vec<Agent>,
    agents: Mutex<Vec<Agent>>,
    running: Mutex<Vec<Agent>>,
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agents {
    /// Creates the list from the agents that files define.
    pub(super) fn of_files(files: Vec<Agent>) -> Self {
        let agents = Mutex::new(merge_agents(&Map::new(), &files));
        Self(Arc::new(AgentList { files, agents, ..AgentList::default() }))
    }

    /// Takes in those that the program defines; they go before those of files.
    pub(super) fn define_agents(&self, defined: &Map<String, Value>) {
        *lock_ignoring_poison(&self.0.agents) = merge_agents(defined, &self.0.files);
    }

    /// Returns all agents that can be started.
    pub(super) fn all_agents(&self) -> Vec<Agent> {
        lock_ignoring_poison(&self.0.agents).clone()
    }

    /// The agent that a session is, by the prompt that it was started with.
    pub(super) fn agent_of_session(&self, spec: &SessionSpec) -> Option<Agent> {
        let system = spec.system.as_ref()?;
        lock_ignoring_poison(&self.0.running)
            .iter()
            .rev()
            .find(|agent| agent.prompt == *system)
            .cloned()
    }

    fn mark_running(&self, agent: &Agent) -> RunningAgent {
        lock_ignoring_poison(&self.0.running).push(agent.clone());
        RunningAgent { agents: self.clone(), name: agent.name.clone() }
    }
}

/// Stands for an agent that runs.
struct RunningAgent {
    agents: Agents,
    name: String,
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        let mut running = lock_ignoring_poison(&self.agents.0.running);
        if let Some(at) = running.iter().position(|agent| agent.name == self.name) {
            running.remove(at);
        }
    }
}

/// The tool that starts one of the agents.
pub(super) struct AgentTool {
    spec: ToolSpec,
    agents: Agents,
    control: ControlChannel,
    session: String,
}

/// The arguments of a call that starts an agent.
#[derive(Deserialize)]
struct AgentTask {
    #[serde(default)]
    description: String,
    prompt: String,
    #[serde(default)]
    subagent_type: Option<String>,
}

impl AgentTool {
    /// The tool of `session`.
    pub(super) fn new(agents: Agents, control: ControlChannel, session: String) -> Self {
        let all = agents.all_agents();
        let about = |agent: &Agent| {
            let about: String = agent.description.chars().take(MAX_ABOUT_CHARS).collect();
            format!("\n- {}: {about}", agent.name)
        };
        let names: Vec<_> = all.iter().map(|agent| agent.name.as_str()).collect();
        let schema = json!({"type": "object", "required": ["description", "prompt", "subagent_type"],
        "properties": {
            "description": {"type": "string", "description": "the task in 3 to 5 words"},
            "prompt": {"type": "string", "description": "the task, with all that it needs"},
            "subagent_type": {"type": "string", "enum": names},
        }});
        let spec = ToolSpec {
            name: TOOL.to_owned(),
            description: format!(
                "Gives a task to a sub-agent, which works on its own and reports once. Agents:{}",
                all.iter().map(about).collect::<String>()
            ),
            parameters: RawJson::from_value(&schema).unwrap_or_else(|_| RawJson::empty_object()),
            access: Access::Execute,
            touches: Arc::default(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        };
        Self { spec, agents, control, session }
    }

    /// The agent that a call means.
    fn resolve_agent(&self, task: &AgentTask) -> Result<Agent, DriverError> {
        let all = self.agents.all_agents();
        let wanted = task.subagent_type.as_deref().unwrap_or(GENERAL);
        let known = || all.iter().map(|agent| agent.name.clone()).collect::<Vec<_>>().join(", ");
        let found = all.iter().find(|agent| agent.name == wanted).cloned();
        let name = || wanted.to_owned();
        let found =
            found.ok_or_else(|| DriverError::UnknownAgent { name: name(), known: known() })?;
        // With its parent's mode it could do more than it was meant to.
        match found.mode.as_deref().filter(|mode| names::parse_mode(mode).is_none()) {
            Some(mode) => {
                Err(DriverError::UnknownAgentMode { name: name(), mode: mode.to_owned() })
            }
            None => Ok(found),
        }
    }
}

impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let task = call.arguments.read::<AgentTask>().map_err(DriverError::InvalidArguments);
        let meant = task.and_then(|task| Ok((self.resolve_agent(&task)?, task)));
        let (agents, control) = (self.agents.clone(), self.control.clone());
        let session = self.session.clone();
        Box::pin(async move {
            match meant {
                Err(why) => ToolOutcome::failure_text(why.to_string()),
                Ok((agent, task)) => {
                    let told =
                        TaskNotifier { control, session, call: call.id.clone(), id: random_uuid() };
                    run_agent(agents, agent, task, &told, &cx).await
                }
            }
        })
    }
}

async fn run_agent(
    agents: Agents,
    agent: Agent,
    task: AgentTask,
    told: &TaskNotifier,
    cx: &ToolCx,
) -> ToolOutcome {
    let started = Instant::now();
    told.notify_started(&agent, &task).await;
    let running = agents.mark_running(&agent);
    let mode = agent.mode.as_deref().and_then(names::parse_mode);
    let overrides = Overrides {
        mode: mode.map(|(mode, _)| mode),
        max_rounds: agent.max_turns,
        ..Overrides::default()
    };
    let system = Some(agent.prompt.clone());
    let spec = SessionSpec { system, overrides, interactive: true, ..SessionSpec::default() };
    let content = vec![Content::from_text(task.prompt)];
    let (name, preferred_model) = (agent.name.clone(), agent.model.clone());
    let tools = agent.held_to.clone();
    let child = ChildTask { name, spec, content, tools, preferred_model, ..ChildTask::default() };
    let result = cx.spawn_child(&told.call, child).await;
    drop(running);
    let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let tokens = result.as_ref().map(|result| result.last.usage.total_tokens()).unwrap_or_default();
    let ended = match result {
        Ok(ChildResult { end: ChildEnd::Completed, text, .. }) => Ok(text),
        Ok(ChildResult { end: ChildEnd::Cancelled, .. }) => Err("it was cancelled".to_owned()),
        Ok(ChildResult { end: ChildEnd::Failed(why), .. }) => Err(why),
        Err(why) => Err(why.to_string()),
    };
    match ended {
        Ok(text) => {
            told.notify_finished("completed", &text, tokens, took_ms).await;
            ToolOutcome::success_text(text)
        }
        Err(why) => {
            told.notify_finished("failed", &why, tokens, took_ms).await;
            ToolOutcome::failure_text(format!("the agent did not finish: {why}"))
        }
    }
}

/// One task of a sub-agent whose progress is reported to the program.
struct TaskNotifier {
    control: ControlChannel,
    session: String,
    call: CallId,
    id: String,
}

impl TaskNotifier {
    async fn notify_started(&self, agent: &Agent, task: &AgentTask) {
        let message = json!({"subtype": "task_started", "description": task.description,
            "subagent_type": agent.name, "task_type": "local_agent", "prompt": task.prompt});
        self.send_notification(message).await;
    }

    async fn notify_finished(&self, status: &str, summary: &str, tokens: u64, took_ms: u64) {
        let message = json!({"subtype": "task_notification", "status": status, "summary": summary,
            "output_file": "", "usage": {"total_tokens": tokens, "tool_uses": 0, "duration_ms": took_ms}});
        self.send_notification(message).await;
    }

    async fn send_notification(&self, mut message: Value) {
        if let Some(fields) = message.as_object_mut() {
            let more = json!({"type": "system", "task_id": self.id, "tool_use_id": self.call,
                "uuid": random_uuid(), "session_id": self.session});
            fields.extend(more.as_object().cloned().unwrap_or_default());
        }
        self.control.send_message(message, Some(self.call.as_str().to_owned())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_agent_definitions_are_parsed() {
        let defined = json!({"rev": {"description": "reviews", "prompt": "You review",
            "tools": ["Read", "Bash(git *)"], "disallowedTools": ["Write"], "model": "sonnet",
            "maxTurns": 3}, "git": {"disallowedTools": ["mcp__git", "Edit"]}});
        let found = merge_agents(defined.as_object().unwrap(), &[]);
        let [rev, git, general] = found.as_slice() else { panic!("{found:?}") };
        assert!(
            rev.has_tool("fs.read")
                && rev.has_tool("bash")
                && !rev.has_tool("fs.write")
                && !rev.has_tool(TOOL)
        );
        assert_eq!(
            rev.held_to.as_deref(),
            Some(["fs.read", "bash(git *)"].map(str::to_owned).as_slice())
        );
        assert_eq!(git.held_to, None);
        assert_eq!((rev.model.as_deref(), rev.max_turns), (Some("sonnet"), Some(3)));
        assert!(general.has_tool("fs.write") && !general.has_tool(TOOL));
        assert!(
            !git.has_tool("mcp__git__log")
                && git.has_tool("mcp__github__log")
                && !git.has_tool("fs.edit")
        );
        assert!(merge_agents(&Map::new(), &[]).is_empty());
    }

    #[test]
    fn program_defined_sub_agents_override_those_of_files() {
        let file = |name: &str| Agent { name: name.into(), ..Agent::default() };
        let all = Agents::of_files(vec![file("rev"), file("doc")]);
        let names =
            |all: &Agents| all.all_agents().into_iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(names(&all), ["rev", "doc", GENERAL]);
        all.define_agents(json!({"rev": {"prompt": "You review"}}).as_object().unwrap());
        assert_eq!(names(&all), ["rev", "doc", GENERAL]);
        assert_eq!(all.all_agents()[0].prompt, "You review");
    }
}
