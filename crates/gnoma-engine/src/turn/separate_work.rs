//! Work that is a turn of its own and that no model answers: a command, the project's checks, and steps of a task that
//! run side by side. Each of these steps has a message of its own in the history, in their order.

use gnoma_core::{Message, StopReason, session::Outcome};

use super::{Phase, Turn, batch::Batch, protocol::SeparateWork};

impl Turn {
    /// Begins the work if no turn runs; otherwise tells people that a step was not run.
    pub(super) fn run_separately(&mut self, phase: Phase, work: SeparateWork) -> Phase {
        let is_free = matches!(phase, Phase::Idle) && !self.is_closing;
        match work {
            SeparateWork::Checks(checks) if is_free => self.run_checks_alone(checks),
            SeparateWork::Checks(_) => phase,
            SeparateWork::Command(_) | SeparateWork::SideSteps(_) if !is_free => {
                self.cx.warn("a turn is running; the step was not run");
                phase
            }
            SeparateWork::Command(command) => {
                self.begin_turn();
                self.run_command(command)
            }
            SeparateWork::SideSteps(steps) => {
                self.begin_turn();
                let batch = Batch::of_steps(steps, &self.specs);
                self.advance_batch(batch)
            }
        }
    }

    /// Ends the turn once every step has its result.
    pub(super) fn advance_side_steps(&mut self, mut batch: Batch) -> Phase {
        self.append_step_results(&mut batch);
        if !batch.is_over() {
            return Phase::Tools(batch);
        }
        self.finish(Outcome::Complete { stop: StopReason::EndTurn })
    }

    /// Adds the results of steps that have ended to the history.
    pub(super) fn append_step_results(&mut self, batch: &mut Batch) {
        for text in batch.take_step_results() {
            self.cx.append(Message::user_text(text));
        }
    }
}
