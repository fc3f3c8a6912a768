//! Explains for people why an arm was chosen, and why others were not.

use gnoma_core::ModelRef;

use super::{offers::ChoiceContext, routing_state::RoutingState};
use crate::{
    arm::{Arm, Offer},
    router::{Exclusion, RouterChoice, WeighedArm},
    rules::{AppliedRules, Role},
};

/// The offers for a task, with the rules that apply to them and the choice among them.
#[derive(Clone, Copy)]
pub(super) struct WeighedOffers<'a> {
    pub(super) offers: &'a [Offer],
    pub(super) applied: &'a AppliedRules,
    pub(super) choice: &'a RouterChoice,
}

impl RoutingState {
    /// Explains the choice of an arm: the reason for it, and a line for each candidate and rule.
    pub(super) fn explain_choice(
        &self,
        arm: &Arm,
        role: Option<(Role, &ModelRef)>,
        weighed: WeighedOffers<'_>,
        context: ChoiceContext<'_>,
    ) -> (String, Vec<String>) {
        let WeighedOffers { offers, applied, choice } = weighed;
        let (why, mut lines) = match role.filter(|_| applied.role.is_some()) {
            None => (self.choice_reason(arm, choice, offers, context), choice.explain(offers)),
            Some(role) => {
                let why = in_role(role, arm, choice, offers);
                let lines = choice.explain(offers);
                (why.clone(), lines.into_iter().chain([why]).collect())
            }
        };
        let said = &self.settings.said;
        lines.extend(applied.explain(offers).into_iter().filter(|line| !said.contains(line)));
        (why, lines)
    }

    fn choice_reason(
        &self,
        arm: &Arm,
        choice: &RouterChoice,
        offers: &[Offer],
        context: ChoiceContext<'_>,
    ) -> String {
        let name = &arm.id;
        if let Some(failed) = context.failed.last() {
            return format!("in place of {failed}, which failed at this step");
        }
        if context.pin == Some(name) {
            return "you chose it".to_owned();
        }
        if offers.len() == 1 {
            return "set in your configuration".to_owned();
        }
        let of = |candidate: &&WeighedArm| {
            offers.get(candidate.offer).is_some_and(|offer| offer.arm.id == *name)
        };
        if !choice.candidates.iter().any(|candidate| of(&candidate)) {
            return "the only model left".to_owned();
        }
        if choice.candidates.len() == 1 {
            return "the only model available".to_owned();
        }
        // What it is expected to cost is far from what it costs in the end; the candidates tell it to those who ask.
        format!("chosen out of {} models", choice.candidates.len())
    }
}

/// Returns the reason why each excluded arm cannot be asked.
pub(super) fn exclusion_reasons(choice: &RouterChoice, offers: &[Offer]) -> Vec<String> {
    let reason = |(index, why): &(usize, Exclusion)| {
        let (arm, why) = (&offers.get(*index)?.arm.id, why.reason_text());
        // What health and limits say names the arm already.
        Some(if why.contains(&arm.to_string()) { why.to_string() } else { format!("{arm}: {why}") })
    };
    choice.excluded.iter().filter_map(reason).collect()
}

/// Explains that the arm with the role plays it, or why another arm does.
fn in_role(
    (role, name): (Role, &ModelRef),
    arm: &Arm,
    choice: &RouterChoice,
    offers: &[Offer],
) -> String {
    let role = role.name();
    if arm.id == *name {
        return format!("{name} has the role `{role}`");
    }
    let of = |index: &usize| offers.get(*index).is_some_and(|offer| offer.arm.id == *name);
    let out = choice.excluded.iter().find(|(index, _)| of(index));
    let why = out.map_or_else(|| "cannot be asked".into(), |(_, why)| why.reason_text());
    format!("{name} has the role `{role}`, but {why}; using {} instead", arm.id)
}
