//! What to do next on a task: exact look-ahead over the attempts that are left (expectimax on the difficulty grid).
//!
//! All values are expectations times the weight of the branch, so that branches simply add up and nothing is
//! normalised on the way. Arms know each other's fate only through the difficulty: once it is given, attempts are
//! independent. No arm runs twice on a task.
//!
//! Most of the tree are last attempts, so these have a closed form: after one, only which attempt to deliver is left.

use std::mem;

use crate::{
    evidence::{AttemptEvidence, dot_product, multiply_weights, total_weight},
    probit::{NODES, Nodes},
    verifier::Rates,
};

/// Arms that enter the look-ahead.
pub(crate) const MOST_OPTIONS: usize = 8;
/// The most attempts that are looked ahead.
const MOST_DEPTH: usize = 3;
/// Arms weighed where more attempts follow, but for the first of all.
const BEAM: usize = 3;
/// Arms of which pairs are weighed.
const MOST_PAIRED: usize = 3;
/// Attempts that can still be delivered; of more, the first are forgotten.
const MOST_DELIVERABLE: usize = 6;

/// An arm that could run next.
#[derive(Clone, Debug)]
pub(crate) struct RunnableArm {
    /// Chance to be right, by difficulty.
    pub(crate) chances: Nodes,
    /// Dollars it is expected to cost, shadow prices included.
    pub(crate) cost: f64,
    /// Dollars that waiting for it counts for.
    pub(crate) wait: f64,
}

/// A verdict that may come, and what it would mean.
#[derive(Clone, Debug)]
struct Branch {
    likelihood: Nodes,
    right: Nodes,
}

#[derive(Debug)]
struct PlanAction {
    /// The cost in dollars, waiting included.
    cost: f64,
    wait: f64,
    chances: Nodes,
    passed: Branch,
    failed: Branch,
}

/// The look-ahead for one task.
#[derive(Debug)]
pub(crate) struct LookAhead {
    value: f64,
    rates: Rates,
    actions: Vec<PlanAction>,
    least_cost: f64,
}

/// The values that the look-ahead found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ActionValues {
    /// Expected dollars of accepting the best attempt so far, and which it is.
    pub(crate) accept: Option<(usize, f64)>,
    /// Expected dollars of running each option next and going on as well as possible.
    pub(crate) run: Vec<f64>,
    /// The best pair to run at once, where waiting costs anything.
    pub(crate) pair: Option<([usize; 2], f64)>,
}

/// Attempts that can be delivered: the chance that each is right, by difficulty.
#[derive(Clone, Copy)]
struct DeliverableAttempts<'a> {
    right: [&'a Nodes; MOST_DELIVERABLE],
    count: usize,
}

/// Fills the places nothing was tried for.
static NEVER: Nodes = [0.0; NODES];

impl<'a> DeliverableAttempts<'a> {
    const NONE: Self = Self { right: [&NEVER; MOST_DELIVERABLE], count: 0 };

    fn with_attempt(mut self, right: &'a Nodes) -> Self {
        if self.count == MOST_DELIVERABLE {
            self.right.rotate_left(1);
            self.count -= 1;
        }
        self.right[self.count] = right;
        self.count += 1;
        self
    }

    fn best_attempt(&self, weights: &Nodes) -> Option<(usize, f64)> {
        self.right[..self.count]
            .iter()
            .map(|right| dot_product(weights, right))
            .enumerate()
            .reduce(|best, next| if next.1 >= best.1 { next } else { best })
    }
}

impl LookAhead {
    /// Of the options, the first [`MOST_OPTIONS`] are looked at.
    pub(crate) fn new(value: f64, options: &[RunnableArm], rates: Rates) -> Self {
        let actions: Vec<PlanAction> = options
            .iter()
            .take(MOST_OPTIONS)
            .map(|option| {
                let branch = |passed| {
                    let seen = AttemptEvidence { verdict: Some(passed), right: None };
                    Branch {
                        likelihood: seen.by_difficulty(&option.chances, rates),
                        right: seen.right_given(&option.chances, rates),
                    }
                };
                PlanAction {
                    cost: option.cost + option.wait,
                    wait: option.wait,
                    chances: option.chances,
                    passed: branch(true),
                    failed: branch(false),
                }
            })
            .collect();
        let least_cost = actions.iter().map(|action| action.cost).fold(f64::INFINITY, f64::min);
        Self { value, rates, actions, least_cost }
    }

