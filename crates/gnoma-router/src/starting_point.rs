//! Where a pair starts before anything is learnt: what others measured of it, else what its price, its age and the
//! other arms suggest.

use crate::{
    arm::{Prior, Published},
    effects::Belief,
    probit::{normal_density, normal_quantile},
    task::TaskKind,
    tuning::{LevelVariances, Tuning},
};

/// Costs below this many dollars are taken for it where a logarithm is needed.
pub(crate) const LEAST_COST: f64 = 1e-4;
/// Quality is kept this far from 0 and 1 where its variance is asked for.
const QUALITY_EDGE: f64 = 0.05;
/// Beyond this many years, older does not mean worse still.
const MOST_YEARS: f64 = 2.0;
const DAYS_PER_YEAR: f64 = 365.25;

/// The two numbers learnt of every pair.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StartingPoint {
    /// Probit of the chance to get a task right.
    pub(crate) ability: f64,
    /// Log of mean dollars per task.
    pub(crate) log_cost: f64,
}

impl StartingPoint {
    pub(crate) fn sum_with(self, other: Self) -> Self {
        Self { ability: self.ability + other.ability, log_cost: self.log_cost + other.log_cost }
    }

    fn difference_from(self, other: Self) -> Self {
        self.sum_with(other.scale_by(-1.0))
    }

    fn scale_by(self, by: f64) -> Self {
        Self { ability: self.ability * by, log_cost: self.log_cost * by }
    }

    fn from_prior(prior: &Prior) -> Self {
        Self { ability: normal_quantile(prior.quality), log_cost: prior.cost.max(LEAST_COST).ln() }
    }
}

/// Returns the starting point that facts alone suggest. `newest` is the release of the newest model known.
pub(crate) fn from_facts(facts: &Published, newest: Option<i32>, tuning: &Tuning) -> StartingPoint {
    let guessed_price = match facts.open_weights {
        Some(false) => tuning.closed_price,
        Some(true) => tuning.open_price,
        None => tuning.reference_price,
    };
    let price = facts
        .output_price
        .filter(|price| price.is_finite() && *price > 0.0)
        .unwrap_or(guessed_price);
    let log_price = (price / tuning.reference_price).ln();
    let years = facts.released.zip(newest).map_or(tuning.assumed_age_years, |(day, newest)| {
        (f64::from(newest) - f64::from(day)) / DAYS_PER_YEAR
    });
    StartingPoint {
        ability: tuning.ability + tuning.ability_per_log_price * log_price
            - tuning.ability_per_year * years.clamp(0.0, MOST_YEARS),
        log_cost: tuning.log_cost + tuning.log_cost_per_log_price * log_price,
    }
}

/// Returns the starting point of an arm over all kinds.
pub(crate) fn general_start(
    known: &Published,
    newest: Option<i32>,
    tuning: &Tuning,
) -> StartingPoint {
    known
        .overall
        .as_ref()
        .map_or_else(|| from_facts(known, newest, tuning), StartingPoint::from_prior)
}

/// Returns how a kind differs for all arms, by the priors of those that have one; shrunk as if one more arm said
/// "not". The flag says whether any has.
pub(crate) fn of_kind<'a>(
    kind: &TaskKind,
    arms: impl Iterator<Item = (&'a Published, StartingPoint)>,
) -> (StartingPoint, bool) {
    let (mut sum, mut count) = (StartingPoint::default(), 0.0);
    for (known, general) in arms {
        if let Some(prior) = known.by_kind.get(kind) {
            sum = sum.sum_with(StartingPoint::from_prior(prior).difference_from(general));
            count += 1.0;
        }
    }
    (sum.scale_by(1.0 / (count + 1.0)), count > 0.0)
}

/// Returns where a pair starts, and how unsure its own part is of ability and of log cost.
///
/// A prior is a measurement with the error of its sample; it is weighed against what the arm and the kind suggest.
pub(crate) fn of_pair(
    prior: Option<&Prior>,
    guess: StartingPoint,
    tuning: &Tuning,
) -> (StartingPoint, Belief, Belief) {
    let LevelVariances { pair, .. } = tuning.cold;
    let cost_pair = tuning.cost_cold.pair;
    let Some(prior) = prior else {
        return (guess, Belief::with_zero_mean(pair), Belief::with_zero_mean(cost_pair));
    };
    let told = StartingPoint::from_prior(prior);
    let quality = prior.quality.clamp(QUALITY_EDGE, 1.0 - QUALITY_EDGE);
    let of_one_task = quality * (1.0 - quality) / normal_density(normal_quantile(quality)).powi(2);
    let error = of_one_task / prior.tasks.max(1.0);
    let cost_error = tuning.cost_spread.powi(2) / prior.tasks.max(1.0);
    let trust = pair / (pair + error);
    let cost_trust = cost_pair / (cost_pair + cost_error);
    let start = StartingPoint {
        ability: guess.ability + trust * (told.ability - guess.ability),
        log_cost: guess.log_cost + cost_trust * (told.log_cost - guess.log_cost),
    };
    let doubt = (trust * error).max(of_one_task / tuning.prior_tasks) + tuning.warm.pair;
    (
        start,
        Belief::with_zero_mean(doubt),
        Belief::with_zero_mean(cost_trust * cost_error + tuning.cost_warm.pair),
    )
}
