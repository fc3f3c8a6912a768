//! Runs of tasks: prepared before their first step, recorded before and after each, and reported at their end.

use std::sync::Arc;

use gnoma_core::{
    ModelRef,
    protocol::{TaskReport, TaskRequest, TaskRunState, TaskStepReport, TaskStepState},
    quantity::describe_count,
    session::PermissionMode,
    store::SessionId,
};
use gnoma_extend::{
    commands::split_words,
    tasks::{
        PlannedAction, PlannedStep, ResumeChoice, ResumeError, RunLock, RunRecord, RunStore,
        StepKind, StepRecord, StepResult, StoreError, TaskPlan,
    },
};
use gnoma_guard::firewall::Firewall;

use super::{
    catalog::Tasks,
    failure_choice::{FailureAnswer, failure_question, parse_failure_answer},
    history::{describe_cost, describe_gaps, describe_time, run_store, run_title},
    step_end::{describe_other, describe_why},
};
use crate::{HostError, Project, Result, agent::stricter_mode, clock};

/// A run that is about to begin or to continue. No other process runs it while this exists.
pub struct PreparedRun {
    plan: TaskPlan,
    /// The record of the run.
    pub(crate) record: RunRecord,
    store: Option<RunStore>,
    _lock: Option<RunLock>,
    firewall: Arc<Firewall>,
    /// Names the run that continues; `None` for a new one.
    pub(crate) opening: Option<String>,
    /// The person wants to edit the task before the run continues.
    is_to_edit: bool,
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
    pub(crate) fn step_count(&self) -> usize {
        self.plan.steps.len()
    }

    /// Returns the steps that run next: one, or those that run side by side. None after the last one.
    pub(crate) fn next_steps(&self) -> Vec<usize> {
        let next = self.record.next_step().filter(|at| *at < self.plan.steps.len());
        let Some(at) = next else { return Vec::new() };
        let group = self.step(at).and_then(|step| step.group);
        // A stronger model is one of the session's own turns.
        let is_beside = |(_, (step, record)): &(usize, (&PlannedStep, &StepRecord))| {
            group.is_some() && step.group == group && !record.is_over() && !record.escalates
        };
        let steps = self.plan.steps.iter().zip(&self.record.steps).enumerate();
        let beside: Vec<usize> = steps.filter(is_beside).map(|(at, _)| at).collect();
        if beside.first() == Some(&at) { beside } else { vec![at] }
    }

    /// Describes how a step ended, in what time and for how much; `None` where the end of the run says so.
    pub(crate) fn describe_step_end(&self, at: usize) -> Option<String> {
        let step = self.record.steps.get(at).filter(|_| self.step_count() > 1)?;
        let ended = match step.state {
            TaskStepState::Done => "done in",
            TaskStepState::Failed => "failed after",
            TaskStepState::Stopped => "was stopped after",
            TaskStepState::Waiting | TaskStepState::Begun | TaskStepState::Skipped => return None,
        };
        let (task, number, count) = (&self.record.task, at + 1, self.step_count());
        let (took, cost) = (describe_time(step.took_ms), describe_cost(step.micro_usd));
        Some(format!("Task {task}, step {number} of {count} ({}) {ended} {took}{cost}", step.title))
    }

    /// Returns what a step does.
    pub(crate) fn action(&self, at: usize) -> Option<PlannedAction> {
        Some(self.step(at)?.resolve_action(self.record.answer.as_deref()))
    }

    /// Returns the modes that the run is held to.
    pub(crate) fn modes(&self) -> &[PermissionMode] {
        &self.plan.modes
    }

    /// Returns the models that the steps want which are still to run.
    pub(crate) fn models(&self) -> Vec<String> {
        let steps = self.plan.steps.iter().zip(&self.record.steps);
        let open = steps.filter(|(_, record)| !record.is_over());
        let prompts = open.filter(|(step, _)| step.kind() == StepKind::Prompt);
        prompts.filter_map(|(step, _)| step.model.clone()).collect()
    }

    /// Returns the models in whose place a stronger one is wanted for a step.
    pub(crate) fn failed_models(&self, at: usize) -> Vec<ModelRef> {
        let step = self.record.steps.get(at).filter(|step| step.escalates);
        step.map(|step| step.models.clone()).unwrap_or_default()
    }

    /// Notes that a step begins.
    pub(crate) fn begin_step(&mut self, at: usize, now_ms: i64) {
        self.record.begin_step(at, now_ms);
        // A process that is killed cannot note what the step has said.
        if let Some(PlannedAction::Prompt(text)) = self.action(at) {
            self.record.add_message(&self.firewall.redact_text(&text));
        }
    }

    /// Notes how a step ended.
    pub(crate) fn end_step(&mut self, at: usize, mut result: StepResult, now_ms: i64) {
        result.message = result.message.map(|text| self.firewall.redact_text(&text).into_owned());
        self.record.end_step(at, result, now_ms);
    }

    /// Returns the question about the step that has just failed, and its choices; `None` if no step has.
    pub(crate) fn failure_question(&self) -> Option<(String, Vec<String>)> {
        failure_question(&self.record)
    }

