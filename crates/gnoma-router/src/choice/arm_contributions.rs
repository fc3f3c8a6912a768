//! Whose work an attempt is, if several arms took part. Pure.
//!
//! Every complete answer counts one, and so does every change that it made. The arm that finishes the attempt is
//! credited with its own share and no more. What an arm did before it failed is credited to no one, because that
//! arm never said that it was done.

use gnoma_core::ModelRef;

/// The share of each arm in the work of the current attempt.
#[derive(Debug, Default)]
pub struct ArmContributions(Vec<(ModelRef, u32)>);

impl ArmContributions {
    /// The arm has given an answer, or changed something.
    pub fn credit_arm(&mut self, arm: &ModelRef) {
        match self.0.iter_mut().find(|(name, _)| name == arm) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.0.push((arm.clone(), 1)),
        }
    }

    /// The others' work is thrown away.
    pub fn keep_only(&mut self, arm: &ModelRef) {
        self.0.retain(|(name, _)| name == arm);
    }

    /// The arm's part of it, above 0 and up to 1: who did nothing yet counts as if about to begin.
    #[must_use]
    pub fn share_of(&self, arm: &ModelRef) -> f64 {
        let sum = |own: bool| -> u32 {
            let counted = self.0.iter().filter(|(name, _)| (name == arm) == own);
            counted.map(|(_, count)| *count).fold(0, u32::saturating_add)
        };
        let own = f64::from(sum(true).max(1));
        own / (own + f64::from(sum(false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_contribution_share_is_relative_to_all_answers() {
        let [one, other] =
            ["one", "other"].map(|model| ModelRef { provider: "p".into(), model: model.into() });
        let mut parts = ArmContributions::default();
        assert_eq!(parts.share_of(&one), 1.0);
        for arm in [&one, &one, &one, &other] {
            parts.credit_arm(arm);
        }
        assert_eq!((parts.share_of(&one), parts.share_of(&other)), (0.75, 0.25));
        parts.keep_only(&other);
        assert_eq!(parts.share_of(&other), 1.0);
    }
}
