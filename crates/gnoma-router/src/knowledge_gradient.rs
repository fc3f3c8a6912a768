//! What knowing an arm better is worth, for tasks to come: the knowledge gradient of several trials at once (Frazier
//! and Powell, 2010). It is nothing for an arm well known, or so far behind that no result would change a choice.

use crate::{
    beliefs::Estimate,
    probit::{normal_cdf, normal_density},
};

/// Trials that a first one is taken to begin: a single outcome seldom changes a choice.
const TRIALS: f64 = 8.0;
/// Variance of one outcome, on the probit scale at middling chances (π/2).
const OUTCOME_VARIANCE: f64 = std::f64::consts::FRAC_PI_2;
/// Share of an arm's quality that a cascade's value feels, where verdicts let others make up for it.
const CHECKED_SHARE: f64 = 0.5;

impl Estimate {
    /// Standard deviation that [`TRIALS`] would take from the chance to be right.
    pub(crate) fn trial_spread(&self, checked: bool) -> f64 {
        let learnt =
            self.own_variance * self.own_variance / (self.own_variance + OUTCOME_VARIANCE / TRIALS);
        let share = if checked { CHECKED_SHARE } else { 1.0 };
        share * learnt.sqrt() * normal_density(self.ability.mean)
    }
}

/// Dollars that one trial now is worth on `horizon` later tasks, if the arm is `gap` dollars from the best other
/// arm and its value may turn out `spread` dollars off.
pub(crate) fn trial_worth(gap: f64, spread: f64, horizon: f64) -> f64 {
    if spread <= 0.0 || !gap.is_finite() {
        return 0.0;
    }
    let behind = gap / spread;
    let gain = spread * (normal_density(behind) - behind * (1.0 - normal_cdf(behind)));
    (horizon / TRIALS * gain).max(0.0)
}
