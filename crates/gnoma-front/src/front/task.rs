//! A run of a task without a screen: its turns are shown as one turn is, and its report ends the output.

use anyhow::Result;
use gnoma_core::{
    json_value::json,
    protocol::{Reply, Request, RequestId, TaskReport, TaskRequest, TaskRunState},
    session::Outcome,
};
use gnoma_host::HostError;
use serde_json::Value;

use super::{
    Front, Step, exit_after_turn, session_crashed_error,
    wakeup::{Wakeup, WakeupSources},
};
use crate::{
    ask::Asker,
    attached_session::{AttachedMessage, AttachedSession},
    json::redact_value,
    output::OutputClosed,
    output_format::OutputFormat,
    report::Exit,
    view::SilentView,
};

/// The end of a run, for the exit code.
#[derive(Default)]
struct RunEnd {
    report: Option<TaskReport>,
    /// Of its last turn.
    outcome: Option<Outcome>,
    stopped_by: Option<i32>,
}

impl Front {
    /// Runs a task to its end, and the session with it.
    ///
    /// # Errors
    /// The task cannot run, the session broke down, or what it said cannot be written.
    pub async fn run_task(
        mut self,
        mut session: AttachedSession,
        request: TaskRequest,
        asker: Option<Asker>,
        format: OutputFormat,
    ) -> Result<Exit> {
        if format == OutputFormat::Json {
            // The report at the end is the one object.
            self.view = Box::new(SilentView);
        }
        let asked = session.request_with_reply(Request::Task(request)).map_err(HostError::from)?;
        let ran = self.follow_task(&mut session, asked, asker).await;
        let id = session.id().to_string();
        if let (Ok(Ok(RunEnd { report: Some(report), .. })), true) =
            (&ran, format != OutputFormat::Text)
        {
            let line = report_json(report, &id);
            let line = redact_value(&line, &self.firewall);
            self.out.push_text(&format!("{line}\n")).and_then(|()| self.out.flush()).ok();
            self.out.wait_until_written().await.ok();
        }
        let ended = match ran {
            Ok(Ok(end)) => Ok(self.task_exit(&end)),
            Ok(Err(OutputClosed(error))) => self.exit_after_write_error(OutputClosed(error), None),
            Err(error) => Err(error),
        };
        self.close_session(session).await;
        ended
    }

    async fn follow_task(
        &mut self,
        session: &mut AttachedSession,
        asked: RequestId,
        asker: Option<Asker>,
    ) -> Result<Result<RunEnd, OutputClosed>> {
        let sources = WakeupSources::new(self.ignores_hangup, asker)?;
        let mut sources = WakeupSources { wants_replies: true, ..sources };
        let mut end = RunEnd::default();
        loop {
            match self.next_wakeup(&mut sources, session, true).await {
                Wakeup::Signal(signal) => {
                    if end.stopped_by.replace(signal).is_some() {
                        return Ok(Ok(end));
                    }
                    session.send_request(Request::Cancel);
                }
                Wakeup::Other(Err(gone)) => return Ok(Err(gone)),
                Wakeup::Message(None) => {
                    return Err(session.take_refusal().unwrap_or_else(session_crashed_error));
                }
                Wakeup::Message(Some(AttachedMessage::Event(event))) => {
                    match self.show_events(*event, session, &mut sources.asker) {
                        Ok(Step::Going) => (),
                        Ok(Step::Broken) => return Err(session_crashed_error()),
                        Ok(Step::Over(outcome)) => end.outcome = outcome,
                        Err(gone) => return Ok(Err(gone)),
                    }
                }
                Wakeup::Message(Some(AttachedMessage::Reply(id, result))) if id == asked => {
                    if let Err(gone) = self.show_rest(session, &mut sources.asker, &mut end) {
                        return Ok(Err(gone));
                    }
                    match result.map_err(HostError::from)? {
                        Reply::Task(report) => end.report = Some(*report),
                        _ => return Err(session_crashed_error()),
                    }
                    return Ok(self.out.wait_until_written().await.map(|()| end));
                }
                Wakeup::Other(Ok(())) | Wakeup::Message(Some(AttachedMessage::Reply(..))) => (),
            }
        }
    }

    /// Shows what happened before the reply that ends the run.
    fn show_rest(
        &mut self,
        session: &mut AttachedSession,
        asker: &mut Option<Asker>,
        end: &mut RunEnd,
    ) -> Result<(), OutputClosed> {
        while let Some(event) = session.next_ready_event() {
            if let Step::Over(outcome) = self.show_events(event, session, asker)? {
                end.outcome = outcome;
            }
        }
        Ok(())
    }

    fn task_exit(&self, end: &RunEnd) -> Exit {
        if let Some(signal) = end.stopped_by {
            return Exit::Signalled(signal);
        }
        match end.report.as_ref().map(|report| report.state) {
            Some(TaskRunState::Done) => Exit::Done,
            Some(TaskRunState::Stopped | TaskRunState::Running) | None => Exit::Interrupted,
            Some(TaskRunState::Failed) => {
                // A step that did not end well can have a turn that did.
                let outcome = end.outcome.as_ref();
                match exit_after_turn(outcome, self.has_result, &self.unasked, None) {
                    Exit::Done | Exit::Interrupted => Exit::Failed,
                    exit => exit,
                }
            }
        }
    }
}

/// The report as the object at the end.
fn report_json(report: &TaskReport, session: &str) -> Value {
    let is_error = report.state != TaskRunState::Done;
    let mut value = serde_json::to_value(report).unwrap_or_default();
    value["type"] = json!("task_result");
    value["is_error"] = json!(is_error);
    value["session_id"] = json!(session);
    value
}
