//! Runs a task in a session: one turn after the other, with the record of the run written before and after each.
//!
//! The runner is a task beside the session's loop. It sends orders to the loop ([`super::task_link`]) and hears how each
//! step ended.

use std::sync::Arc;

use gnoma_core::{
    protocol::{RequestError, RequestErrorKind, TaskReport, TaskRequest},
    session::StepTurn,
    store::SessionId,
};
use gnoma_extend::tasks::{PlannedAction, StepResult};
use tokio::task::spawn_blocking;

use super::{
    ports::Services,
    replier::Replier,
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
    while let Some(at) = run.record.next_step() {
        let Some((announcement, order)) = step_order(&run, at) else { break };
        let begins = match &order {
            TaskOrder::Turn(_) => {
                port.send_order(TaskOrder::Reserve).await?;
                matches!(port.next_signal().await?, TaskSignal::Ready)
            }
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
            TaskSignal::Ended(result) => run.end_step(at, result, now_ms()),
            TaskSignal::NotBegun | TaskSignal::Ready | TaskSignal::Refused(_) => {
                run.record.stop(at, now_ms());
            }
        }
        run = save_record(run).await?;
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
    Ok(run)
}

/// Returns the announcement of a step, and the order that runs it.
fn step_order(run: &PreparedRun, at: usize) -> Option<(String, TaskOrder)> {
    let (step, action) = (run.step(at)?, run.action(at)?);
    let (task, title) = (&run.record.task, &step.title);
    let announcement = format!("Task {task}, step {} of {}: {title}", at + 1, run.step_count());
    let (failed_models, name) = (run.failed_models(at), format!("{task}/{title}"));
    let order = match action {
        PlannedAction::Prompt(text) => {
            let (announcement, model) = (announcement.clone(), step.model.clone());
            let (command, timeout_s) = (None, 0);
            TaskOrder::Turn(StepTurn {
                text,
                command,
                model,
                timeout_s,
                announcement,
                failed_models,
                name,
            })
        }
        PlannedAction::Command(command) => TaskOrder::Turn(StepTurn {
            text: format!("I ran the step “{title}” of the task {task}:"),
            command: Some(command),
            model: None,
            timeout_s: step.timeout_s,
            announcement: announcement.clone(),
            failed_models,
            name,
        }),
        PlannedAction::Question { text, choices } => TaskOrder::Ask { question: text, choices },
    };
    Some((announcement, order))
}

/// Writes the record away from the loops of sessions.
async fn save_record(run: PreparedRun) -> Result<PreparedRun, RequestError> {
    let written = spawn_blocking(move || run.save().map(|()| run)).await;
    let crashed = |_| HostError::failure("recording the run crashed; this is a bug in gnoma");
    Ok(written.map_err(crashed)??)
}
