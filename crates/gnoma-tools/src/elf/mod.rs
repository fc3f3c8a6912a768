//! `elf.spawn` and `elf`: the model gives parts of its work to elfs, which are separate sessions that work side by
//! side, each with the model that suits its task.
//!
//! What an elf may do is not decided here: its own session and the rules of its parent judge each of its calls. The
//! elfs of a session share nothing but their parent.

mod manager;
mod report;
mod run;
mod task;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gnoma_core::{
    Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    message::CallId,
    task::box_future,
    tool::{
        Access, BoxFuture, ChildHandle, ChildLink, ChildState, Tier, ToolEvent, ToolKind,
        ToolSession,
    },
};
use serde::Deserialize;
use tokio::{sync::Notify, task::JoinSet};

use self::{
    manager::{ElfError, ElfManager, MAX_RUNNING},
    report::{ElfEnd, ElfReport},
    run::ElfRun,
    task::{PlannedElf, SpawnArguments},
};
use crate::args;

pub use self::task::Agent;

/// The time that `wait` waits where the call does not say.
const WAIT: Duration = Duration::from_secs(10 * 60);
/// The most time that `wait` waits.
const MAX_WAIT: Duration = Duration::from_secs(60 * 60);
/// Most agents that the model sees.
const MAX_LISTED: usize = 20;
/// Bytes of the description of one.
const MAX_LISTED_BYTES: usize = 120;

const SPAWN: &str = "Give parts of the work to elfs: sub-agents that work side by side, each with its own \
    context and a model that suits its task. An elf knows only what its task says; you get its last \
    message. For large searches, reviews, independent changes.";
const SPAWN_PARAMETERS: &str = r#"{"type":"object","properties":{"tasks":{"type":"array","description":"1 to 10","items":{"type":"object","properties":{"task":{"type":"string"},"name":{"type":"string"},"agent":{"type":"string"},"model":{"type":"string"},"provider":{"type":"string"},"tools":{"type":"array","items":{"type":"string"}},"folder":{"type":"string"},"isolation":{"enum":["shared","worktree"],"description":"worktree: edits a copy, merged at its end"},"resume":{"type":"string","description":"id of an elf to go on with"},"may_spawn":{"type":"boolean"},"max_rounds":{"type":"integer"},"max_seconds":{"type":"integer"},"max_usd":{"type":"number"}},"required":["task"]}},"background":{"type":"boolean","description":"go on meanwhile"}},"required":["tasks"]}"#;
const SPAWN_LEAN: &str = "Give parts of the work to helpers that work side by side. A helper knows only its \
    task: name the file and what to find out or do.";
const SPAWN_LEAN_PARAMETERS: &str = r#"{"type":"object","properties":{"tasks":{"type":"array","items":{"type":"object","properties":{"task":{"type":"string"}},"required":["task"]}}},"required":["tasks"]}"#;
const ELF: &str =
    "Elfs in the background: see how they are, wait for results, send one a message, cancel.";
const ELF_PARAMETERS: &str = r#"{"type":"object","properties":{"action":{"type":"string","enum":["status","wait","send","cancel"]},"names":{"type":"array","items":{"type":"string"},"description":"default all"},"text":{"type":"string"},"max_seconds":{"type":"integer"}},"required":["action"]}"#;

/// The tools by which a session starts elfs and speaks with them. Dropped, all that run end. Whoever works as
/// an agent `leads`: then small models are offered them too, with the task as the only field, since they fill
/// in every field that they see.
#[must_use]
pub fn elf_tools(agents: Vec<Agent>, leads: bool) -> Vec<Arc<dyn Tool>> {
    let elfs = Arc::<ElfManager>::default();
    let about = format!("{SPAWN}{}", describe_agents(&agents));
    let spec = |name, access, about, parameters| ToolSpec {
        kind: ToolKind::StartsSessions,
        ..args::tool_spec(name, access, [], Tier::Full, about, parameters)
    };
    let spawn = spec("elf.spawn", Access::Execute, &about, SPAWN_PARAMETERS);
    let lean = leads.then(|| ToolSpec {
        tier: Tier::Lean,
        ..spec("elf.spawn", Access::Execute, SPAWN_LEAN, SPAWN_LEAN_PARAMETERS)
    });
    let speak = spec("elf", Access::Read, ELF, ELF_PARAMETERS);
    vec![
        Arc::new(SpawnTool { spec: spawn, lean, agents: agents.into(), elfs: Arc::clone(&elfs) }),
        Arc::new(ElfTool { spec: speak, elfs }),
    ]
}

