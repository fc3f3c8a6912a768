//! Learning from a task that is over.
//!
//! Every attempt teaches: one whose truth is known by that truth, one with a verdict by what the verdict is worth,
//! and all of them through the others, which say how hard and how dear the task was: each attempt is judged against
//! what the *other* attempts suggest. So an arm that only gets what others failed at is not blamed for it.
//! Work that was shared teaches by its share: its evidence is tempered (all logarithms of likelihoods times the weight),
//! and it says nothing of what a whole task costs or what a verdict is worth.

use crate::{
    beliefs::{Beliefs, Estimate},
    drift::DriftChange,
    evidence::{
        AttemptEvidence, TaskCost, chances_by_difficulty, cost_surprise, dot_product,
        multiply_weights, normalise_weights,
    },
    probit::{GRID, Nodes},
    starting_point::LEAST_COST,
    task::TaskOutcome,
    verifier::Rates,
};

const MICRO: f64 = 1e6;
/// An attempt that cost more than this many times what was expected teaches as if it cost this many.
const MOST_COST_RATIO: f64 = 6.0;
/// Attempts of one task that are learnt from.
const MOST_ATTEMPTS: usize = 16;

/// One attempt, and what was believed before it.
struct AttemptUpdate {
    arm: usize,
    estimate: Estimate,
    cost: f64,
    surprise: Option<f64>,
    seen: AttemptEvidence,
    chances: Nodes,
    likelihood: Nodes,
    weight: f64,
}

impl AttemptUpdate {
    fn is_whole(&self) -> bool {
        self.weight >= 1.0
    }
}

impl Beliefs {
    /// Takes in what turned out.
    pub(crate) fn record_outcome(&mut self, outcome: &TaskOutcome) {
        self.take_in(outcome, true);
    }

    /// Takes in what came to be known about tries that were learnt from: they count as tasks, and what
    /// they cost is known, already.
    pub(crate) fn correct_outcome(&mut self, outcome: &TaskOutcome) {
        self.take_in(outcome, false);
    }

    fn take_in(&mut self, outcome: &TaskOutcome, is_new: bool) {
        let rates = self.verifier.rates();
        let (lessons, kind) = self.attempt_updates(outcome, rates);
        let task_cost = self.task_cost(lessons.iter().filter(|_| is_new));
        let before =
            multiply_weights(&GRID.weights, &task_cost.difficulty_likelihood(&self.tuning));
        for (index, lesson) in lessons.iter().enumerate() {
            let others = || {
                let others = lessons.iter().enumerate().filter(move |(other, _)| *other != index);
                others.map(|(_, other)| other)
            };
            let weights = others()
                .fold(before, |weights, other| multiply_weights(&weights, &other.likelihood));
            self.learn_quality(lesson, kind, rates, &normalise_weights(&weights));
            if is_new && lesson.is_whole() {
                self.learn_cost(lesson, kind, self.task_cost(others()).cost_factor(&self.tuning));
            }
            if is_new {
                self.count_task(lesson.arm, kind);
            }
        }
    }

