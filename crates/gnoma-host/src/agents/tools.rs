//! The tools that only agents have: each is a step that a person should see or judge.

use std::sync::Arc;

use gnoma_acp::client::{AgentCall, AgentEvent};
use gnoma_core::{
    RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    message::CallId,
    tool::{Access, BoxFuture, PreviewError, Tier, ToolKind, TouchedResource},
};
use gnoma_extend::mcp::{Definition, ServerEnvironment, ServerOrigin, ServerReach};

use super::{
    agent_error::AgentError,
    live_agent::{LiveAgent, PendingStep},
    program::AgentProgram,
    steps::{self, AgentStep},
};

/// The place where agents of a session run.
pub(crate) struct AgentPlace {
    /// With what they may touch; what an agent's settings declare comes on top.
    pub(crate) around: ServerEnvironment,
    /// The same where nothing of the workspace may be written.
    pub(crate) reading: ServerEnvironment,
    /// Paths of settings as they are meant.
    pub(crate) absolute: Box<dyn Fn(&str) -> std::path::PathBuf + Send + Sync>,
    /// Reads a text, writes a text.
    pub(crate) files: [Arc<dyn Tool>; 2],
}

/// The tools of all agents, for a session in this place.
pub(crate) fn build_tools<'a>(
    agents: impl Iterator<Item = &'a Arc<AgentProgram>>,
    place: AgentPlace,
) -> Vec<Arc<dyn Tool>> {
    let place = Arc::new(place);
    let of = |agent: &Arc<AgentProgram>| {
        let (agent, place) = (Arc::clone(agent), Arc::clone(&place));
        let tool = move |step| -> Arc<dyn Tool> {
            Arc::new(StepTool::new(step, Arc::clone(&agent), Arc::clone(&place)))
        };
        AgentStep::ALL.map(tool)
    };
    agents.flat_map(of).collect()
}

/// One step of an agent.
struct StepTool {
    step: AgentStep,
    spec: ToolSpec,
    judged: ToolSpec,
    agent: Arc<AgentProgram>,
    place: Arc<AgentPlace>,
}

impl StepTool {
    fn new(step: AgentStep, agent: Arc<AgentProgram>, place: Arc<AgentPlace>) -> Self {
        let (access, kind) = match step {
            AgentStep::Begin => (Access::Execute, ToolKind::AgentStep),
            AgentStep::Did => (Access::Read, ToolKind::AgentStep),
            AgentStep::Read | AgentStep::Look => (Access::Read, ToolKind::AgentRequest),
            AgentStep::Write | AgentStep::Edit => (Access::Edit, ToolKind::AgentRequest),
            AgentStep::Run | AgentStep::Fetch | AgentStep::Act => {
                (Access::Execute, ToolKind::AgentRequest)
            }
        };
        let spec = ToolSpec {
            name: step.tool_name(&agent.settings.name),
            description: String::new(),
            parameters: RawJson::empty_object(),
            access,
            touches: Arc::default(),
            kind,
            tier: Tier::Full,
        };
        let (name, touched) = match step {
            AgentStep::Begin | AgentStep::Did | AgentStep::Act => (None, None),
            AgentStep::Read | AgentStep::Look => {
                (Some("fs.read"), Some(TouchedResource::path("path")))
            }
            AgentStep::Write => (Some("fs.write"), Some(TouchedResource::path("path"))),
            AgentStep::Edit => (Some("fs.edit"), Some(TouchedResource::path("path"))),
            AgentStep::Run => (Some("bash"), Some(TouchedResource::command("command"))),
            AgentStep::Fetch => (None, Some(TouchedResource::url("url"))),
        };
        let judged = ToolSpec {
            name: name.unwrap_or(&spec.name).to_owned(),
            touches: touched.into_iter().collect(),
            // Secrets go back into a file that they were taken out of, and nowhere else.
            kind: if step == AgentStep::Write { ToolKind::WritesFiles } else { kind },
            ..spec.clone()
        };
        Self { step, spec, judged, agent, place }
    }
}

impl Tool for StepTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn judged_as(&self) -> &ToolSpec {
        &self.judged
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let (agent, place) = (Arc::clone(&self.agent), Arc::clone(&self.place));
        let [read, write] = &self.place.files;
        match self.step {
            AgentStep::Begin => Box::pin(ensure_running(agent, place, call.id, cx)),
            AgentStep::Did => {
                let did = agent.desk.inspect_waiting(&call.id, |live| call_outcome(&live.call));
                Box::pin(std::future::ready(did.unwrap_or_else(refuse_model_call)))
            }
            AgentStep::Read => read.run(call, cx),
            AgentStep::Write => write.run(call, cx),
            AgentStep::Run
            | AgentStep::Look
            | AgentStep::Edit
            | AgentStep::Fetch
            | AgentStep::Act => Box::pin(resume_allowed_call(agent, call.id, cx)),
        }
    }

    fn preview(&self, call: &ToolCall, cx: &ToolCx) -> Result<Option<String>, PreviewError> {
        Ok(match self.step {
            AgentStep::Write => {
                let [_, write] = &self.place.files;
                // Its agent is told why it fails.
                write.preview(call, cx).unwrap_or_default()
            }
            AgentStep::Edit | AgentStep::Act => self
                .agent
                .desk
                .inspect_waiting(&call.id, |live| steps::call_diff(&live.call))
                .flatten(),
            AgentStep::Begin
            | AgentStep::Did
            | AgentStep::Read
            | AgentStep::Run
            | AgentStep::Look
            | AgentStep::Fetch => None,
        })
    }
}

