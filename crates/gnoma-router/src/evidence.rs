//! What the attempts on a task say about how hard it is, and what an outcome says about an arm's ability.

use crate::{
    effects::Belief,
    probit::{GRID, NODES, Nodes, normal_cdf, normal_density},
    tuning::Tuning,
    verifier::Rates,
};

/// Least likelihood a grid point keeps: evidence never rules a difficulty out for good.
const LEAST_LIKELIHOOD: f64 = 1e-9;
/// Cost surprises beyond this many standard deviations are taken for this many.
const MOST_SURPRISE: f64 = 3.0;

/// An arm's chance on a task of each difficulty.
pub(crate) fn chances_by_difficulty(ability: Belief, shared: f64) -> Nodes {
    let (scale, pull) = scale_and_pull(ability, shared);
    GRID.points.map(|point| normal_cdf((ability.mean + pull * point) * scale))
}

/// `(1 / spread of the arm's own luck and our doubt, weight of the difficulty)`.
fn scale_and_pull(ability: Belief, shared: f64) -> (f64, f64) {
    ((1.0 - shared + ability.variance).sqrt().recip(), shared.sqrt())
}

/// A task's difficulty, taken for normal: enough to say which arms are worth a closer look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normal(Belief);

impl Normal {
    /// The one with the mean and the variance of these weights, which sum to 1.
    pub(crate) fn from_weights(weights: &Nodes) -> Self {
        let mean = dot_product(weights, &GRID.points);
        let variance = dot_product(weights, &GRID.points.map(|point| (point - mean).powi(2)));
        Self(Belief { mean, variance })
    }

    /// An arm's chance on the task.
    pub(crate) fn chance_of_success(self, ability: Belief, shared: f64) -> f64 {
        let Self(task) = self;
        let variance = 1.0 - shared + ability.variance + shared * task.variance;
        normal_cdf((ability.mean + shared.sqrt() * task.mean) / variance.sqrt())
    }
}

/// The known facts about one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptEvidence {
    pub(crate) verdict: Option<bool>,
    pub(crate) right: Option<bool>,
}

impl AttemptEvidence {
    /// Reports whether the attempt was not checked and its result is not known either.
    pub(crate) fn says_nothing(self) -> bool {
        self.verdict.is_none() && self.right.is_none()
    }

    /// Likelihood of what was seen if the attempt was right, and if it was wrong.
    fn verdict_likelihoods(self, rates: Rates) -> (f64, f64) {
        let (if_right, if_wrong) =
            self.verdict.map_or((1.0, 1.0), |passed| rates.verdict_chances(passed));
        match self.right {
            None => (if_right, if_wrong),
            Some(true) => (if_right, 0.0),
            Some(false) => (0.0, if_wrong),
        }
    }

    /// Likelihood of what was seen, by difficulty.
    pub(crate) fn by_difficulty(self, chances: &Nodes, rates: Rates) -> Nodes {
        let (if_right, if_wrong) = self.verdict_likelihoods(rates);
        chances.map(|chance| (chance * if_right + (1.0 - chance) * if_wrong).max(LEAST_LIKELIHOOD))
    }

    /// Chance that the attempt is right once this was seen, by difficulty.
    pub(crate) fn right_given(self, chances: &Nodes, rates: Rates) -> Nodes {
        let (if_right, if_wrong) = self.verdict_likelihoods(rates);
        chances.map(|chance| {
            let right = chance * if_right;
            right / (right + (1.0 - chance) * if_wrong).max(LEAST_LIKELIHOOD)
        })
    }

    /// Slope and curvature, by the arm's mean ability, of the log-likelihood of what was seen on a task whose
    /// difficulty is distributed as `weights` (which the attempt itself has not touched).
    pub(crate) fn about_ability(
        self,
        ability: Belief,
        shared: f64,
        rates: Rates,
        weights: &Nodes,
    ) -> (f64, f64) {
        let (if_right, if_wrong) = self.verdict_likelihoods(rates);
        let lift = if_right - if_wrong;
        let (scale, pull) = scale_and_pull(ability, shared);
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for (weight, point) in weights.iter().zip(GRID.points) {
            let u = (ability.mean + pull * point) * scale;
            let peak = normal_density(u) * scale;
            total += weight * (if_wrong + lift * normal_cdf(u));
            first += weight * lift * peak;
            second -= weight * lift * peak * u * scale;
        }
        let slope = first / total.max(LEAST_LIKELIHOOD);
        let curvature = slope * slope - second / total.max(LEAST_LIKELIHOOD);
        (slope, curvature.max(0.0))
    }

