//! Stopping what runs, and the end of a turn.

use std::{mem, sync::Arc};

use gnoma_core::{
    Event, Message, ToolOutcome,
    session::{Outcome, SessionState},
};

use super::{
    Finish, Phase, Turn,
    batch::{Batch, OpenQuestion, describe_step_output},
};
use crate::effect::{Effect, Timer};

impl Turn {
    pub(super) fn cancel(&mut self, busy: Phase) -> Phase {
        if matches!(busy, Phase::Idle | Phase::Stopping(_)) {
            return busy;
        }
        self.enter_state(SessionState::Cancelling);
        match busy {
            Phase::Idle | Phase::Stopping(_) => return busy,
            Phase::Tools(batch) => return self.stop_calls(batch),
            Phase::Finishing(Finish::RunningChecks(_, run)) => return self.stop_calls(run.batch),
            Phase::Preparing(preparing) => {
                let (batch, said) = preparing.given_up();
                // What did not reach the model comes back.
                self.queued.splice(0..0, said);
                if let Some(batch) = batch {
                    return self.stop_calls(batch);
                }
                self.cx.push(Effect::StopWaiting);
            }
            Phase::Compacting(_) => {
                self.cx.push(Effect::StopWaiting);
                self.cx.inform("stopped; the conversation is unchanged");
                return self.become_idle();
            }
            Phase::Calling(mut call) => {
                let partial = call.cancel(&mut self.cx);
                self.note_call(&call);
                partial.and_then(|partial| self.append_answer(partial));
            }
            Phase::Finishing(_) => self.cx.push(Effect::StopWaiting),
        }
        self.finish(Outcome::Cancelled)
    }

    fn stop_calls(&mut self, mut batch: Batch) -> Phase {
        self.cx.push(Effect::StopTools);
        self.cx.push(Effect::SetTimer(Some((Timer::Grace, self.cx.limits.grace))));
        for call in batch.not_running() {
            if batch.is_check && batch.open_question(&call.id) == Some(OpenQuestion::Run) {
                self.emit_decision(&call.id, false, "the turn was stopped".to_owned());
            }
            let (outcome, duration_ms) = batch.given_up(&call.id);
            self.record_outcome(&mut batch, &call.id, outcome, duration_ms);
        }
        self.finish_when_stopped(batch)
    }

    /// The calls that still run have had their time.
    pub(super) fn abort_tools(&mut self, mut batch: Batch) -> Phase {
        self.cx.push(Effect::AbortTools);
        for call in batch.unfinished_calls() {
            let outcome = ToolOutcome::Interrupted(String::new());
            self.record_outcome(&mut batch, &call.id, outcome, 0);
        }
        self.finish_when_stopped(batch)
    }

    pub(super) fn finish_when_stopped(&mut self, batch: Batch) -> Phase {
        if !batch.is_over() {
            return Phase::Stopping(batch);
        }
        self.cx.push(Effect::SetTimer(None));
        self.append_results(batch);
        self.finish(Outcome::Cancelled)
    }

    pub(super) fn append_results(&mut self, mut batch: Batch) {
        if let Some(head) = batch.stopped_step.take() {
            // Later steps and the model must see a command that may have had effects.
            let output = describe_step_output(&batch.into_results());
            self.cx.append(Message::user_text(format!("{head}{output}\n```")));
            return;
        }
        self.append_step_results(&mut batch);
        if batch.is_check {
            return;
        }
        self.added.kept_going = 0;
        if let Ok(message) = Message::results(batch.into_results()) {
            self.cx.append(message);
        }
    }

    pub(super) fn finish(&mut self, outcome: Outcome) -> Phase {
        let undelivered = mem::take(&mut self.queued).into_iter().map(Arc::new).collect();
        let (rounds, usage) = (self.rounds, self.cx.usage);
        let (outcome, answer) = self.in_its_shape(outcome);
        if matches!(outcome, Outcome::Complete { .. })
            && let Some(command) = self.watch.take_red_check()
        {
            self.cx.warn(format!("the last run of `{command}` failed"));
        }
        self.cx.emit(Event::TurnEnded { outcome, rounds, usage, undelivered, answer });
        self.enter_state(SessionState::Idle);
        Phase::Idle
    }
}
