//! Beliefs about a number that depends on an arm and a kind of task, and that many arms and kinds share.
//!
//! The number of a pair is where the pair starts (kept elsewhere) plus three normal beliefs: how the arm differs
//! from its start everywhere, how the kind differs for all arms, and what is left to the pair alone. One outcome
//! moves all three, each in proportion to its own doubt (assumed-density filtering with a factored normal, as in
//! TrueSkill: Herbrich, Minka and Graepel, 2006). So an arm's outcomes teach about its other kinds and, through the
//! kind, about other arms. Nothing here knows what the number means.

use serde::{Deserialize, Serialize};

use crate::tuning::LevelVariances;

/// A normally distributed belief about a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Belief {
    /// The value that the belief is centred on.
    pub mean: f64,
    /// The doubt of the belief, squared.
    pub variance: f64,
}

/// No belief becomes surer than this: the world moves.
const LEAST_VARIANCE: f64 = 1e-4;
/// Nor less sure than this.
const MOST_VARIANCE: f64 = 4.0;
/// No learnt part strays further from its start than this.
const MOST_MEAN: f64 = 8.0;

impl Belief {
    /// Returns the belief before anything is learnt, with this variance.
    pub(crate) const fn with_zero_mean(variance: f64) -> Self {
        Self { mean: 0.0, variance }
    }

    pub(crate) fn sum_with(self, other: Self) -> Self {
        Self { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }

    /// Reports whether the belief is one that learning can have made; one that a file contains may not be.
    pub(crate) fn is_sound(self) -> bool {
        self.mean.abs() <= MOST_MEAN && (0.0..=MOST_VARIANCE).contains(&self.variance)
    }

    /// One step of filtering: `slope` and `curvature` are of the log-likelihood, by the number itself.
    fn apply_gradient(&mut self, slope: f64, curvature: f64) {
        self.mean = (self.mean + self.variance * slope).clamp(-MOST_MEAN, MOST_MEAN);
        let surer = self.variance - self.variance * self.variance * curvature;
        self.variance = surer.max(LEAST_VARIANCE.min(self.variance));
    }

    fn widen_variance(&mut self, by: f64) {
        self.variance = (self.variance + by).min(MOST_VARIANCE);
    }
}

/// The effects learnt for a number, by arm, by kind and by pair. Indices are the router's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub(crate) arms: Vec<Belief>,
    pub(crate) kinds: Vec<Belief>,
    /// By arm, then by kind.
    pub(crate) pairs: Vec<Vec<Belief>>,
}

impl Effects {
    /// Returns the belief about what the arm and the pair do not share with other arms.
    pub(crate) fn unshared_belief(
        &self,
        arm: usize,
        kind: Option<usize>,
        doubt: LevelVariances,
    ) -> Belief {
        let alone =
            |part: Option<Belief>, variance| part.unwrap_or(Belief::with_zero_mean(variance));
        let row = self.pairs.get(arm).zip(kind);
        alone(self.arms.get(arm).copied(), doubt.arm)
            .sum_with(alone(row.and_then(|(row, kind)| row.get(kind)).copied(), doubt.pair))
    }

    /// Returns the belief about what the kind changes for all arms.
    pub(crate) fn of_kind(&self, kind: Option<usize>, doubt: LevelVariances) -> Belief {
        kind.and_then(|kind| self.kinds.get(kind))
            .copied()
            .unwrap_or(Belief::with_zero_mean(doubt.kind))
    }

    /// Takes in one observation of the pair.
    pub(crate) fn apply_gradient(
        &mut self,
        arm: usize,
        kind: Option<usize>,
        slope: f64,
        curvature: f64,
    ) {
        let parts = [
            self.arms.get_mut(arm),
            kind.and_then(|kind| self.kinds.get_mut(kind)),
            self.pairs.get_mut(arm).zip(kind).and_then(|(row, kind)| row.get_mut(kind)),
        ];
        for part in parts.into_iter().flatten() {
            part.apply_gradient(slope, curvature);
        }
    }

    /// The arm is no longer what it was.
    pub(crate) fn widen_arm(&mut self, arm: usize, doubt: LevelVariances) {
        if let Some(belief) = self.arms.get_mut(arm) {
            belief.widen_variance(doubt.arm);
        }
        for belief in self.pairs.get_mut(arm).into_iter().flatten() {
            belief.widen_variance(doubt.pair);
        }
    }
}