    /// Returns how much likelier the observations would be if the arm had lost `drop` of its ability, as a log of
    /// odds.
    pub(crate) fn odds_of_drop(
        self,
        ability: Belief,
        shared: f64,
        rates: Rates,
        weights: &Nodes,
        drop: f64,
    ) -> f64 {
        let likelihood = |mean: f64| {
            let chances = chances_by_difficulty(Belief { mean, ..ability }, shared);
            dot_product(weights, &self.by_difficulty(&chances, rates))
        };
        (likelihood(ability.mean - drop) / likelihood(ability.mean)).ln()
    }
}

/// Multiplies evidence into weights.
pub(crate) fn multiply_weights(weights: &Nodes, likelihood: &Nodes) -> Nodes {
    std::array::from_fn(|node| weights[node] * likelihood[node])
}

/// The weights, summing to 1.
pub(crate) fn normalise_weights(weights: &Nodes) -> Nodes {
    let total = total_weight(weights).max(f64::MIN_POSITIVE);
    weights.map(|weight| weight / total)
}

/// Expectation, where the weights sum to 1.
pub(crate) fn dot_product(weights: &Nodes, values: &Nodes) -> f64 {
    sum_in_lanes(|node| weights[node] * values[node])
}

/// Returns the sum of the weights.
pub(crate) fn total_weight(weights: &Nodes) -> f64 {
    sum_in_lanes(|node| weights[node])
}

/// A sum in four lanes: in one, each addition would wait for the one before.
fn sum_in_lanes(term: impl Fn(usize) -> f64) -> f64 {
    const LANES: usize = 4;
    let mut sums = [0.0; LANES];
    for start in (0..NODES).step_by(LANES) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum += term(start + lane);
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

/// By how many standard deviations the log of a cost surprised. `expected` is the mean it was thought to be.
pub(crate) fn cost_surprise(cost: f64, expected: f64, tuning: &Tuning) -> Option<f64> {
    if cost <= 0.0 || expected <= 0.0 {
        return None;
    }
    let spread = tuning.cost_spread;
    let median = expected.ln() - spread * spread / 2.0;
    Some(((cost.ln() - median) / spread).clamp(-MOST_SURPRISE, MOST_SURPRISE))
}

/// The evidence of the attempts' costs about the task itself: by how many standard deviations of log cost it is a
/// dear one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskCost {
    /// Sum of the surprises, each by its weight.
    sum: f64,
    /// Inverse variances of what is not the task's own in them, together.
    weight: f64,
}

impl TaskCost {
    /// Takes in the surprise of an attempt. That of an arm whose own cost is in `doubt` (variance of its log) says
    /// less of the task.
    pub(crate) fn add_surprise(&mut self, surprise: Option<f64>, doubt: f64, tuning: &Tuning) {
        if let Some(surprise) = surprise {
            let noise = 1.0 - tuning.cost_echo + doubt / tuning.cost_spread.powi(2);
            self.sum += surprise / noise;
            self.weight += 1.0 / noise;
        }
    }

    /// Returns what the surprise says about the difficulty: dear tasks are hard ones.
    pub(crate) fn difficulty_likelihood(self, tuning: &Tuning) -> Nodes {
        const LEAST_SPREAD: f64 = 0.1;
        if self.weight == 0.0 {
            return [1.0; NODES];
        }
        let mean = self.sum / self.weight;
        let (echo, hardness) = (tuning.cost_echo, tuning.cost_hardness);
        let variance = (echo + 1.0 / self.weight - hardness * hardness).max(LEAST_SPREAD);
        GRID.points.map(|point| {
            let off = mean + hardness * point;
            (-0.5 * off * off / variance).exp()
        })
    }

    /// Factor on what another arm is expected to cost (the task's own part of the surprise, by regression).
    pub(crate) fn cost_factor(self, tuning: &Tuning) -> f64 {
        let (echo, spread) = (tuning.cost_echo, tuning.cost_spread);
        let share = echo / (1.0 + echo * self.weight);
        let explained = share * echo * self.weight;
        (spread * share * self.sum - spread * spread * explained / 2.0).exp()
    }
}
