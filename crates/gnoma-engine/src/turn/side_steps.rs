//! Steps of a task that run side by side: one turn whose calls are the steps. Each has a message of its own in the
//! history, in the order of the steps; no model answers.

use gnoma_core::{
    Event, Message, StopReason,
    session::{NoticeLevel, Outcome},
};

use super::{
    Effects, Turn,
    batch::Batch,
    phase::Phase,
    protocol::{Effect, SideCall},
};

impl Turn {
    /// Begins the turn of a step. Tells people and returns `false` if another turn runs.
    pub(super) fn may_begin_step(&mut self, phase: &Phase, fx: &mut Effects) -> bool {
        let is_free = matches!(phase, Phase::Idle) && !self.is_closing;
        if is_free {
            self.begin_turn(fx);
        } else {
            let (level, text) = (NoticeLevel::Warning, "a turn is running; the step was not run");
            fx.push(Effect::Emit(Event::Notice { level, text: text.to_owned() }));
        }
        is_free
    }

    /// Runs steps side by side as a turn of their own.
    pub(super) fn run_side_steps(
        &mut self,
        phase: Phase,
        steps: Vec<SideCall>,
        fx: &mut Effects,
    ) -> Phase {
        if !self.may_begin_step(&phase, fx) {
            return phase;
        }
        let batch = Batch::of_steps(steps, &self.specs);
        self.advance_batch(batch, fx)
    }

    /// Ends the turn once every step has its result.
    pub(super) fn advance_side_steps(&mut self, mut batch: Batch, fx: &mut Effects) -> Phase {
        self.append_step_results(&mut batch, fx);
        if !batch.is_over() {
            return Phase::Tools(batch);
        }
        self.finish(Outcome::Complete { stop: StopReason::EndTurn }, fx)
    }

    /// Adds the results of steps that have ended to the history.
    pub(super) fn append_step_results(&mut self, batch: &mut Batch, fx: &mut Effects) {
        for text in batch.take_step_results() {
            self.append_message(Message::user_text(text), fx);
        }
    }
}
