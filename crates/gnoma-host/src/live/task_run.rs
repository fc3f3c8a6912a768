//! Runs a task in a session: one turn after the other, with the record of the run written before and after each.
//!
//! The runner is a task beside the session's loop. It sends orders to the loop ([`super::task_link`]) and hears how each
//! step ended.

use std::sync::Arc;

use gnoma_core::{
    protocol::{RequestError, RequestErrorKind, TaskReport, TaskRequest},
    session::{SideStep, SideWork, StepTurn},
    store::SessionId,
};
use gnoma_extend::tasks::{PlannedAction, StepResult};
use tokio::task::spawn_blocking;

use super::{
    ports::Services,
    replier::Replier,
    side_fold::new_step_call,
    task_link::{TaskOrder, TaskPort, TaskSignal},
};
use crate::{
    HostError,
    tasks::{PreparedRun, SessionTaskFiles},
};

/// Runs a task, or continues a run, and answers the request once it has ended.
pub(super) async fn run_task(
    services: Arc<dyn Services>,
    wanted: (SessionId, TaskRequest),
    mut port: TaskPort,
    replier: Replier,
    now_ms: impl Fn() -> i64,
) {
    // The session's loop answers, so that its clients hear of the end before the reply.
    let ended = drive_run(services, wanted, &mut port, now_ms).await;
    port.send_report(ended.map(Box::new), replier).await;
}

async fn drive_run(
    services: Arc<dyn Services>,
    (session, request): (SessionId, TaskRequest),
    port: &mut TaskPort,
    now_ms: impl Fn() -> i64,
) -> Result<TaskReport, RequestError> {
    let run = task_files(&services)?.prepare_run(session, request).await?;
    let (modes, models) = (run.modes().to_vec(), run.models());
    port.send_order(TaskOrder::Open { modes, models }).await?;
    if let TaskSignal::Refused(error) = port.next_signal().await? {
        return Err(error);
    }
    if let Some(opening) = run.opening.clone() {
        port.send_order(TaskOrder::Tell(opening)).await?;
    }
    let ended = run_steps(run, port, now_ms).await;
    port.send_order(TaskOrder::Unrestrict).await?;
    Ok(ended?.report())
}

pub(super) fn task_files(services: &Arc<dyn Services>) -> Result<SessionTaskFiles, RequestError> {
    let missing = || RequestError::new(RequestErrorKind::Invalid, "there are no tasks here");
    services.task_files().ok_or_else(missing)
}

async fn run_steps(
    mut run: PreparedRun,
    port: &mut TaskPort,
    now_ms: impl Fn() -> i64,
) -> Result<PreparedRun, RequestError> {
    run = save_record(run).await?;
    loop {
        run = match run.next_steps().as_slice() {
            [] => return Ok(run),
            [at] => run_step(run, *at, port, &now_ms).await?,
            steps => run_side_steps(run, steps, port, &now_ms).await?,
        };
        // The failure is recorded before the question, so that it stays if nobody answers.
        if let Some((question, choices)) = run.failure_question() {
            port.send_order(TaskOrder::AskAfterFailure { question, choices }).await?;
            if let TaskSignal::Ended(StepResult { answer: Some(answer), .. }) =
                port.next_signal().await?
            {
                run.apply_failure_answer(&answer, now_ms());
            }
            run = save_record(run).await?;
        }
    }
}

/// Runs one step as a turn of its own, or asks its question.
async fn run_step(
    mut run: PreparedRun,
    at: usize,
    port: &mut TaskPort,
    now_ms: &impl Fn() -> i64,
) -> Result<PreparedRun, RequestError> {
    let Some((announcement, order)) = step_order(&run, at) else { return Ok(run) };
    let begins = match &order {
        TaskOrder::Turn(_) => reserve_turn(port).await?,
        _ => {
            port.send_order(TaskOrder::Tell(announcement)).await?;
            true
        }
    };
    let signal = if begins {
        run.begin_step(at, now_ms());
        // What is not recorded as begun does not begin.
        run = save_record(run).await?;
        port.send_order(order).await?;
        port.next_signal().await?
    } else {
        TaskSignal::NotBegun
    };
    match signal {
        TaskSignal::Ended(result) => end_step(run, (at, result), port, now_ms).await,
        TaskSignal::NotBegun
        | TaskSignal::Ready
        | TaskSignal::Refused(_)
        | TaskSignal::SideEnded(..) => {
            run.record.stop(at, now_ms());
            save_record(run).await
        }
    }
}