/// Models may have seen the names of these tools, and call them.
fn refuse_model_call() -> ToolOutcome {
    ToolOutcome::failure_text("only the agent itself can take this step; nothing was done")
}

fn call_outcome(call: &AgentCall) -> ToolOutcome {
    let output = steps::call_output(call);
    if call.failed { ToolOutcome::Failed(output) } else { ToolOutcome::Done(output) }
}

/// Sees to it that the agent is there.
async fn ensure_running(
    agent: Arc<AgentProgram>,
    place: Arc<AgentPlace>,
    call: CallId,
    cx: ToolCx,
) -> ToolOutcome {
    let Some(waiting) = agent.desk.take_waiting(&call) else { return refuse_model_call() };
    let reads_only = cx.grant.reads_only;
    let fitting = waiting.filter(|live| live.reads_only == reads_only);
    let started = match fitting {
        Some(live) => Some(Ok(live)),
        None => cx.stop.run_until_cancelled(start_agent(&agent, &place, reads_only)).await,
    };
    match started {
        None => ToolOutcome::Interrupted(String::new()),
        Some(Ok(live)) => {
            agent.desk.add_waiting(call, Some(live));
            let held = if reads_only { "; it cannot change anything there" } else { "" };
            ToolOutcome::success_text(format!("works in {}{held}", cx.cwd.display()))
        }
        Some(Err(error)) => {
            // The next round tells of it.
            agent.desk.add_waiting(call, None);
            ToolOutcome::failure_text(error.to_string())
        }
    }
}

async fn start_agent(
    agent: &AgentProgram,
    place: &AgentPlace,
    reads_only: bool,
) -> Result<LiveAgent, AgentError> {
    let settings = &agent.settings;
    let mut around = if reads_only { &place.reading } else { &place.around }.clone();
    let mut writable: Vec<_> =
        settings.writable.iter().map(|path| (place.absolute)(path)).collect();
    if reads_only {
        writable.retain(|path| !path.starts_with(&around.cwd));
    }
    if let Some(enclosure) = &mut around.enclosure {
        // What it may write it may also make: such as settings of its own in a project without any.
        enclosure.policy.protected.retain(|path| !writable.contains(path));
    }
    let variable = |name: &str| around.environment.iter().find(|(known, _)| known == name);
    let paths = variable("PATH").map(|(_, paths)| paths.as_str()).unwrap_or_default();
    agent.locate_program(paths)?;
    let command = match settings.command.strip_prefix("~/") {
        Some(_) => (place.absolute)(&settings.command).display().to_string(),
        None => settings.command.clone(),
    };
    let definition = Definition {
        name: settings.name.clone(),
        origin: ServerOrigin::Configuration,
        reach: ServerReach::Process {
            command,
            args: settings.args.clone(),
            env: settings.env.clone(),
        },
        cwd: None,
        timeout: None,
        network: settings.network,
        writable,
        replaces: Default::default(),
        path_args: Default::default(),
    };
    LiveAgent::start(&definition, &around, reads_only).await
}

/// Lets the agent continue with a call of its own, and waits until that has ended or something else is wanted.
async fn resume_allowed_call(agent: Arc<AgentProgram>, id: CallId, cx: ToolCx) -> ToolOutcome {
    let Some(Some(mut live)) = agent.desk.take_waiting(&id) else { return refuse_model_call() };
    let PendingStep::Leave(wanted) = live.waits.clone() else {
        agent.desk.add_waiting(id, Some(live));
        return refuse_model_call();
    };
    live.send_answer(Ok(""));
    let mut put_off = Vec::new();
    let ended = cx.stop.run_until_cancelled(until_ended(&mut live, &wanted, &mut put_off)).await;
    let Some(ended) = ended else {
        agent.desk.stop_turn(live);
        return ToolOutcome::Interrupted(String::new());
    };
    put_off.into_iter().rev().for_each(|said| live.queue.push_front(said));
    agent.desk.add_waiting(id, Some(live));
    match ended {
        Some(call) => call_outcome(&call),
        None => ToolOutcome::success_text("approved; it continues"),
    }
}

/// Most things that an agent says while a call of its own continues, before the round ends.
const MAX_PUT_OFF: usize = 1_000;

async fn until_ended(
    live: &mut LiveAgent,
    id: &str,
    put_off: &mut Vec<AgentEvent>,
) -> Option<Box<AgentCall>> {
    while put_off.len() < MAX_PUT_OFF {
        match live.next_message().await {
            Ok(AgentEvent::Ended(ended, call)) if ended == id => return Some(call),
            Ok(said) => {
                let goes_on = matches!(
                    said,
                    AgentEvent::Text(_) | AgentEvent::Thought(_) | AgentEvent::Began(_)
                );
                put_off.push(said);
                if !goes_on {
                    return None;
                }
            }
            // The next round finds out, too, and tells of it.
            Err(_) => return None,
        }
    }
    None
}
