//! Choosing with preferences and roles. [`Router::choose`] stays as it is: what it found each arm to be worth is taken,
//! the bonus added, and where it would start a single arm another may be started instead. Whether to try at all, and
//! whether an attempt is good enough, preferences do not touch. A bonus cannot go into the offers' savings: those
//! only count down to a cost of nothing, and local arms, the ones most often preferred, cost nothing. Who has a role is
//! run where it can be, whatever it is worth.

use super::AppliedRules;
use crate::{
    arm::{ArmId, Offer},
    router::{Decision, Router, RouterChoice, WeighedArm},
    task::Situation,
};

const MICRO: f64 = 1e6;

impl AppliedRules {
    /// Decides what to do next, by the router and the rules. `offers` are as [`AppliedRules::apply_to_offers`] gave them.
    #[must_use]
    pub fn choose(
        &self,
        router: &Router,
        situation: &Situation,
        offers: &[Offer],
        seed: u64,
    ) -> RouterChoice {
        let mut choice = router.choose(situation, offers, seed);
        let Decision::Run(arms) = &choice.decision else { return choice };
        if let Some(arm) = self.role.as_ref().filter(|arm| can_run(&choice, offers, arm)) {
            choice.decision = Decision::Run(vec![arm.clone()]);
            return choice;
        }
        let ([arm], true) = (arms.as_slice(), self.bonus_micro_usd.iter().any(|bonus| *bonus > 0))
        else {
            return choice;
        };
        let Some(winner) = offers.iter().position(|offer| offer.arm.id == *arm) else {
            return choice;
        };
        self.value_preferred(&mut choice, router, situation, offers, winner);
        let best = choice.candidates.iter().filter_map(|candidate| self.candidate_value(candidate));
        // The router's own winner stands first, so that equals change nothing.
        let own = choice.candidates.iter().filter(|candidate| candidate.offer == winner);
        let first = own.filter_map(|candidate| self.candidate_value(candidate)).next();
        let preferred = first
            .into_iter()
            .chain(best)
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        if let Some(offer) = preferred.and_then(|(offer, _)| offers.get(offer)) {
            choice.decision = Decision::Run(vec![offer.arm.id.clone()]);
        }
        choice
    }

    fn bonus_dollars(&self, offer: usize) -> f64 {
        self.bonus_micro_usd.get(offer).map_or(0.0, |bonus| *bonus as f64 / MICRO)
    }

    fn candidate_value(&self, candidate: &WeighedArm) -> Option<(usize, f64)> {
        let value = candidate.value? + candidate.knowledge + self.bonus_dollars(candidate.offer);
        Some((candidate.offer, value))
    }

    /// Preferred arms that did not reach the look-ahead are looked at again, among themselves and the winner.
    fn value_preferred(
        &self,
        choice: &mut RouterChoice,
        router: &Router,
        situation: &Situation,
        offers: &[Offer],
        winner: usize,
    ) {
        let unseen = |candidate: &WeighedArm| {
            candidate.value.is_none() && self.bonus_dollars(candidate.offer) > 0.0
        };
        if !choice.candidates.iter().any(unseen) {
            return;
        }
        let few: Vec<Offer> = offers
            .iter()
            .enumerate()
            .map(|(place, offer)| {
                let out = place != winner && self.bonus_dollars(place) <= 0.0;
                let barred = out.then(|| "not preferred".into());
                Offer { barred: offer.barred.clone().or(barred), ..offer.clone() }
            })
            .collect();
        let again = router.choose(situation, &few, 0);
        for candidate in choice.candidates.iter_mut().filter(|candidate| unseen(candidate)) {
            let seen = again.candidates.iter().find(|seen| seen.offer == candidate.offer);
            candidate.value = seen.and_then(|seen| seen.value);
        }
    }
}

/// Reports whether nothing stands against running the arm.
fn can_run(choice: &RouterChoice, offers: &[Offer], arm: &ArmId) -> bool {
    let candidates = choice.candidates.iter().filter_map(|candidate| offers.get(candidate.offer));
    candidates.map(|offer| &offer.arm.id).any(|able| able == arm)
}