    /// Does what the person answered to it. Words that are no choice leave the run as it ended.
    pub(crate) fn apply_failure_answer(&mut self, answer: &str, now_ms: i64) {
        match parse_failure_answer(answer) {
            Some(FailureAnswer::Resume(choice)) => {
                // The plan is the one that it ran by, so only a choice that does not fit is refused.
                if let Ok(record) = self.record.clone().resume(&self.plan, Some(choice), now_ms) {
                    self.record = record;
                }
            }
            Some(FailureAnswer::Edit) => self.is_to_edit = true,
            None => (),
        }
    }

    /// Writes how far the run is, without secrets, and waits until that is on the disk. Blocks.
    pub(crate) fn save(&self) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let saved = store.save(&redact_record(&self.record, &self.firewall));
        saved.map_err(|error| HostError::failure(error.to_string()))
    }

    /// Reports how the run ended.
    pub(crate) fn report(&self) -> TaskReport {
        let mut report = report_run(&self.record, self.store.is_some());
        if self.is_to_edit {
            let task = &report.task;
            report.summary = format!(
                "Task {task} waits. `gnoma task edit {task}` opens it in your editor; then `/task resume again` (`gnoma task \
                 resume --again`) continues with the step that failed"
            );
        }
        report
    }
}

/// Returns the strictest of a session's mode `own` and the modes of a run.
#[must_use]
pub fn restricted_mode(own: PermissionMode, modes: &[PermissionMode]) -> PermissionMode {
    modes.iter().fold(own, |mode, wanted| stricter_mode(mode, Some(*wanted)))
}

/// Returns the value of an argument without secrets. Some are known only by where they stand, as in the assignment before
/// a command.
pub(crate) fn redact_argument(firewall: &Firewall, name: &str, value: &str) -> String {
    let alone = firewall.redact_text(value);
    let assigned = format!("{name}='{value}'");
    let redacted = firewall.redact_text(&assigned);
    if alone != value || redacted == assigned {
        return alone.into_owned();
    }
    let inside = redacted.strip_prefix(name).and_then(|rest| rest.strip_prefix("='"));
    inside.and_then(|rest| rest.strip_suffix('\'')).unwrap_or(&redacted).to_owned()
}

