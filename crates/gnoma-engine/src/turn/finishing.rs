//! The end of a turn: hooks may keep the model going, then the work is delivered, or checked first. Approaches are
//! compared, the project's checks run, a reviewer reads the work; if a check fails, the turn continues.

use std::mem;

use gnoma_core::{
    StopReason, ToolCall, ToolOutcome, Usage,
    lifecycle::PointAnswer,
    session::{Outcome, SessionState},
};

use super::{
    Finish, Phase, Turn,
    project_checks::ProjectCheckRun,
    protocol::{Checks, FinishInput, WorkCheckOutcome},
    watch::TurnDetectors,
};
use crate::{
    call::Delivery,
    effect::Effect,
    routing::verify::{self, CheckEvidence, Finding},
};

/// The number of times in a row, without a call in between, that a model which wants to stop is asked to continue.
const MAX_KEPT_GOING: u32 = 8;

impl Turn {
    /// Handles a fact for a turn whose model is done.
    pub(super) fn step_finish(&mut self, phase: Phase, input: FinishInput) -> Phase {
        let Phase::Finishing(finish) = phase else { return phase };
        match (finish, input) {
            (Finish::Comparing, FinishInput::Conferred { note }) => {
                // What follows is work like any other.
                self.delivery = Delivery::Direct;
                self.go_on(note)
            }
            (Finish::AskingHooks(outcome), FinishInput::MayStop(answer)) => {
                self.on_before_stop(outcome, *answer)
            }
            (Finish::Verifying(outcome), FinishInput::Checked(WorkCheckOutcome::Deliver)) => {
                self.hand_over(outcome)
            }
            (Finish::Verifying(_), FinishInput::Checked(WorkCheckOutcome::Again { note })) => {
                self.go_on(note)
            }
            (Finish::Verifying(outcome), FinishInput::Found(finding)) => {
                self.conclude_check(outcome, finding)
            }
            (Finish::Verifying(outcome), FinishInput::Prove(checks)) => {
                match self.begin_checks(checks) {
                    Some((run, call)) => self.run_check(outcome, run, call),
                    None => self.start_review(outcome),
                }
            }
            // Too late: it was not waited for any more.
            (same, _late) => Phase::Finishing(same),
        }
    }

    /// The model is done; an extension may want it to continue.
    pub(super) fn may_end(&mut self, stop: StopReason, last_words: String) -> Phase {
        let outcome = Outcome::Complete { stop };
        if !self.added.stops.end || !matches!(stop, StopReason::EndTurn | StopReason::StopSequence)
        {
            return self.deliver_or_check(outcome);
        }
        self.cx.push(Effect::BeforeStop { is_again: self.added.is_kept_going, last_words });
        Phase::Finishing(Finish::AskingHooks(outcome))
    }

    /// Decides by the answer of the extensions whether the turn may end.
    fn on_before_stop(&mut self, outcome: Outcome, answer: PointAnswer) -> Phase {
        for text in answer.notices {
            self.cx.warn(text);
        }
        let mut notes: Vec<String> = answer.block.into_iter().chain(answer.context).collect();
        if answer.stop.is_some() {
            notes.clear();
        }
        if !notes.is_empty() && self.added.kept_going == MAX_KEPT_GOING {
            notes.clear();
            let text = format!(
                "a hook has kept the model going {MAX_KEPT_GOING} times without progress; the turn ends"
            );
            self.cx.warn(text);
        }
        if !notes.is_empty() {
            self.added.is_kept_going = true;
            self.added.kept_going += 1;
            self.notes.append(&mut notes);
            return self.call_model();
        }
        if self.queued.is_empty() { self.deliver_or_check(outcome) } else { self.call_model() }
    }

    /// The turn would end like this, unless its work is looked at and does not hold.
    pub(super) fn deliver_or_check(&mut self, outcome: Outcome) -> Phase {
        match (self.delivery, &outcome) {
            (Delivery::Direct, _) => self.finish(outcome),
            (Delivery::Conferred, Outcome::Complete { .. }) => {
                self.cx.push(Effect::Confer);
                Phase::Finishing(Finish::Comparing)
            }
            (Delivery::Conferred, _) => self.hand_over(outcome),
            (Delivery::Checked, _) => {
                self.cx.push(Effect::Check(outcome.clone()));
                Phase::Finishing(Finish::Verifying(outcome))
            }
        }
    }