    fn task_cost<'a>(&self, lessons: impl Iterator<Item = &'a AttemptUpdate>) -> TaskCost {
        let mut task_cost = TaskCost::default();
        for lesson in lessons {
            task_cost.add_surprise(
                lesson.surprise,
                lesson.estimate.own_cost_variance,
                &self.tuning,
            );
        }
        task_cost
    }

    fn attempt_updates(
        &mut self,
        outcome: &TaskOutcome,
        rates: Rates,
    ) -> (Vec<AttemptUpdate>, Option<usize>) {
        let mut kind = None;
        let mut lessons = Vec::with_capacity(outcome.tried.len().min(MOST_ATTEMPTS));
        for tried in outcome.tried.iter().take(MOST_ATTEMPTS) {
            let (arm, of_kind) = self.ensure_indices(&tried.attempt.arm, &outcome.kind);
            kind = of_kind;
            let Some(arm) = arm else { continue };
            let estimate = self.estimate(Some(arm), kind);
            let cost = tried.attempt.cost_micro_usd as f64 / MICRO;
            let seen = AttemptEvidence { verdict: tried.attempt.verdict, right: tried.right };
            let chances = chances_by_difficulty(estimate.ability, self.tuning.shared);
            let weight = tried.weight.clamp(0.0, 1.0);
            let mut likelihood = seen.by_difficulty(&chances, rates);
            let mut surprise = cost_surprise(cost, estimate.cost, &self.tuning);
            if weight < 1.0 {
                likelihood = likelihood.map(|likelihood| likelihood.powf(weight));
                surprise = None;
            }
            lessons.push(AttemptUpdate {
                arm,
                estimate,
                cost,
                surprise,
                seen,
                chances,
                likelihood,
                weight,
            });
        }
        (lessons, kind)
    }

    fn learn_quality(
        &mut self,
        lesson: &AttemptUpdate,
        kind: Option<usize>,
        rates: Rates,
        weights: &Nodes,
    ) {
        let AttemptUpdate { arm, estimate, seen, weight, .. } = lesson;
        if let Some(passed) = seen.verdict
            && lesson.is_whole()
        {
            let all = normalise_weights(&multiply_weights(weights, &lesson.likelihood));
            let right = dot_product(&all, &seen.right_given(&lesson.chances, rates));
            self.verifier.record_verdict(passed, right);
        }
        if seen.says_nothing() {
            return;
        }
        let shared = self.tuning.shared;
        let (slope, curvature) = seen.about_ability(estimate.ability, shared, rates, weights);
        self.ability.apply_gradient(*arm, kind, weight * slope, weight * curvature);
        let drop = self.tuning.drift.drop;
        let odds = seen.odds_of_drop(estimate.ability, shared, rates, weights, drop);
        let tuning = self.tuning;
        let change = self
            .arms
            .get_mut(*arm)
            .and_then(|known| known.watch.observe_outcome(weight * odds, &tuning));
        self.widen_after_drift(*arm, change);
    }

    /// Costs are taken for gamma distributed, whatever they are: the slope is then right for the mean
    /// (quasi-likelihood: Wedderburn, 1974), which is what a budget feels. `factor` is how much dearer than others this
    /// task is, by what the other attempts on it cost.
    fn learn_cost(&mut self, lesson: &AttemptUpdate, kind: Option<usize>, factor: f64) {
        let tuning = self.tuning;
        let shape = tuning.cost_shape;
        let doubt = self
            .cost
            .unshared_belief(lesson.arm, kind, tuning.cost_cold)
            .sum_with(self.cost.of_kind(kind, tuning.cost_cold))
            .variance;
        let expected = (lesson.estimate.cost * factor).max(LEAST_COST);
        let ratio = (lesson.cost / expected).min(MOST_COST_RATIO);
        let damp = 1.0 + shape * doubt;
        self.cost.apply_gradient(lesson.arm, kind, shape * (ratio - 1.0) / damp, shape / damp);
        let change = lesson.surprise.and_then(|surprise| {
            let known = self.arms.get_mut(lesson.arm)?;
            known.watch.observe_cost(surprise, &tuning)
        });
        self.widen_after_drift(lesson.arm, change);
    }

    /// An arm that changed in one way may have changed in the other: a swapped model does.
    fn widen_after_drift(&mut self, arm: usize, change: Option<DriftChange>) {
        if change == Some(DriftChange::Quality)
            && let Some(known) = self.arms.get_mut(arm)
        {
            known.got_worse = true;
        }
        if change.is_some() {
            let tuning = self.tuning;
            self.ability.widen_arm(arm, tuning.drift.shaken);
            self.cost.widen_arm(arm, tuning.drift.cost_shaken);
        }
    }

    fn count_task(&mut self, arm: usize, kind: Option<usize>) {
        let tasks =
            self.arms.get_mut(arm).zip(kind).and_then(|(known, kind)| known.tasks.get_mut(kind));
        if let Some(tasks) = tasks {
            *tasks = tasks.saturating_add(1);
        }
    }
}
