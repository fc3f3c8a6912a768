//! The end of a turn: the work is delivered, or checked first. Approaches are compared, the project's checks run, a
//! reviewer reads the work; if a check fails, the turn continues.

use std::mem;

use gnoma_core::{
    Event, StopReason, ToolOutcome, Usage,
    session::{NoticeLevel, Outcome, SessionState},
};

use super::{
    Effects, Turn,
    phase::Phase,
    project_checks::ProjectCheckRun,
    protocol::{Checks, Delivery, Effect, WorkCheckOutcome},
    watch::TurnDetectors,
};
use crate::routing::verify::{self, CheckEvidence, Finding};

impl Turn {
    /// The turn would end like this, unless its work is looked at and does not hold.
    pub(super) fn deliver_or_check(&mut self, outcome: Outcome, fx: &mut Effects) -> Phase {
        match (self.delivery, &outcome) {
            (Delivery::Direct, _) => self.finish(outcome, fx),
            (Delivery::Conferred, Outcome::Complete { .. }) => {
                fx.push(Effect::Confer);
                Phase::Conferring
            }
            (Delivery::Conferred, _) => self.hand_over(outcome, fx),
            (Delivery::Checked, _) => {
                fx.push(Effect::Check(outcome.clone()));
                Phase::Checking(outcome)
            }
        }
    }

    /// The ways to go were compared; what follows is work like any other.
    pub(super) fn on_panel_result(&mut self, note: String, fx: &mut Effects) -> Phase {
        self.delivery = Delivery::Direct;
        self.go_on(note, fx)
    }

    pub(super) fn on_check_decision(
        &mut self,
        outcome: Outcome,
        checked: WorkCheckOutcome,
        fx: &mut Effects,
    ) -> Phase {
        match checked {
            WorkCheckOutcome::Deliver => self.hand_over(outcome, fx),
            WorkCheckOutcome::Again { note } => self.go_on(note, fx),
        }
    }

    fn hand_over(&mut self, outcome: Outcome, fx: &mut Effects) -> Phase {
        if self.queued.is_empty() {
            return self.finish(outcome, fx);
        }
        if self.rounds == 0 {
            // No arm was chosen yet.
            (self.rounds, self.most_rounds) = (1, self.limits.rounds);
            let said = mem::take(&mut self.queued);
            return self.prepare_messages(Vec::new(), said.into(), true, fx);
        }
        // Somebody has spoken meanwhile: the turn continues with that.
        self.most_rounds = self.rounds.saturating_add(self.limits.rounds);
        self.call_model(fx)
    }

    fn go_on(&mut self, note: String, fx: &mut Effects) -> Phase {
        self.watch = TurnDetectors::default();
        if let Some(shaping) = &mut self.answers.shaping {
            shaping.begin_attempt();
        }
        self.stuck = None;
        self.notes.push(note);
        self.call_model(fx)
    }

    /// Draws the conclusion of what a look at the work found.
    pub(super) fn conclude_check(
        &mut self,
        outcome: Outcome,
        finding: Finding,
        fx: &mut Effects,
    ) -> Phase {
        fx.push(Effect::Conclude { finding, may_continue: self.has_rounds() });
        Phase::Checking(outcome)
    }

    /// Runs the commands that prove the project right, until one fails.
    pub(super) fn run_checks(
        &mut self,
        outcome: Outcome,
        checks: Checks,
        fx: &mut Effects,
    ) -> Phase {
        let name = self.name_of_proof();
        match ProjectCheckRun::new(checks, &name) {
            Some((proof, call)) => {
                fx.push(Effect::Judge(call));
                Phase::Proving(outcome, proof)
            }
            None => self.start_review(outcome, fx),
        }
    }

    /// Runs them again between turns, as a turn that calls no model unless a message arrives.
    pub(super) fn prove_again(&mut self, phase: Phase, checks: Checks, fx: &mut Effects) -> Phase {
        if self.is_closing || !matches!(phase, Phase::Idle) {
            return phase;
        }
        self.turns += 1;
        (self.rounds, self.most_rounds, self.checks) = (0, 0, 0);
        self.delivery = Delivery::Direct;
        self.usage = Usage::default();
        self.watch = TurnDetectors::default();
        self.enter_state(SessionState::Active, fx);
        let outcome = Outcome::Complete { stop: StopReason::EndTurn };
        let name = self.name_of_proof();
        match ProjectCheckRun::new(checks, &name) {
            Some((proof, call)) => {
                fx.push(Effect::Judge(call));
                Phase::Proving(outcome, proof)
            }
            None => self.conclude_check(
                outcome,
                Finding::without_check("there is nothing to check it with"),
                fx,
            ),
        }
    }

    fn start_review(&mut self, outcome: Outcome, fx: &mut Effects) -> Phase {
        fx.push(Effect::Review);
        Phase::Checking(outcome)
    }

    /// A check has ended: the next one, or what was found.
    pub(super) fn on_check_outcome(
        &mut self,
        outcome: Outcome,
        proof: ProjectCheckRun,
        ended: ToolOutcome,
        fx: &mut Effects,
    ) -> Phase {
        match verify::interpret_check(proof.command(), ended) {
            CheckEvidence::Nothing(why) if proof.checks.else_review => {
                fx.push(Effect::Emit(Event::Notice { level: NoticeLevel::Warning, text: why }));
                self.start_review(outcome, fx)
            }
            CheckEvidence::Nothing(why) => {
                self.conclude_check(outcome, Finding::without_check(&why), fx)
            }
            CheckEvidence::Wrong(finding) => self.conclude_check(outcome, finding, fx),
            CheckEvidence::Right => {
                self.watch.check_passed(proof.command());
                match proof.next(&self.name_of_proof()) {
                    Ok((proof, call)) => {
                        fx.push(Effect::Judge(call));
                        Phase::Proving(outcome, proof)
                    }
                    Err(commands) => {
                        self.conclude_check(outcome, Finding::from_passed_checks(&commands), fx)
                    }
                }
            }
        }
    }

    fn name_of_proof(&mut self) -> String {
        self.checks += 1;
        format!("{}-{}", self.turns, self.checks)
    }
}
