//! How far the verifier (the project's checks, a reviewing arm) can be trusted: learnt from what turned out.

use serde::{Deserialize, Serialize};

use crate::tuning::Tuning;

/// Counts of verdicts, by whether the attempt was right. Fractions come from attempts whose truth is only likely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verifier {
    /// Right attempts it passed, and all right attempts.
    pub right: (f64, f64),
    /// Wrong attempts it passed, and all wrong attempts.
    pub wrong: (f64, f64),
}

/// Chances that the verifier passes an attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    pub(crate) right: f64,
    pub(crate) wrong: f64,
}

/// Rates are kept this far from 0 and 1: no verifier is beyond doubt.
const EDGE: f64 = 0.01;

impl Verifier {
    pub(crate) fn new(tuning: &Tuning) -> Self {
        let weight = tuning.verifier.weight;
        Self {
            right: (tuning.verifier.passes_right * weight, weight),
            wrong: (tuning.verifier.passes_wrong * weight, weight),
        }
    }

    /// Reports whether these are counts that learning can have made.
    pub(crate) fn is_sound(&self) -> bool {
        [self.right, self.wrong]
            .iter()
            .all(|(passed, all)| *passed >= 0.0 && passed <= all && *all > 0.0 && all.is_finite())
    }

    /// The rates. A verifier that passes wrong work more readily than right work says nothing.
    pub(crate) fn rates(&self) -> Rates {
        let right = (self.right.0 / self.right.1).clamp(EDGE, 1.0 - EDGE);
        let wrong = (self.wrong.0 / self.wrong.1).clamp(EDGE, 1.0 - EDGE);
        Rates { right, wrong: wrong.min(right) }
    }

    /// Takes in a verdict on an attempt that was right with this probability.
    pub(crate) fn record_verdict(&mut self, passed: bool, right: f64) {
        let pass = f64::from(u8::from(passed));
        self.right.0 += pass * right;
        self.right.1 += right;
        self.wrong.0 += pass * (1.0 - right);
        self.wrong.1 += 1.0 - right;
    }
}

impl Rates {
    /// The rates where no attempt is checked.
    pub(crate) const UNCHECKED: Self = Self { right: 0.5, wrong: 0.5 };

    /// Chance of this verdict on a right and on a wrong attempt.
    pub(crate) fn verdict_chances(self, passed: bool) -> (f64, f64) {
        if passed { (self.right, self.wrong) } else { (1.0 - self.right, 1.0 - self.wrong) }
    }
}