    fn hand_over(&mut self, outcome: Outcome) -> Phase {
        if self.queued.is_empty() {
            return self.finish(outcome);
        }
        if self.rounds == 0 {
            // No arm was chosen yet.
            (self.rounds, self.most_rounds) = (1, self.cx.limits.rounds);
            let said = mem::take(&mut self.queued);
            return self.prepare_messages(Vec::new(), said.into(), true);
        }
        // Somebody has spoken meanwhile: the turn continues with that.
        self.most_rounds = self.rounds.saturating_add(self.cx.limits.rounds);
        self.call_model()
    }

    fn go_on(&mut self, note: String) -> Phase {
        self.watch = TurnDetectors::default();
        if let Some(form) = &mut self.cx.answer_form {
            form.begin_attempt();
        }
        self.stuck = None;
        self.notes.push(note);
        self.call_model()
    }

    /// Draws the conclusion of what a look at the work found.
    fn conclude_check(&mut self, outcome: Outcome, finding: Finding) -> Phase {
        self.cx.push(Effect::Conclude { finding, may_continue: self.has_rounds() });
        Phase::Finishing(Finish::Verifying(outcome))
    }

    /// Runs the project's checks between turns, as a turn that calls no model unless a message arrives.
    pub(super) fn run_checks_alone(&mut self, checks: Checks) -> Phase {
        self.turns += 1;
        (self.rounds, self.most_rounds, self.checks) = (0, 0, 0);
        self.delivery = Delivery::Direct;
        self.cx.usage = Usage::default();
        self.watch = TurnDetectors::default();
        self.enter_state(SessionState::Active);
        let outcome = Outcome::Complete { stop: StopReason::EndTurn };
        match self.begin_checks(checks) {
            Some((run, call)) => self.run_check(outcome, run, call),
            None => {
                let nothing = Finding::without_check("there is nothing to check it with");
                self.conclude_check(outcome, nothing)
            }
        }
    }

    /// Begins with the first command that proves the project right.
    fn begin_checks(&mut self, checks: Checks) -> Option<(ProjectCheckRun, ToolCall)> {
        ProjectCheckRun::new(checks, &self.name_of_proof())
    }

    /// A check has ended: the next one, or what was found.
    pub(super) fn on_check_outcome(
        &mut self,
        outcome: Outcome,
        proof: ProjectCheckRun,
        ended: ToolOutcome,
    ) -> Phase {
        match verify::interpret_check(proof.command(), ended) {
            CheckEvidence::Nothing(why) if proof.checks.else_review => {
                self.cx.warn(why);
                self.start_review(outcome)
            }
            CheckEvidence::Nothing(why) => {
                self.conclude_check(outcome, Finding::without_check(&why))
            }
            CheckEvidence::Wrong(finding) => self.conclude_check(outcome, finding),
            CheckEvidence::Right => {
                self.watch.check_passed(proof.command());
                match proof.next(&self.name_of_proof()) {
                    Ok((proof, call)) => self.run_check(outcome, proof, call),
                    Err(commands) => {
                        self.conclude_check(outcome, Finding::from_passed_checks(&commands))
                    }
                }
            }
        }
    }

    fn name_of_proof(&mut self) -> String {
        self.checks += 1;
        format!("{}-{}", self.turns, self.checks)
    }

    fn run_check(&mut self, outcome: Outcome, run: ProjectCheckRun, call: ToolCall) -> Phase {
        self.cx.push(Effect::Judge(call));
        Phase::Finishing(Finish::RunningChecks(outcome, Box::new(run)))
    }

    fn start_review(&mut self, outcome: Outcome) -> Phase {
        self.cx.push(Effect::Review);
        Phase::Finishing(Finish::Verifying(outcome))
    }
}