    /// Values everything that can be done now. `tried` are the chances that each attempt so far is right.
    pub(crate) fn value_actions<'a>(
        &'a self,
        weights: &Nodes,
        tried: &'a [Nodes],
        left: usize,
    ) -> ActionValues {
        let deliverable =
            tried.iter().fold(DeliverableAttempts::NONE, DeliverableAttempts::with_attempt);
        let forgotten = tried.len() - deliverable.count;
        let left = left.min(MOST_DEPTH);
        let run = if left == 0 {
            Vec::new()
        } else {
            (0..self.actions.len())
                .map(|option| self.run_value(weights, &deliverable, 0, option, left))
                .collect()
        };
        ActionValues {
            accept: deliverable
                .best_attempt(weights)
                .map(|(index, right)| (index + forgotten, right * self.value)),
            pair: self.best_pair(weights, &deliverable, &run, left),
            run,
        }
    }

    fn best_value<'a>(
        &'a self,
        weights: &Nodes,
        deliverable: &DeliverableAttempts<'a>,
        used: u32,
        left: usize,
    ) -> f64 {
        let (best, accept) = deliverable
            .best_attempt(weights)
            .map_or((&NEVER, 0.0), |(index, right)| (deliverable.right[index], right * self.value));
        let mass = total_weight(weights);
        if left == 0 || self.value * mass - accept <= self.least_cost * mass {
            return accept;
        }
        let missing = multiply_weights(weights, &best.map(|right| 1.0 - right));
        if left == 1 {
            return self.best_last(weights, deliverable, used, (&missing, mass, accept));
        }
        self.beam_options(&missing, mass, used)
            .map(|option| self.run_value(weights, deliverable, used, option, left))
            .fold(accept, f64::max)
    }

    fn run_value<'a>(
        &'a self,
        weights: &Nodes,
        deliverable: &DeliverableAttempts<'a>,
        used: u32,
        option: usize,
        left: usize,
    ) -> f64 {
        let action = &self.actions[option];
        if left == 1 {
            return LastAttempt::new(self, weights, deliverable).run_value(action);
        }
        let after = |branch: &Branch| {
            self.best_value(
                &multiply_weights(weights, &branch.likelihood),
                &deliverable.with_attempt(&branch.right),
                used | 1 << option,
                left - 1,
            )
        };
        after(&action.passed) + after(&action.failed) - action.cost * total_weight(weights)
    }

    /// The best of accepting and of one attempt more. Left out is what would not pay even if its verdict were beyond
    /// doubt: the bound is what it brings where the best so far is wrong (`missing`).
    fn best_last(
        &self,
        weights: &Nodes,
        deliverable: &DeliverableAttempts<'_>,
        used: u32,
        (missing, mass, accept): (&Nodes, f64, f64),
    ) -> f64 {
        let last = LastAttempt::new(self, weights, deliverable);
        let mut best = accept;
        for action in self.unused_actions(used).map(|(_, action)| action) {
            let bound =
                accept + self.value * dot_product(missing, &action.chances) - action.cost * mass;
            if bound > best {
                best = best.max(last.run_value(action));
            }
        }
        best
    }

    /// The best two to run at once, of those best alone: what both cost, but only the longer wait.
    fn best_pair<'a>(
        &'a self,
        weights: &Nodes,
        deliverable: &DeliverableAttempts<'a>,
        run: &[f64],
        left: usize,
    ) -> Option<([usize; 2], f64)> {
        if left < 2 || self.actions.iter().all(|action| action.wait <= 0.0) {
            return None;
        }
        let mut ranked: Vec<usize> = (0..run.len()).collect();
        gnoma_core::sort::sort_by(&mut ranked, |a, b| run[*b].total_cmp(&run[*a]));
        ranked.truncate(MOST_PAIRED);
        let pairs = ranked
            .iter()
            .enumerate()
            .flat_map(|(place, first)| ranked[place + 1..].iter().map(|second| [*first, *second]));
        pairs
            .map(|pair| (pair, self.run_pair(weights, deliverable, pair, left)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn run_pair<'a>(
        &'a self,
        weights: &Nodes,
        deliverable: &DeliverableAttempts<'a>,
        pair: [usize; 2],
        left: usize,
    ) -> f64 {
        let [first, second] = pair.map(|option| &self.actions[option]);
        let used = 1 << pair[0] | 1 << pair[1];
        let mut value = 0.0;
        for one in [&first.passed, &first.failed] {
            for two in [&second.passed, &second.failed] {
                let weights =
                    multiply_weights(&multiply_weights(weights, &one.likelihood), &two.likelihood);
                let deliverable = deliverable.with_attempt(&one.right).with_attempt(&two.right);
                value += self.best_value(&weights, &deliverable, used, left - 2);
            }
        }
        let mass = total_weight(weights);
        value - (first.cost + second.cost - first.wait.min(second.wait)) * mass
    }

    /// The options worth trying next, by what each would bring where the best so far is wrong (`missing`).
    fn beam_options(&self, missing: &Nodes, mass: f64, used: u32) -> impl Iterator<Item = usize> {
        let mut ranked = [(f64::NEG_INFINITY, usize::MAX); BEAM];
        for (option, action) in self.unused_actions(used) {
            let mut next =
                (self.value * dot_product(missing, &action.chances) - action.cost * mass, option);
            for place in &mut ranked {
                if next.0 > place.0 {
                    mem::swap(place, &mut next);
                }
            }
        }
        ranked.into_iter().map(|(_, option)| option).filter(|option| *option < MOST_OPTIONS)
    }

    fn unused_actions(&self, used: u32) -> impl Iterator<Item = (usize, &PlanAction)> {
        self.actions.iter().enumerate().filter(move |(option, _)| used & (1 << option) == 0)
    }
}

/// The look-ahead with one attempt left: whatever it brings, the best of it and of those before is delivered.
struct LastAttempt<'a> {
    value: f64,
    rates: Rates,
    weights: &'a Nodes,
    mass: f64,
    /// By attempt before, the weight with which it is right, by difficulty and in all.
    before: [(Nodes, f64); MOST_DELIVERABLE],
    count: usize,
}

