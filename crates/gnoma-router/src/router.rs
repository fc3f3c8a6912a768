//! The router: what to do next on a task, and taking in what turned out.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    arm::{Arm, ArmId, Offer, PoolId},
    beliefs::{Beliefs, Estimate},
    effects::Belief,
    evidence::{
        AttemptEvidence, Normal, TaskCost, chances_by_difficulty, cost_surprise, dot_product,
        multiply_weights, normalise_weights,
    },
    knowledge_gradient,
    plan::{LookAhead, MOST_OPTIONS, RunnableArm},
    probit::{GRID, Nodes},
    scarcity::{PoolBudget, Scarcity},
    state::{RouterState, StateError},
    task::{Situation, TaskKind, TaskOutcome, UnmetNeed},
    tuning::Tuning,
    verifier::{Rates, Verifier},
};

/// Dollars that a task counts as, at least, where the rates it draws on are scarce.
const LEAST_COST: f64 = 0.01;
const MICRO: f64 = 1e6;
/// Standard deviations around a mean within which 95 % of a normal belief lies.
const QUANTILE: f64 = 1.96;

/// The decision on what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run these, at once if several.
    Run(Vec<ArmId>),
    /// Deliver this attempt (counted from 0).
    Accept(usize),
    /// No arm may do this task, and nothing was tried.
    Impossible,
}

/// An arm as it was weighed. All numbers are for this task as it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeighedArm {
    /// The index of the offer that was weighed.
    pub offer: usize,
    /// Chance that it gets the task right.
    pub quality: f64,
    /// Dollars it is expected to cost.
    pub cost: f64,
    /// The weight of a dollar here: more than 1 where a limit would not last.
    pub scarcity: f64,
    /// Dollars expected of running it next and going on well; `None` where it did not reach the look-ahead.
    pub value: Option<f64>,
    /// Dollars that knowing it better is worth on later tasks.
    pub knowledge: f64,
}

/// The reason why an offer was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// The arm lacks what the task must have, or may not be used.
    Unmet(UnmetNeed),
    /// The arm was tried on this task.
    Tried,
}

/// A decision and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterChoice {
    /// The decision on what to do.
    pub decision: Decision,
    /// Those weighed, in the order offered.
    pub candidates: Vec<WeighedArm>,
    /// The offers that were left out, by index, each with the reason.
    pub excluded: Vec<(usize, Exclusion)>,
    /// Dollars expected of delivering the best attempt now.
    pub accept_value: Option<f64>,
    /// The best pair to run at once, and its value; asked only where waiting costs anything.
    pub pair_value: Option<f64>,
}

/// The beliefs about an arm at a kind, for people to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmEstimate {
    /// Chance to get a task right.
    pub quality: f64,
    /// The range that this chance is in with 95 %.
    pub quality_range: [f64; 2],
    /// Mean dollars per task.
    pub cost: f64,
    /// The number of tasks seen.
    pub tasks: u32,
}

/// The router, which decides what to do next on a task and learns from what turned out.
#[derive(Clone, Debug)]
pub struct Router {
    beliefs: Beliefs,
    scarcity: Scarcity,
}

impl Router {
    /// A router that knows nothing yet.
    #[must_use]
    pub fn new(tuning: Tuning) -> Self {
        Self { beliefs: Beliefs::new(tuning), scarcity: Scarcity::default() }
    }

    /// A router that goes on where another left off. What was learnt of an arm counts once it is
    /// [admitted](Self::register_arms).
    ///
    /// # Errors
    /// The state has another form than this gnoma reads.
    pub fn from_state(tuning: Tuning, state: &RouterState) -> Result<Self, StateError> {
        Ok(Self {
            beliefs: Beliefs::from_state(tuning, state)?,
            scarcity: Scarcity::from_prices(&state.prices),
        })
    }

    /// Returns everything that was learnt.
    #[must_use]
    pub fn to_state(&self) -> RouterState {
        self.beliefs.to_state(self.scarcity.prices.clone())
    }

    /// Makes arms known, or their facts and priors anew; what was learnt stays.
    pub fn register_arms(&mut self, arms: &[Arc<Arm>]) {
        self.beliefs.register_arms(arms);
    }

    /// Takes in what turned out.
    pub fn record_outcome(&mut self, outcome: &TaskOutcome) {
        self.beliefs.record_outcome(outcome);
    }

