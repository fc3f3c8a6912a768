//! Stopping what runs, and the end of a turn.

use std::{mem, sync::Arc};

use gnoma_core::{
    Event, Message, ToolOutcome,
    session::{NoticeLevel, Outcome, SessionState},
};

use super::{
    Effects, Turn,
    batch::{Batch, OpenQuestion, describe_step_output},
    calls::emit_decision,
    phase::{Cause, Phase},
    project_checks::ProjectCheckRun,
    protocol::{Effect, Timer},
};

impl Turn {
    pub(super) fn cancel(&mut self, busy: Phase, fx: &mut Effects) -> Phase {
        if matches!(busy, Phase::Idle | Phase::Stopping(_)) {
            return busy;
        }
        self.enter_state(SessionState::Cancelling, fx);
        match busy {
            Phase::Idle | Phase::Stopping(_) => return busy,
            Phase::Tools(batch) | Phase::Proving(_, ProjectCheckRun { batch, .. }) => {
                return self.stop_calls(batch, fx);
            }
            Phase::Preparing(preparing) => {
                let (batch, said) = preparing.given_up();
                // What did not reach the model comes back.
                self.queued.splice(0..0, said);
                if let Some(batch) = batch {
                    return self.stop_calls(batch, fx);
                }
                fx.push(Effect::StopWaiting);
            }
            Phase::Compacting { cause: Cause::Asked, .. } => {
                fx.push(Effect::StopWaiting);
                return self.stop_compacting(fx);
            }
            Phase::Calling { answer, .. } => {
                fx.push(Effect::DropStream);
                self.append_answer(answer, fx);
            }
            Phase::FailingOver { answer, .. } => {
                fx.push(Effect::StopWaiting);
                answer.and_then(|answer| self.append_answer(answer, fx));
            }
            Phase::Backoff { .. } => fx.push(Effect::SetTimer(None)),
            Phase::Routing
            | Phase::Reserving { .. }
            | Phase::Compacting { .. }
            | Phase::Conferring
            | Phase::AskingStop(_)
            | Phase::Checking(_) => fx.push(Effect::StopWaiting),
        }
        self.finish(Outcome::Cancelled, fx)
    }

    fn stop_calls(&mut self, mut batch: Batch, fx: &mut Effects) -> Phase {
        fx.push(Effect::StopTools);
        fx.push(Effect::SetTimer(Some((Timer::Grace, self.limits.grace))));
        for call in batch.not_running() {
            if batch.is_check && batch.open_question(&call.id) == Some(OpenQuestion::Run) {
                emit_decision(&call.id, false, "the turn was stopped".to_owned(), fx);
            }
            let (outcome, duration_ms) = batch.given_up(&call.id);
            self.record_outcome(&mut batch, &call.id, outcome, duration_ms, fx);
        }
        self.finish_when_stopped(batch, fx)
    }

    /// The calls that still run have had their time.
    pub(super) fn abort_tools(&mut self, mut batch: Batch, fx: &mut Effects) -> Phase {
        fx.push(Effect::AbortTools);
        for call in batch.unfinished_calls() {
            let outcome = ToolOutcome::Interrupted(String::new());
            self.record_outcome(&mut batch, &call.id, outcome, 0, fx);
        }
        self.finish_when_stopped(batch, fx)
    }

    pub(super) fn finish_when_stopped(&mut self, batch: Batch, fx: &mut Effects) -> Phase {
        if !batch.is_over() {
            return Phase::Stopping(batch);
        }
        fx.push(Effect::SetTimer(None));
        self.append_results(batch, fx);
        self.finish(Outcome::Cancelled, fx)
    }

    pub(super) fn append_results(&mut self, mut batch: Batch, fx: &mut Effects) {
        if let Some(head) = batch.stopped_step.take() {
            // Later steps and the model must see a command that may have had effects.
            let output = describe_step_output(&batch.into_results());
            self.append_message(Message::user_text(format!("{head}{output}\n```")), fx);
            return;
        }
        self.append_step_results(&mut batch, fx);
        if batch.is_check {
            return;
        }
        self.added.kept_going = 0;
        if let Ok(message) = Message::results(batch.into_results()) {
            self.append_message(message, fx);
        }
    }

    pub(super) fn finish(&mut self, outcome: Outcome, fx: &mut Effects) -> Phase {
        let undelivered = mem::take(&mut self.queued).into_iter().map(Arc::new).collect();
        let (rounds, usage) = (self.rounds, self.usage);
        let (outcome, answer) = self.in_its_shape(outcome);
        if matches!(outcome, Outcome::Complete { .. })
            && let Some(command) = self.watch.take_red_check()
        {
            let (level, text) =
                (NoticeLevel::Warning, format!("the last run of `{command}` failed"));
            fx.push(Effect::Emit(Event::Notice { level, text }));
        }
        fx.push(Effect::Emit(Event::TurnEnded { outcome, rounds, usage, undelivered, answer }));
        self.enter_state(SessionState::Idle, fx);
        Phase::Idle
    }
}
