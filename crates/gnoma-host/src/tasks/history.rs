//! Records of runs of tasks, described for people.

use std::time::Duration;

use gnoma_core::{
    duration,
    price::format_usd,
    protocol::{TaskRunState, TaskStepState},
    quantity::describe_count,
};
use gnoma_extend::tasks::{RunRecord, RunStore};

use crate::{Folders as _, Project, clock};

/// The folder within the state folder for records of runs.
const RUNS: &str = "tasks";
/// Runs that are listed.
const MAX_LISTED_RUNS: usize = 10;

/// Returns where the runs of a project are recorded; `None` in incognito.
#[must_use]
pub fn run_store(project: &Project) -> Option<RunStore> {
    if project.is_incognito() {
        return None;
    }
    let key = gnoma_store::project_key(&project.places.project.display().to_string());
    Some(RunStore::new(project.environment().state_dir().join(RUNS).join(key)))
}

/// Describes the last runs of a task, or of all with an empty name, the newest first.
#[must_use]
pub fn describe_history(project: &Project, name: &str) -> String {
    let Some(store) = run_store(project) else {
        return "nothing is recorded in incognito\n".to_owned();
    };
    let now_ms = project.now_ms();
    let runs = store.runs(Some(name).filter(|name| !name.is_empty()));
    let text: String =
        runs.iter().take(MAX_LISTED_RUNS).map(|run| describe_run(run, now_ms)).collect();
    if text.is_empty() { "no runs yet\n".to_owned() } else { text }
}

/// Describes a run in a line, and why it did not go on in another.
fn describe_run(run: &RunRecord, now_ms: i64) -> String {
    let when = clock::ago(run.began_ms, now_ms);
    let state = state_word(run);
    let took: i64 = run.steps.iter().map(|step| step.took_ms).sum();
    let took = duration::words(Duration::from_millis(u64::try_from(took).unwrap_or_default()));
    let cost = describe_cost(run.micro_usd());
    let steps = describe_count(run.steps.len(), "step");
    let steps = format!("{} of {steps}", run.finished_steps());
    let mut text = format!("{when}  {}: {state}, {steps}, {took}{cost}", run_title(run));
    if let Some((number, step)) = run.open_step()
        && step.state != TaskStepState::Waiting
    {
        let why = step.why.lines().next().unwrap_or_default();
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        text.push_str(&format!("\n    step {number} ({}){why}", step.title));
    }
    text + "\n"
}

fn state_word(run: &RunRecord) -> &'static str {
    match run.state {
        TaskRunState::Running => "not finished",
        TaskRunState::Done => "done",
        TaskRunState::Failed => "failed",
        TaskRunState::Stopped => "stopped",
    }
}

/// Returns the task of a run with its arguments: `release version=v1.2.0`.
pub(super) fn run_title(run: &RunRecord) -> String {
    let arguments = run.arguments.iter().map(|(name, value)| format!(" {name}={value}"));
    std::iter::once(run.task.clone()).chain(arguments).collect()
}

/// Describes the cost of a run behind other words; empty if nothing is known of it.
pub(super) fn describe_cost(micro_usd: u64) -> String {
    if micro_usd == 0 { String::new() } else { format!(", {}", format_usd(micro_usd)) }
}