/// Runs steps side by side in one turn, and records the end of each as soon as its result is in the conversation.
async fn run_side_steps(
    mut run: PreparedRun,
    steps: &[usize],
    port: &mut TaskPort,
    now_ms: &impl Fn() -> i64,
) -> Result<PreparedRun, RequestError> {
    let mut open: Vec<usize> = steps.to_vec();
    if reserve_turn(port).await? {
        // One moment for all, by which their record tells that they ran side by side.
        let begun_ms = now_ms();
        steps.iter().for_each(|at| run.begin_step(*at, begun_ms));
        run = save_record(run).await?;
        port.send_order(TaskOrder::Turn(side_turn(&run, steps))).await?;
        loop {
            // An end of the turn itself: it could not begin.
            let (place, result, is_last) = match port.next_signal().await? {
                TaskSignal::SideEnded(place, result) => (place, result, false),
                TaskSignal::Ended(result) => (0, result, true),
                TaskSignal::NotBegun | TaskSignal::Ready | TaskSignal::Refused(_) => break,
            };
            if let Some(at) = steps.get(place) {
                open.retain(|left| left != at);
                run = end_step(run, (*at, result), port, now_ms).await?;
            }
            if is_last {
                break;
            }
        }
    }
    open.iter().for_each(|at| run.record.stop(*at, now_ms()));
    save_record(run).await
}

/// Waits until the session is free for a step. Returns `false` if the person stopped the run before.
async fn reserve_turn(port: &mut TaskPort) -> Result<bool, RequestError> {
    port.send_order(TaskOrder::Reserve).await?;
    Ok(matches!(port.next_signal().await?, TaskSignal::Ready))
}

/// Records the end of a step and tells people of it.
async fn end_step(
    mut run: PreparedRun,
    (at, result): (usize, StepResult),
    port: &TaskPort,
    now_ms: &impl Fn() -> i64,
) -> Result<PreparedRun, RequestError> {
    run.end_step(at, result, now_ms());
    run = save_record(run).await?;
    if let Some(told) = run.describe_step_end(at) {
        port.send_order(TaskOrder::Tell(told)).await?;
    }
    Ok(run)
}

/// Returns the announcement of a step, and the order that runs it.
fn step_order(run: &PreparedRun, at: usize) -> Option<(String, TaskOrder)> {
    let (step, action) = (run.step(at)?, run.action(at)?);
    let (task, title) = (&run.record.task, &step.title);
    let announcement = format!("Task {task}, step {} of {}: {title}", at + 1, run.step_count());
    let turn = StepTurn {
        announcement: announcement.clone(),
        failed_models: run.failed_models(at),
        name: format!("{task}/{title}"),
        ..StepTurn::default()
    };
    let order = match action {
        PlannedAction::Prompt(text) => {
            let (model, role) = (step.model.clone(), step.role.clone());
            TaskOrder::Turn(StepTurn { text, model, role, ..turn })
        }
        PlannedAction::Command(command) => {
            let (text, command) = (describe_ran(task, title), Some(command));
            TaskOrder::Turn(StepTurn { text, command, timeout_s: step.timeout_s, ..turn })
        }
        PlannedAction::Question { text, choices } => TaskOrder::Ask { question: text, choices },
    };
    Some((announcement, order))
}

/// The line above the output of a command in the conversation.
fn describe_ran(task: &str, title: &str) -> String {
    format!("I ran the step “{title}” of the task {task}:")
}

/// Returns the turn in which steps run side by side. Questions are never among them.
fn side_turn(run: &PreparedRun, steps: &[usize]) -> StepTurn {
    let task = &run.record.task;
    let side_step = |at: &usize| {
        let (step, action) = (run.step(*at)?, run.action(*at)?);
        let (call, title) = (new_step_call(), step.title.clone());
        let (text, work) = match action {
            PlannedAction::Command(command) => {
                let timeout_s = step.timeout_s;
                (describe_ran(task, &title), SideWork::Command { command, timeout_s })
            }
            PlannedAction::Prompt(text) | PlannedAction::Question { text, .. } => {
                let (model, role) = (step.model.clone(), step.role.clone());
                let line = format!("An elf did the step “{title}” of the task {task} for me:");
                (line, SideWork::Prompt { text, model, role })
            }
        };
        Some(SideStep { call, text, title, work })
    };
    let side_steps: Vec<SideStep> = steps.iter().filter_map(side_step).collect();
    let numbers: Vec<String> = steps.iter().map(|at| (at + 1).to_string()).collect();
    let titles: Vec<&str> = side_steps.iter().map(|step| step.title.as_str()).collect();
    let announcement = format!(
        "Task {task}, steps {} of {} side by side: {}",
        numbers.join(", "),
        run.step_count(),
        titles.join(" · ")
    );
    StepTurn { announcement, side_steps, name: task.clone(), ..StepTurn::default() }
}

/// Writes the record away from the loops of sessions.
async fn save_record(run: PreparedRun) -> Result<PreparedRun, RequestError> {
    let written = spawn_blocking(move || run.save().map(|()| run)).await;
    let crashed = |_| HostError::failure("recording the run crashed; this is a bug in gnoma");
    Ok(written.map_err(crashed)??)
}
