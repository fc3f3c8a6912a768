//! Runs of tasks: prepared before their first step, recorded before and after each, and reported at their end.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    duration,
    protocol::{TaskReport, TaskRequest, TaskRunState, TaskStepReport},
    session::PermissionMode,
    store::SessionId,
};
use gnoma_extend::{
    commands::words,
    tasks::{
        PlannedAction, PlannedStep, ResumeError, RunLock, RunRecord, RunStore, StepRecord,
        StepResult, StoreError, TaskPlan,
    },
};
use gnoma_guard::firewall::Firewall;

use super::{
    catalog::Tasks,
    history::{cost_words, run_store},
};
use crate::{HostError, Project, Result, agent::stricter};

/// A run that is about to begin or to continue. No other process runs it while this exists.
pub struct PreparedRun {
    plan: TaskPlan,
    /// The record of the run.
    pub(crate) record: RunRecord,
    store: Option<RunStore>,
    _lock: Option<RunLock>,
    firewall: Arc<Firewall>,
}

impl std::fmt::Debug for PreparedRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedRun").field("task", &self.plan.task).finish_non_exhaustive()
    }
}

impl PreparedRun {
    /// Returns a step of the plan.
    pub(crate) fn step(&self, at: usize) -> Option<&PlannedStep> {
        self.plan.steps.get(at)
    }

    /// Returns how many steps there are.
    pub(crate) fn count(&self) -> usize {
        self.plan.steps.len()
    }

    /// Returns what a step does.
    pub(crate) fn action(&self, at: usize) -> Option<PlannedAction> {
        Some(self.step(at)?.action(self.record.answer.as_deref()))
    }

    /// Returns the modes that the run is held to.
    pub(crate) fn modes(&self) -> &[PermissionMode] {
        &self.plan.modes
    }

    /// Notes how a step ended.
    pub(crate) fn end_step(&mut self, at: usize, result: StepResult, now_ms: i64) {
        self.record.end_step(at, result, now_ms);
    }

    /// Writes how far the run is, without secrets, and waits until that is on the disk. Blocks.
    pub(crate) fn save(&self) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let saved = store.save(&redact_record(&self.record, &self.firewall));
        saved.map_err(|error| HostError::failure(error.to_string()))
    }

    /// Reports how the run ended.
    pub(crate) fn report(&self) -> TaskReport {
        let is_recorded = self.store.is_some();
        report_run(&self.record, is_recorded)
    }
}

/// Returns the strictest of a session's mode `own` and the modes of a run.
#[must_use]
pub fn restricted_mode(own: PermissionMode, modes: &[PermissionMode]) -> PermissionMode {
    modes.iter().fold(own, |mode, wanted| stricter(mode, Some(*wanted)))
}

fn redact_record(run: &RunRecord, firewall: &Firewall) -> RunRecord {
    let clean = |text: &str| firewall.text(text).into_owned();
    let mut kept = run.clone();
    for (_, value) in &mut kept.arguments {
        *value = clean(value);
    }
    kept.answer = kept.answer.map(|answer| clean(&answer));
    kept.is_redacted |= kept.arguments != run.arguments || kept.answer != run.answer;
    for step in &mut kept.steps {
        step.why = clean(&step.why);
        step.title = clean(&step.title);
    }
    kept
}

fn report_run(run: &RunRecord, is_recorded: bool) -> TaskReport {
    let step = |step: &StepRecord| TaskStepReport {
        title: step.title.clone(),
        kind: step.kind.name().to_owned(),
        state: step.state,
        why: step.why.clone(),
        took_ms: u64::try_from(step.took_ms).unwrap_or_default(),
        micro_usd: step.micro_usd,
    };
    TaskReport {
        task: run.task.clone(),
        run: if is_recorded { run.id.clone() } else { String::new() },
        state: run.state,
        steps: run.steps.iter().map(step).collect(),
        summary: summarize_run(run, is_recorded),
    }
}