fn redact_record(run: &RunRecord, firewall: &Firewall) -> RunRecord {
    let clean = |text: &str| firewall.redact_text(text).into_owned();
    let mut kept = run.clone();
    for (name, value) in &mut kept.arguments {
        *value = redact_argument(firewall, name, value);
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
    let took = describe_time(run.took_ms());
    let Some((number, step)) = run.open_step() else {
        let (steps, cost) = (describe_count(count, "step"), describe_cost(run.micro_usd()));
        let gaps = describe_gaps(run);
        return format!("Task {task} is done: {steps} in {took}{cost}{gaps}");
    };
    let begun = run.begun_steps();
    let what = if run.state == TaskRunState::Failed { "failed" } else { "was stopped" };
    let why = describe_why(step);
    let others: String = begun.iter().skip(1).map(describe_other).collect();
    let these = if begun.len() > 1 { "these steps" } else { "this step" };
    let can_escalate = begun.iter().any(|(_, step)| !step.models.is_empty());
    let next = match (is_recorded, step.state) {
        (false, _) => "Nothing is recorded in incognito, so the run cannot be resumed".to_owned(),
        (true, TaskStepState::Waiting) => {
            "`/task resume` (`gnoma task resume`) continues with this step".to_owned()
        }
        (true, _) if step.kind == StepKind::Question => {
            "`/task resume again` (`gnoma task resume --again`) asks again and goes on".to_owned()
        }
        (true, _) => format!(
            "`/task resume again` (`gnoma task resume --again`) repeats {these} and goes on, {}`skip` (`--skip`) leaves {} \
             out; `gnoma task edit` changes the task before",
            if can_escalate { format!("{STRONGER_MODEL}, ") } else { String::new() },
            if begun.len() > 1 { "them" } else { "it" },
        ),
    };
    format!(
        "Task {task} stopped at step {number} of {count} ({}), which {what}{why}{others}. {next}",
        step.title
    )
}

/// The offer to have a stronger model do steps in which one answered.
const STRONGER_MODEL: &str = "`stronger` (`--stronger`) has a stronger model do it";

/// Prepares a new run, or the continuation of one, for a session. Blocks.
///
/// # Errors
/// The task cannot run, or nothing can continue.
pub(crate) fn prepare_run(
    project: &Project,
    session: &SessionId,
    request: TaskRequest,
) -> Result<PreparedRun> {
    match request {
        TaskRequest::Run { line } => prepare_new_run(project, session, &line),
        TaskRequest::Resume { run, choice } => prepare_resumed_run(project, session, &run, choice),
        _ => Err(HostError::usage("this request does not run a task")),
    }
}

fn prepare_new_run(project: &Project, session: &SessionId, line: &str) -> Result<PreparedRun> {
    let (tasks, store) = (Tasks::find(project), run_store(project));
    let mut words = split_words(line).into_iter();
    let name = words.next().unwrap_or_default();
    let plan = tasks.plan(&name, &words.collect::<Vec<_>>())?;
    let clock = project.shared.clock();
    let id = format!("{:013}-{:04x}", clock.now_ms().max(0), clock.random_bits() & 0xFFFF);
    let record = RunRecord::new(id, &plan, session.to_string(), clock.now_ms());
    let lock = store.as_ref().map(|store| store.lock_run(&record.id)).transpose();
    let lock = lock.map_err(|error| HostError::failure(error.to_string()))?;
    let (opening, is_to_edit, firewall) = (None, false, Arc::clone(&project.firewall));
    Ok(PreparedRun { plan, record, store, _lock: lock, firewall, opening, is_to_edit })
}

fn prepare_resumed_run(
    project: &Project,
    session: &SessionId,
    wanted: &str,
    choice: Option<ResumeChoice>,
) -> Result<PreparedRun> {
    let tasks = Tasks::find(project);
    let store = run_store(project).ok_or_else(|| {
        HostError::usage("nothing is recorded in incognito, so there is no run to resume")
    })?;
    let id = resumable_run(&store, wanted, Some(session))?.id;
    let failed = |error: StoreError| HostError::usage(error.to_string());
    let lock = Some(store.lock_run(&id).map_err(failed)?);
    // Read again: until now another process may have run it.
    let record = store.load_run(&id).map_err(failed)?;
    let title = title_with_age(&record, project.now_ms());
    if record.is_redacted {
        // Its values are not those that the run needs.
        return Err(resume_error(&title, &ResumeError::Redacted));
    }
    let plan = tasks.replan(&record.task, &record.arguments).map_err(|error| {
        let cause = format!("{title} cannot be resumed: {}", error.cause);
        HostError { cause, ..error }
    })?;
    let resumed = record.resume(&plan, choice, project.now_ms());
    let mut record = resumed.map_err(|error| resume_error(&title, &error))?;
    session.as_str().clone_into(&mut record.session);
    let (opening, is_to_edit) = (Some(format!("Resuming {title}")), false);
    let (store, firewall) = (Some(store), Arc::clone(&project.firewall));
    Ok(PreparedRun { plan, record, store, _lock: lock, firewall, opening, is_to_edit })
}

/// Names a run that is resumed, or that cannot be: `the run of release version=v1.2.0 from 5m ago`.
fn title_with_age(run: &RunRecord, now_ms: i64) -> String {
    format!("the run of `{}` from {}", run_title(run), clock::describe_age(run.began_ms, now_ms))
}

fn resume_error(title: &str, error: &ResumeError) -> HostError {
    let repeats = |them: &str| {
        format!("`/task resume again` (or `gnoma task resume --again`) repeats {them}")
    };
    let remedy = match error {
        ResumeError::Undecided { steps, can_escalate, can_skip, .. } => {
            let them = if steps.len() > 1 { "them" } else { "it" };
            let again = repeats(them);
            let stronger = can_escalate.then(|| STRONGER_MODEL.to_owned());
            let skip = can_skip.then(|| format!("`skip` (`--skip`) leaves {them} out"));
            Some([Some(again), stronger, skip].into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        ResumeError::Unanswered { .. } => {
            Some("`/task resume again` (or `gnoma task resume --again`) asks it again".to_owned())
        }
        ResumeError::NoModel { steps } => {
            Some(repeats(if steps.len() > 1 { "them" } else { "it" }))
        }
        ResumeError::Done | ResumeError::Changed { .. } | ResumeError::Redacted => None,
    };
    HostError { remedy, ..HostError::usage(format!("{title}: {error}")) }
}

/// Returns the run that `wanted` names, by its id or as the newest one of a task. If it is empty: the newest run of
/// `session`, or else of the project. An older run is never taken instead.
///
/// # Errors
/// There is none, or the newest is done.
pub fn resumable_run(
    store: &RunStore,
    wanted: &str,
    session: Option<&SessionId>,
) -> Result<RunRecord> {
    let history = || Some("`gnoma task history` lists the runs".to_owned());
    if !wanted.is_empty()
        && let Ok(run) = store.load_run(wanted)
    {
        return Ok(run);
    }
    let mut runs = store.runs(Some(wanted).filter(|task| !task.is_empty()));
    let own =
        session.and_then(|session| runs.iter().position(|run| run.session == session.as_str()));
    let newest = own.filter(|_| wanted.is_empty()).unwrap_or(0);
    if newest >= runs.len() {
        let cause = if wanted.is_empty() {
            "no run of a task waits to be resumed".to_owned()
        } else {
            format!("there is no run of `{}` to resume", wanted.escape_debug())
        };
        return Err(HostError { remedy: history(), ..HostError::usage(cause) });
    }
    let run = runs.swap_remove(newest);
    if run.state == TaskRunState::Done {
        let cause =
            format!("the last run (`{}`) is done, so there is nothing to resume", run_title(&run));
        let remedy =
            Some("`gnoma task resume NAME` resumes the last run of another task".to_owned());
        return Err(HostError { remedy, ..HostError::usage(cause) });
    }
    Ok(run)
}