/// The agents that can be used, for the model.
fn describe_agents(agents: &[Agent]) -> String {
    let usable = agents.iter().filter(|agent| agent.refusal.is_none()).take(MAX_LISTED);
    let line = |agent: &Agent| {
        let about = gnoma_core::text_truncation::word_prefix(&agent.description, MAX_LISTED_BYTES);
        format!("\n- {}: {about}", agent.name)
    };
    let lines: String = usable.map(line).collect();
    if lines.is_empty() { lines } else { format!("\nAgents:{lines}") }
}

struct SpawnTool {
    spec: ToolSpec,
    lean: Option<ToolSpec>,
    agents: Arc<[Agent]>,
    elfs: Arc<ElfManager>,
}

impl Tool for SpawnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn lean_spec(&self) -> Option<&ToolSpec> {
        self.lean.as_ref()
    }

    fn background_jobs(&self) -> usize {
        self.elfs.count_running()
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let (agents, elfs) = (Arc::clone(&self.agents), Arc::clone(&self.elfs));
        Box::pin(async move {
            let arguments = match args::read_arguments::<SpawnArguments>(&call) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            let (background, must_complete) = (arguments.background, arguments.must_complete);
            let is_taken = |name: &str| elfs.is_taken(name);
            let planned = match task::plan_elfs(arguments, &agents, &cx.cwd, is_taken) {
                Ok(planned) => planned,
                Err(error) => return ToolOutcome::failure_text(error.to_string()),
            };
            let Some(session) = cx.session.clone() else {
                return ToolOutcome::failure_text(
                    "no elfs can be started here; do the work yourself",
                );
            };
            match background {
                true => start_elfs(&elfs, planned, &session, (&call.id, &cx)),
                false => {
                    let ended = run_together(planned, &session, &call.id, &cx).await;
                    reports_outcome(&ended, &cx, must_complete)
                }
            }
        })
    }
}

/// Starts them and continues.
fn start_elfs(
    elfs: &ElfManager,
    planned: Vec<PlannedElf>,
    session: &Arc<dyn ToolSession>,
    (call, cx): (&CallId, &ToolCx),
) -> ToolOutcome {
    let running = elfs.count_running();
    if running + planned.len() > MAX_RUNNING {
        return ToolOutcome::failure_text(format!(
            "at most {MAX_RUNNING} elfs run in the background, and {running} do; nothing was started. \
             Wait for some of them"
        ));
    }
    let names: Vec<_> = planned.iter().map(|elf| format!("`{}`", elf.name)).collect();
    for elf in planned {
        elfs.start(elf, Arc::clone(session), (call.clone(), cx.stop.clone()));
    }
    ToolOutcome::success_text(format!(
        "started {}. You are told when one ends; `elf` with action `wait` gives results",
        names.join(", ")
    ))
}