impl<'a> LastAttempt<'a> {
    fn new(plan: &LookAhead, weights: &'a Nodes, deliverable: &DeliverableAttempts<'_>) -> Self {
        let mut before = [(NEVER, 0.0); MOST_DELIVERABLE];
        for (place, right) in before.iter_mut().zip(&deliverable.right[..deliverable.count]) {
            let right = multiply_weights(weights, right);
            *place = (right, total_weight(&right));
        }
        Self {
            value: plan.value,
            rates: plan.rates,
            weights,
            mass: total_weight(weights),
            before,
            count: deliverable.count,
        }
    }

    /// An attempt passes in the share `wrong + (right − wrong) · chance` of the tasks of a difficulty.
    fn run_value(&self, action: &PlanAction) -> f64 {
        let Rates { right, wrong } = self.rates;
        let own = dot_product(self.weights, &action.chances);
        let (mut passed, mut failed) = (right * own, (1.0 - right) * own);
        for (before, total) in &self.before[..self.count] {
            let kept = wrong * total + (right - wrong) * dot_product(before, &action.chances);
            passed = passed.max(kept);
            failed = failed.max(total - kept);
        }
        self.value * (passed + failed) - action.cost * self.mass
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{effects::Belief, evidence::chances_by_difficulty, probit::GRID};

    const VALUE: f64 = 10.0;

    fn of_ability(mean: f64) -> Nodes {
        chances_by_difficulty(Belief { mean, variance: 0.05 }, 0.7)
    }

    fn any_plan() -> impl Strategy<Value = LookAhead> {
        let options = prop::collection::vec((-1.5..1.5, 0.0..3.0), 1..=MOST_OPTIONS);
        (options, 0.02..0.98, 0.0..1.0).prop_map(|(options, right, share)| {
            let option =
                |(ability, cost)| RunnableArm { chances: of_ability(ability), cost, wait: 0.0 };
            let options: Vec<RunnableArm> = options.into_iter().map(option).collect();
            LookAhead::new(VALUE, &options, Rates { right, wrong: right * share })
        })
    }

    fn any_past(most: usize) -> impl Strategy<Value = Vec<Nodes>> {
        prop::collection::vec((-1.5..1.5).prop_map(of_ability), 0..=most)
    }

    /// A last attempt with both verdicts written out.
    fn written_out(plan: &LookAhead, past: &[Nodes], option: usize) -> f64 {
        let action = &plan.actions[option];
        let after = |branch: &Branch| {
            let weights = multiply_weights(&GRID.weights, &branch.likelihood);
            let right =
                past.iter().chain([&branch.right]).map(|right| dot_product(&weights, right));
            right.fold(0.0, f64::max) * VALUE
        };
        after(&action.passed) + after(&action.failed) - action.cost
    }

    proptest! {
        #[test]
        fn last_attempt_value_is_the_expectation_over_both_verdicts(plan in any_plan(), past in any_past(3)) {
            for (option, value) in plan.value_actions(&GRID.weights, &past, 1).run.iter().enumerate() {
                prop_assert!((value - written_out(&plan, &past, option)).abs() < 1e-6);
            }
        }

        #[test]
        fn routing_plan_finds_the_best_last_attempt(plan in any_plan(), past in any_past(1)) {
            let deliverable = past.iter().fold(DeliverableAttempts::NONE, DeliverableAttempts::with_attempt);
            let accept = deliverable.best_attempt(&GRID.weights).map_or(0.0, |(_, right)| right * VALUE);
            let all = (0..plan.actions.len()).map(|option| written_out(&plan, &past, option));
            let found = plan.best_value(&GRID.weights, &deliverable, 0, 1);
            prop_assert!((found - all.fold(accept, f64::max)).abs() < 1e-6);
        }
    }
}
