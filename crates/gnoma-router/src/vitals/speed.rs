//! How fast arms answer, as seen.

use std::{collections::BTreeMap, time::Duration};

use gnoma_core::ModelRef;
use serde::{Deserialize, Serialize};

/// The weight of the newest answer in the average.
const NEWEST: f64 = 0.3;
/// Tokens of a typical answer.
const TYPICAL_TOKENS: f64 = 500.0;
/// Answers below this many tokens say nothing about speed.
const FEWEST_TOKENS: u64 = 20;

/// Most arms that are remembered; of more, the one that was seen longest ago is forgotten.
const MOST_ARMS: usize = 512;
/// An arm that nobody saw for this long may have become another.
const FRESH_MS: i64 = 30 * 86_400_000;
/// No wait and no rate is larger; what a file says may be.
const MOST_SAID: f64 = 1e6;

/// Means that favour what is new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Seconds to the first token.
    pub first_seconds: f64,
    /// Tokens a second after that; 0 where nothing was measured.
    pub tokens_per_second: f64,
    /// Answers that were seen.
    pub answers: u32,
    /// The time of the last answer, in milliseconds since 1970.
    pub seen_ms: i64,
}

impl Speed {
    fn record_answer(&mut self, first: Duration, whole: Duration, tokens: u64) {
        let weight = if self.answers == 0 { 1.0 } else { NEWEST };
        self.first_seconds += weight * (first.as_secs_f64() - self.first_seconds);
        let writing = whole.saturating_sub(first).as_secs_f64();
        if tokens >= FEWEST_TOKENS && writing > 0.0 {
            let rate = (tokens as f64 / writing).min(MOST_SAID);
            let weight = if self.tokens_per_second == 0.0 { 1.0 } else { NEWEST };
            self.tokens_per_second += weight * (rate - self.tokens_per_second);
        }
        self.answers = self.answers.saturating_add(1);
    }

    /// Seconds to the end of a typical answer.
    #[must_use]
    pub fn seconds_to_answer(&self) -> f64 {
        let writing = if self.tokens_per_second > 0.0 {
            TYPICAL_TOKENS / self.tokens_per_second
        } else {
            0.0
        };
        self.first_seconds + writing
    }

    /// Reports whether the numbers are possible for real answers.
    fn is_sound(&self) -> bool {
        let can_be = |number: f64| (0.0..=MOST_SAID).contains(&number);
        can_be(self.first_seconds) && can_be(self.tokens_per_second)
    }
}

/// The speeds of all arms. To be kept from one start to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(ModelRef, Speed)>", into = "Vec<(ModelRef, Speed)>")]
pub struct Speeds(BTreeMap<(String, String), Speed>);

impl From<Vec<(ModelRef, Speed)>> for Speeds {
    fn from(list: Vec<(ModelRef, Speed)>) -> Self {
        let sound = list.into_iter().filter(|(_, speed)| speed.is_sound()).take(MOST_ARMS);
        Self(gnoma_core::sort::to_map(sound.map(|(arm, speed)| (arm_key(&arm), speed))))
    }
}

impl From<Speeds> for Vec<(ModelRef, Speed)> {
    fn from(speeds: Speeds) -> Self {
        let named = |((provider, model), speed)| (ModelRef { provider, model }, speed);
        speeds.0.into_iter().map(named).collect()
    }
}

impl Speeds {
    /// An answer of the arm, which was over at `at_ms`.
    pub(super) fn record_answer(
        &mut self,
        arm: &ModelRef,
        [first, whole]: [Duration; 2],
        tokens: u64,
        at_ms: i64,
    ) {
        let speed = self.0.entry(arm_key(arm)).or_default();
        speed.record_answer(first, whole, tokens);
        speed.seen_ms = at_ms;
        if self.0.len() > MOST_ARMS {
            let oldest = self.0.iter().min_by_key(|(_, speed)| speed.seen_ms);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.0.remove(&key);
            }
        }
    }

    /// Returns the speed that the arm has shown.
    #[must_use]
    pub fn for_arm(&self, arm: &ModelRef) -> Option<Speed> {
        self.0.get(&arm_key(arm)).copied()
    }

    /// Forgets what was seen too long ago, or later than now by a clock that was ahead.
    pub(super) fn forget_stale(&mut self, now_ms: i64) {
        let is_fresh =
            |speed: &Speed| (0..FRESH_MS).contains(&now_ms.saturating_sub(speed.seen_ms));
        self.0.retain(|_, speed| is_fresh(speed));
    }
}

fn arm_key(arm: &ModelRef) -> (String, String) {
    (arm.provider.clone(), arm.model.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_speed_average_weighs_newest_answers_most() {
        let mut speed = Speed::default();
        speed.record_answer(Duration::from_millis(500), Duration::from_millis(1_500), 100);
        assert_eq!((speed.first_seconds, speed.tokens_per_second), (0.5, 100.0));
        assert!((speed.seconds_to_answer() - 5.5).abs() < 1e-9);
        for _ in 0..20 {
            speed.record_answer(Duration::from_secs(2), Duration::from_secs(2), 3);
        }
        assert!(speed.first_seconds > 1.9 && speed.tokens_per_second == 100.0);
    }

    #[test]
    fn model_speed_records_are_bounded_and_reject_invalid_values() {
        let arm = |number: usize| ModelRef { provider: "p".into(), model: format!("m{number}") };
        let mut speeds = Speeds::default();
        let second = Duration::from_secs(1);
        for number in 0..MOST_ARMS + 5 {
            let at_ms = i64::try_from(number).unwrap();
            speeds.record_answer(&arm(number), [second, second * 2], 100, at_ms);
        }
        assert_eq!((speeds.0.len(), speeds.for_arm(&arm(0))), (MOST_ARMS, None));
        let text = serde_json::to_string(&speeds).unwrap();
        assert_eq!(serde_json::from_str::<Speeds>(&text).unwrap(), speeds);
        let odd = text.replace("\"first_seconds\":1.0", "\"first_seconds\":-1.0");
        assert_eq!(serde_json::from_str::<Speeds>(&odd).unwrap(), Speeds::default());
        speeds.forget_stale(100);
        assert_eq!(speeds.0.len(), 96, "the others are of a clock that was ahead");
        speeds.forget_stale(FRESH_MS * 2);
        assert_eq!(speeds, Speeds::default());
    }
}