/// Runs them side by side and waits for all.
async fn run_together(
    planned: Vec<PlannedElf>,
    session: &Arc<dyn ToolSession>,
    call: &CallId,
    cx: &ToolCx,
) -> Vec<Arc<ElfReport>> {
    let count = planned.len();
    let ended: Arc<Mutex<Vec<Option<Arc<ElfReport>>>>> = Arc::new(Mutex::new(vec![None; count]));
    let mut running = JoinSet::new();
    for (at, planned) in planned.into_iter().enumerate() {
        let (link, handle) = ChildLink::new();
        let (told, cx) = (
            show_progress(planned.name.clone(), handle.clone(), call.clone(), cx.clone()),
            cx.clone(),
        );
        let run = ElfRun {
            planned,
            session: Arc::clone(session),
            call: call.clone(),
            stop: cx.stop.clone(),
            link,
            handle,
            cancel: Arc::<Notify>::default(),
        };
        let (ended, call) = (Arc::clone(&ended), call.clone());
        running.spawn(box_future(async move {
            let report = tokio::select! {
                biased;
                report = run.run_to_end() => report,
                never = told => match never {},
            };
            let line = format!("{}: {}\n", report.name, report.to_line());
            cx.emit_event(&call, ToolEvent::Progress(line));
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = ended.get_mut(at) {
                *place = Some(Arc::new(report));
            }
        }));
    }
    while running.join_next().await.is_some() {}
    ended.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().cloned().collect()
}

/// Returns what the parent gets of elfs that have ended.
fn reports_outcome(ended: &[Arc<ElfReport>], cx: &ToolCx, must_complete: bool) -> ToolOutcome {
    let text = report::render_results(ended, cx.stores_large_results);
    if cx.stop.is_cancelled() {
        return ToolOutcome::Interrupted(text);
    }
    if has_failed(ended, must_complete) {
        return ToolOutcome::failure_text(text);
    }
    ToolOutcome::success_text(text)
}

/// Reports whether a call has failed whose elfs ended so.
fn has_failed(ended: &[Arc<ElfReport>], must_complete: bool) -> bool {
    let is_whole =
        |report: &Arc<ElfReport>| report.is_completed() && report.last.unattended_denial.is_none();
    if must_complete && !ended.iter().all(is_whole) {
        return true;
    }
    let is_failed = |report: &Arc<ElfReport>| matches!(report.end, ElfEnd::Failed(_));
    // A failure is never put aside, so only one without results is one.
    let has_words = ended.iter().any(|report| !report.text.is_empty());
    ended.iter().all(is_failed) && !has_words
}

/// Shows what an elf does, as long as it does it.
async fn show_progress(
    name: String,
    mut handle: ChildHandle,
    call: CallId,
    cx: ToolCx,
) -> std::convert::Infallible {
    let mut last = String::new();
    while handle.status.changed().await.is_ok() {
        let status = handle.status.borrow_and_update().clone();
        let what = match status.state {
            ChildState::Asking => "waiting for you".to_owned(),
            ChildState::Starting | ChildState::Working | ChildState::Ended => status.doing,
        };
        // What a model says is not told word by word.
        if what.is_empty() || what == last || matches!(&*what, "thinking" | "writing") {
            continue;
        }
        let model = status.model.unwrap_or_default();
        cx.emit_event(&call, ToolEvent::Progress(format!("{name} ({model}): {what}\n")));
        last = what;
    }
    std::future::pending().await
}

/// The arguments of a call about elfs in the background.
#[derive(Deserialize)]
struct ElfArguments {
    action: ElfAction,
    #[serde(default)]
    names: Vec<String>,
    text: Option<String>,
    max_seconds: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ElfAction {
    Status,
    Wait,
    Send,
    Cancel,
}

struct ElfTool {
    spec: ToolSpec,
    elfs: Arc<ElfManager>,
}

impl Tool for ElfTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let elfs = Arc::clone(&self.elfs);
        Box::pin(async move {
            let arguments = match args::read_arguments::<ElfArguments>(&call) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            let stop = cx.stop.clone();
            match stop.run_until_cancelled(run_elf_action(&elfs, arguments, &cx)).await {
                Some(Ok(outcome)) => outcome,
                Some(Err(error)) => ToolOutcome::failure_text(error.to_string()),
                None => ToolOutcome::Interrupted(String::new()),
            }
        })
    }
}