    /// Takes in what came to be known about tries that were learnt from already.
    pub fn correct_outcome(&mut self, outcome: &TaskOutcome) {
        self.beliefs.correct_outcome(outcome);
    }

    /// Returns the arms whose work was noticed to have got worse since this was last asked.
    pub fn take_worse_arms(&mut self) -> Vec<ArmId> {
        let arms = self.beliefs.arms.iter_mut();
        let worse =
            arms.filter_map(|known| std::mem::take(&mut known.got_worse).then(|| known.id.clone()));
        worse.collect()
    }

    /// Takes in where a budget stands.
    pub fn set_budget(&mut self, pool: &PoolId, budget: PoolBudget) {
        self.scarcity.set_budget(pool, budget);
    }

    /// Takes in what a task spent, in dollars, of each pool.
    pub fn record_spend(&mut self, by_pool: &BTreeMap<PoolId, f64>) {
        self.scarcity.record_spend(by_pool, self.beliefs.tuning.scarcity_step);
    }

    /// Returns what is believed of an arm at a kind.
    #[must_use]
    pub fn estimate_arm(&self, arm: &ArmId, kind: &TaskKind) -> ArmEstimate {
        let (arm, kind) = (self.beliefs.index_of_arm(arm), self.beliefs.index_of_kind(kind));
        let estimate = self.beliefs.estimate(arm, kind);
        let known = arm.and_then(|arm| self.beliefs.arms.get(arm));
        let chance = |ability| {
            dot_product(&GRID.weights, &chances_by_difficulty(ability, self.beliefs.tuning.shared))
        };
        let spread = QUANTILE * estimate.ability.variance.sqrt();
        let at = |mean| chance(Belief { mean, variance: 0.0 });
        let mean = estimate.ability.mean;
        ArmEstimate {
            quality: chance(estimate.ability),
            quality_range: [at(mean - spread), at(mean + spread)],
            cost: estimate.cost,
            tasks: known
                .zip(kind)
                .and_then(|(known, kind)| known.tasks.get(kind))
                .copied()
                .unwrap_or(0),
        }
    }

    /// The verifier as learnt.
    #[must_use]
    pub fn verifier(&self) -> &Verifier {
        &self.beliefs.verifier
    }

    /// Decides what to do next. The same situation, offers and seed always give the same choice; the seed only
    /// decides between equals.
    #[must_use]
    pub fn choose(&self, situation: &Situation, offers: &[Offer], seed: u64) -> RouterChoice {
        let rates =
            if situation.verified { self.beliefs.verifier.rates() } else { Rates::UNCHECKED };
        let task = self.assess_task(situation, rates);
        let (mut candidates, excluded, mut weighed) = self.weigh_offers(situation, offers, &task);
        shortlist_arms(&mut weighed, &candidates, task.value);
        let options = self.runnable_options(&weighed, &mut candidates, &task);
        let plan = LookAhead::new(task.value, &options, rates);
        let valued = plan.value_actions(&task.weights, &task.tried, attempts_that_help(situation));
        self.value_candidates(&mut candidates, &weighed, &valued.run, situation, task.value);
        let best = best_candidate(&candidates, seed);
        let pair = valued.pair.filter(|(_, value)| best.is_some_and(|(_, single)| *value > single));
        let id = |place: usize| Some(offers.get(candidates.get(place)?.offer)?.arm.id.clone());
        let both = pair.map(|(both, _)| both.map(|option| weighed.get(option)));
        let decision = match (valued.accept, best) {
            (Some((attempt, accept)), Some((_, run))) if accept >= run => Decision::Accept(attempt),
            (_, Some((single, _))) => Decision::Run(match both {
                None => id(single).into_iter().collect(),
                Some(both) => both.into_iter().flatten().filter_map(|arm| id(arm.place)).collect(),
            }),
            (Some((attempt, _)), None) => Decision::Accept(attempt),
            (None, None) => Decision::Impossible,
        };
        RouterChoice {
            decision,
            candidates,
            excluded,
            accept_value: valued.accept.map(|(_, value)| value),
            pair_value: valued.pair.map(|(_, value)| value),
        }
    }