/// Says how a run ended, and what to do next.
fn summarize_run(run: &RunRecord, is_recorded: bool) -> String {
    let (task, count) = (&run.task, run.steps.len());
    let took: i64 = run.steps.iter().map(|step| step.took_ms).sum();
    let took = duration::words(Duration::from_millis(u64::try_from(took).unwrap_or_default()));
    let Some((number, step)) = run.open_step() else {
        let steps = if count == 1 { "1 step".to_owned() } else { format!("{count} steps") };
        return format!("Task {task} is done: {steps} in {took}{}", cost_words(run.micro_usd()));
    };
    let what = if run.state == TaskRunState::Failed { "failed" } else { "was stopped" };
    let why = step.why.trim().trim_end_matches('.');
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let next = if is_recorded {
        ". `/task resume again` (`gnoma task run --resume --again`) repeats this step and goes on, `/task resume skip` \
         (`--skip`) leaves it out"
    } else {
        ". Nothing is recorded in incognito, so the run cannot be resumed"
    };
    format!(
        "Task {task} stopped at step {number} of {count} ({}), which {what}{why}{next}",
        step.title
    )
}

/// Prepares a new run, or the continuation of one, for a session. Blocks.
///
/// # Errors
/// The task cannot run, or nothing can continue.
pub(crate) fn prepare_run(
    project: &Project,
    session: &SessionId,
    request: TaskRequest,
) -> Result<PreparedRun> {
    let tasks = Tasks::find(project);
    let store = run_store(project);
    let firewall = Arc::clone(&project.firewall);
    match request {
        TaskRequest::Run { line } => {
            let mut words = words(&line).into_iter();
            let name = words.next().unwrap_or_default();
            let plan = tasks.plan(&name, &words.collect::<Vec<_>>())?;
            let clock = project.shared.clock();
            let id = format!("{:013}-{:04x}", clock.now_ms().max(0), clock.random() & 0xFFFF);
            let record = RunRecord::new(id, &plan, session.to_string(), clock.now_ms());
            let lock = store.as_ref().map(|store| store.lock(&record.id)).transpose();
            let lock = lock.map_err(|error| HostError::failure(error.to_string()))?;
            Ok(PreparedRun { plan, record, store, _lock: lock, firewall })
        }
        TaskRequest::Resume { run, choice } => {
            let store = store.ok_or_else(|| {
                HostError::usage("nothing is recorded in incognito, so there is no run to resume")
            })?;
            let id = resumable_run(&store, &run, Some(session))?.id;
            let failed = |error: StoreError| HostError::usage(error.to_string());
            let lock = store.lock(&id).map_err(failed)?;
            // Read again: until now another process may have run it.
            let record = store.run(&id).map_err(failed)?;
            let values = record.arguments.iter();
            let arguments: Vec<String> =
                values.map(|(name, value)| format!("{name}={value}")).collect();
            let plan = tasks.plan(&record.task, &arguments)?;
            let resumed = record.resume(&plan, choice, project.now_ms());
            let mut record = resumed.map_err(|error| resume_error(&error))?;
            session.as_str().clone_into(&mut record.session);
            Ok(PreparedRun { plan, record, store: Some(store), _lock: Some(lock), firewall })
        }
        _ => Err(HostError::usage("this request does not run a task")),
    }
}

fn resume_error(error: &ResumeError) -> HostError {
    let remedy = match error {
        ResumeError::Undecided { .. } => Some(
            "`/task resume again` (or `gnoma task run --resume --again`) repeats it, `/task resume skip` (or \
             `--skip`) leaves it out"
                .to_owned(),
        ),
        ResumeError::Done | ResumeError::Changed { .. } | ResumeError::Redacted => None,
    };
    HostError { remedy, ..HostError::usage(error.to_string()) }
}

/// Returns the run of that id, or with an empty id the last one that is not done: of `session`, or else of the project.
///
/// # Errors
/// There is none.
pub fn resumable_run(store: &RunStore, id: &str, session: Option<&SessionId>) -> Result<RunRecord> {
    if !id.is_empty() {
        let run = store.run(id).ok();
        // The name of a task means its last run.
        let run = run.or_else(|| {
            store.runs(Some(id)).into_iter().find(|run| run.state != TaskRunState::Done)
        });
        return run.ok_or_else(|| {
            let cause = format!("there is no run of `{}` to resume", id.escape_debug());
            let remedy = Some("`gnoma task history` lists the runs".to_owned());
            HostError { remedy, ..HostError::usage(cause) }
        });
    }
    let mut open: Vec<RunRecord> =
        store.runs(None).into_iter().filter(|run| run.state != TaskRunState::Done).collect();
    let own = session
        .and_then(|session| open.iter().position(|run| run.session == session.as_str()))
        .unwrap_or(0);
    if own < open.len() {
        return Ok(open.swap_remove(own));
    }
    Err(HostError::usage("no run of a task waits to be resumed"))
}