async fn run_elf_action(
    elfs: &ElfManager,
    ElfArguments { action, names, text, max_seconds }: ElfArguments,
    cx: &ToolCx,
) -> Result<ToolOutcome, ElfError> {
    match action {
        ElfAction::Status => Ok(ToolOutcome::success_text(elfs.describe_status())),
        ElfAction::Send => {
            let text = text.filter(|text| !text.trim().is_empty());
            let (Some(text), [name]) = (text, &*names) else {
                return Err(ElfError::SendArguments);
            };
            elfs.send_message(name, &text)?;
            Ok(ToolOutcome::success_text(format!(
                "sent to elf `{name}`, which reads it if it calls its model again"
            )))
        }
        ElfAction::Cancel => {
            let ended = elfs.cancel(&names).await?;
            Ok(results_after_line(&ended, "", cx))
        }
        ElfAction::Wait => {
            let patience = max_seconds.map_or(WAIT, Duration::from_secs).min(MAX_WAIT);
            let (ended, running) = elfs.wait(&names, patience).await?;
            let still = match running.is_empty() {
                true => String::new(),
                false => format!("still at work: {}\n", running.join(", ")),
            };
            Ok(results_after_line(&ended, &still, cx))
        }
    }
}

/// The results, and a line before them.
fn results_after_line(ended: &[Arc<ElfReport>], line: &str, cx: &ToolCx) -> ToolOutcome {
    let text = match ended {
        [] if line.is_empty() => "no elfs run in the background".to_owned(),
        [] => String::new(),
        ended => report::render_results(ended, cx.stores_large_results),
    };
    ToolOutcome::success_text(format!("{line}{text}"))
}

#[cfg(test)]
mod tests {
    use gnoma_core::tool::ChildStatus;

    use super::*;

    #[test]
    fn elf_tool_specs_are_short_and_name_the_available_agents() {
        let lean = |leads| elf_tools(Vec::new(), leads)[0].lean_spec().cloned();
        assert!(lean(false).is_none(), "only who leads has small models lead");
        let lean = lean(true).unwrap();
        assert!(lean.tier == Tier::Lean && !lean.parameters.get().contains("model"), "{lean:?}");
        let specs: Vec<_> =
            elf_tools(Vec::new(), true).iter().map(|tool| tool.spec().clone()).collect();
        let bytes = |spec: &ToolSpec| spec.description.len() + spec.parameters.get().len();
        assert!(specs.iter().all(|spec| spec.tier == Tier::Full && bytes(spec) <= 980));
        assert!(specs.iter().all(|spec| spec.parameters.get().starts_with(r#"{"type":"object""#)));
        assert!(specs.iter().map(bytes).sum::<usize>() <= 1_330, "about 320 tokens");
        let agent = |name: &str, refusal: Option<&str>| Agent {
            name: name.to_owned(),
            description: "reads the code".to_owned(),
            refusal: refusal.map(str::to_owned),
            ..Agent::default()
        };
        let told = describe_agents(&[agent("a", None), agent("b", Some("not trusted"))]);
        assert_eq!(told, "\nAgents:\n- a: reads the code");
    }

    #[test]
    fn elf_call_that_needs_complete_work_fails_if_an_elf_did_not_complete() {
        let ended = |end, unattended_denial| {
            let last = ChildStatus { unattended_denial, ..ChildStatus::default() };
            let (text, took) = ("half".to_owned(), Duration::ZERO);
            [Arc::new(ElfReport { name: "a".to_owned(), end, text, last, took, merge: None })]
        };
        for (report, is_whole) in [
            (ended(ElfEnd::Completed, None), true),
            (ended(ElfEnd::Completed, Some("nobody".to_owned())), false),
            (ended(ElfEnd::Cancelled("its time is over".to_owned()), None), false),
            (ended(ElfEnd::Failed("no model".to_owned()), None), false),
        ] {
            assert_eq!(has_failed(&report, true), !is_whole, "{report:?}");
            assert!(!has_failed(&report, false), "models read what it said: {report:?}");
        }
        assert!(has_failed(&[], true), "none has ended");
    }
}
