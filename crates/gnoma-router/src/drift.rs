//! Notices that an arm is no longer what it was: a model swapped behind the same name, an outage of quality, a new
//! price. Page's cumulative sums (1954), one for "worse" on what outcomes say, two for "dearer" and "cheaper" on
//! what attempts cost. Small steady drift needs no test: beliefs keep some doubt and follow.

use serde::{Deserialize, Serialize};

use crate::tuning::Tuning;

/// The sums of one arm. Each is evidence for a change, in natural logarithms of odds, and never below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriftWatch {
    worse: f64,
    dearer: f64,
    cheaper: f64,
}

/// One outcome moves a sum by at most this much: no single task proves a change.
const MOST_STEP: f64 = 1.5;

/// The kind of change that was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DriftChange {
    Quality,
    Cost,
}

impl DriftWatch {
    /// Takes in how much likelier the outcome was had the arm dropped, as a log of odds.
    pub(crate) fn observe_outcome(&mut self, odds: f64, tuning: &Tuning) -> Option<DriftChange> {
        self.worse = (self.worse + odds.clamp(-MOST_STEP, MOST_STEP)).max(0.0);
        self.check_alarm(self.worse, tuning, DriftChange::Quality)
    }

    /// Takes in by how many standard deviations the log of the cost surprised.
    pub(crate) fn observe_cost(&mut self, surprise: f64, tuning: &Tuning) -> Option<DriftChange> {
        let slack = tuning.drift.slack;
        let step = |sum: f64, by: f64| (sum + (by - slack).min(MOST_STEP)).max(0.0);
        self.dearer = step(self.dearer, surprise);
        self.cheaper = step(self.cheaper, -surprise);
        self.check_alarm(self.dearer.max(self.cheaper), tuning, DriftChange::Cost)
    }

    fn check_alarm(
        &mut self,
        sum: f64,
        tuning: &Tuning,
        change: DriftChange,
    ) -> Option<DriftChange> {
        (sum > tuning.drift.alarm).then(|| {
            *self = Self::default();
            change
        })
    }
}