    /// Writes down what the look-ahead found, and what trying each would teach. Only a first attempt is a trial:
    /// later ones are there to save the task.
    fn value_candidates(
        &self,
        candidates: &mut [WeighedArm],
        weighed: &[WeighedCandidate],
        values: &[f64],
        situation: &Situation,
        task_value: f64,
    ) {
        let leaders = two_best(values);
        for (WeighedCandidate { place, estimate, .. }, value) in weighed.iter().zip(values) {
            let Some(candidate) = candidates.get_mut(*place) else {
                continue;
            };
            candidate.value = Some(*value);
            if situation.attempts.is_empty() {
                let rival = if *value < leaders.0 { leaders.0 } else { leaders.1 };
                candidate.knowledge = knowledge_gradient::trial_worth(
                    (rival - value).abs(),
                    task_value * estimate.trial_spread(situation.verified),
                    self.beliefs.tuning.trial_horizon,
                );
            }
        }
    }
}

/// Returns why an offer is not weighed for the task; `None` if it is.
fn exclusion_of(situation: &Situation, offer: &Offer) -> Option<Exclusion> {
    if let Some(unmet) = situation.need.unmet_by(offer) {
        return Some(Exclusion::Unmet(unmet));
    }
    let is_tried = situation.attempts.iter().any(|attempt| attempt.arm == offer.arm.id);
    is_tried.then_some(Exclusion::Tried)
}

/// Returns the number of attempts that help: where none is checked, a second attempt tells nothing that the first
/// did not.
fn attempts_that_help(situation: &Situation) -> usize {
    if situation.verified {
        situation.attempts_left
    } else {
        situation.attempts_left.min(usize::from(situation.attempts.is_empty()))
    }
}

/// The candidate of most value and knowledge, and its value; the seed parts equals.
fn best_candidate(candidates: &[WeighedArm], seed: u64) -> Option<(usize, f64)> {
    let ranked = candidates
        .iter()
        .enumerate()
        .filter_map(|(place, candidate)| Some((place, candidate.value? + candidate.knowledge)));
    ranked.max_by(|(place, value), (other_place, other)| {
        let tie = |place: &usize| mix_bits(seed ^ *place as u64);
        value.total_cmp(other).then_with(|| tie(place).cmp(&tie(other_place)))
    })
}

/// A task as the attempts on it have shown it.
struct ObservedTask {
    kind: Option<usize>,
    value: f64,
    weights: Nodes,
    tried: Vec<Nodes>,
    cost_factor: f64,
}

/// An arm that may run.
struct WeighedCandidate {
    /// The index of the arm among the candidates.
    place: usize,
    estimate: Estimate,
    /// Dollars it is expected to cost, shadow prices included.
    cost: f64,
    /// Dollars that waiting for it counts for.
    wait: f64,
}

impl Router {
    fn assess_task(&self, situation: &Situation, rates: Rates) -> ObservedTask {
        let beliefs = &self.beliefs;
        let tuning = &beliefs.tuning;
        let kind = beliefs.index_of_kind(&situation.need.kind);
        let mut weights = GRID.weights;
        let mut tried = Vec::with_capacity(situation.attempts.len());
        let mut task_cost = TaskCost::default();
        for attempt in &situation.attempts {
            let estimate = beliefs.estimate(beliefs.index_of_arm(&attempt.arm), kind);
            let chances = chances_by_difficulty(estimate.ability, tuning.shared);
            let seen = AttemptEvidence { verdict: attempt.verdict, right: None };
            weights = normalise_weights(&multiply_weights(
                &weights,
                &seen.by_difficulty(&chances, rates),
            ));
            tried.push(seen.right_given(&chances, rates));
            let cost = attempt.cost_micro_usd as f64 / MICRO;
            let surprise = cost_surprise(cost, estimate.cost, tuning);
            task_cost.add_surprise(surprise, estimate.own_cost_variance, tuning);
        }
        ObservedTask {
            kind,
            value: situation.need.value_micro_usd as f64 / MICRO,
            weights: normalise_weights(&multiply_weights(
                &weights,
                &task_cost.difficulty_likelihood(tuning),
            )),
            tried,
            cost_factor: task_cost.cost_factor(tuning),
        }
    }

    /// Weighs every offer that may be used. Qualities are first guesses; [`runnable_options`](Self::runnable_options) makes them exact.
    fn weigh_offers(
        &self,
        situation: &Situation,
        offers: &[Offer],
        task: &ObservedTask,
    ) -> (Vec<WeighedArm>, Vec<(usize, Exclusion)>, Vec<WeighedCandidate>) {
        let mut candidates = Vec::with_capacity(offers.len());
        let mut excluded = Vec::new();
        let mut weighed = Vec::with_capacity(offers.len());
        let bell = Normal::from_weights(&task.weights);
        for (index, offer) in offers.iter().enumerate() {
            if let Some(exclusion) = exclusion_of(situation, offer) {
                excluded.push((index, exclusion));
                continue;
            }
            let arm = self.beliefs.arm_near(&offer.arm.id, index);
            let estimate = self.beliefs.estimate(arm, task.kind);
            let saved = offer.saved_micro_usd as f64 / MICRO;
            let most = offer.most_micro_usd.map_or(f64::INFINITY, |most| most as f64 / MICRO);
            let cost = (estimate.cost.min(most) * task.cost_factor - saved).max(0.0);
            let crowding = offer.crowding.max(1.0);
            let scarcity = self.scarcity.dollar_weight(&offer.pools) * crowding;
            let wait =
                offer.seconds.unwrap_or(0.0).max(0.0) * situation.need.second_micro_usd as f64;
            let place = candidates.len();
            // What is free is not so while it is scarce.
            let least = if crowding > 1.0 { LEAST_COST } else { 0.0 };
            let weighed_cost = cost.max(least) * scarcity * offer.arm.cost_weight.clamp(0.0, 1.0);
            weighed.push(WeighedCandidate {
                place,
                estimate,
                cost: weighed_cost,
                wait: wait / MICRO,
            });
            candidates.push(WeighedArm {
                offer: index,
                quality: bell.chance_of_success(estimate.ability, self.beliefs.tuning.shared),
                cost,
                scarcity,
                value: None,
                knowledge: 0.0,
            });
        }
        (candidates, excluded, weighed)
    }

    /// Returns the options that the look-ahead is made of.
    fn runnable_options(
        &self,
        weighed: &[WeighedCandidate],
        candidates: &mut [WeighedArm],
        task: &ObservedTask,
    ) -> Vec<RunnableArm> {
        let option = |arm: &WeighedCandidate| {
            let chances = chances_by_difficulty(arm.estimate.ability, self.beliefs.tuning.shared);
            if let Some(candidate) = candidates.get_mut(arm.place) {
                candidate.quality = dot_product(&task.weights, &chances);
            }
            RunnableArm { chances, cost: arm.cost, wait: arm.wait }
        };
        weighed.iter().map(option).collect()
    }
}

/// Keeps the arms worth a look-ahead: half by what they bring alone, half by what they would bring to a task worth a
/// tenth, since a cheap arm may open a cascade that it would not win alone.
fn shortlist_arms(weighed: &mut Vec<WeighedCandidate>, candidates: &[WeighedArm], value: f64) {
    const CHEAP_SHARE: f64 = 0.1;
    const HALF: usize = MOST_OPTIONS / 2;
    if weighed.len() <= MOST_OPTIONS {
        return;
    }
    let brings = |arm: &WeighedCandidate, share: f64| {
        let quality = candidates.get(arm.place).map_or(0.0, |candidate| candidate.quality);
        share * value * quality - arm.cost - arm.wait
    };
    // The better first; of equals, the one offered first.
    let by = |share: f64| {
        move |one: &WeighedCandidate, other: &WeighedCandidate| {
            brings(other, share).total_cmp(&brings(one, share)).then(one.place.cmp(&other.place))
        }
    };
    weighed.select_nth_unstable_by(HALF, by(1.0));
    if let Some(rest) = weighed.get_mut(HALF..) {
        rest.select_nth_unstable_by(MOST_OPTIONS - HALF, by(CHEAP_SHARE));
    }
    weighed.truncate(MOST_OPTIONS);
    weighed.sort_unstable_by_key(|arm| arm.place);
}

/// The highest and the second highest; what is not there is endlessly low.
fn two_best(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::NEG_INFINITY, f64::NEG_INFINITY), |(first, second), value| {
        if *value > first { (*value, first) } else { (first, second.max(*value)) }
    })
}

/// SplitMix64 (Steele, Lea and Flood, 2014): an even spread of any number.
fn mix_bits(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Exclusion {
    /// Describes the reason, such as `cannot call tools`.
    #[must_use]
    pub fn reason_text(&self) -> Arc<str> {
        match self {
            Self::Unmet(unmet) => unmet.reason_text(),
            Self::Tried => "was tried on this task".into(),
        }
    }
}
