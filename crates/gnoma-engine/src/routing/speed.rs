//! How fast an arm answers, as seen.

use std::time::Duration;

/// How much the newest answer counts.
const NEWEST: f64 = 0.3;
/// Tokens of a typical answer.
const TYPICAL_TOKENS: f64 = 500.0;
/// Answers below this many tokens say nothing about speed.
const FEWEST_TOKENS: u64 = 20;

/// Means that favour what is new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Speed {
    /// Seconds to the first token.
    pub first_seconds: f64,
    /// Tokens a second after that; 0 where nothing was measured.
    pub tokens_per_second: f64,
    answers: u32,
}

impl Speed {
    pub(super) fn see(&mut self, first: Duration, whole: Duration, tokens: u64) {
        let weight = if self.answers == 0 { 1.0 } else { NEWEST };
        self.first_seconds += weight * (first.as_secs_f64() - self.first_seconds);
        let writing = whole.saturating_sub(first).as_secs_f64();
        if tokens >= FEWEST_TOKENS && writing > 0.0 {
            let rate = tokens as f64 / writing;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_answers_count_most() {
        let mut speed = Speed::default();
        speed.see(Duration::from_millis(500), Duration::from_millis(1_500), 100);
        assert_eq!((speed.first_seconds, speed.tokens_per_second), (0.5, 100.0));
        assert!((speed.seconds_to_answer() - 5.5).abs() < 1e-9);
        for _ in 0..20 {
            speed.see(Duration::from_secs(2), Duration::from_secs(2), 3);
        }
        assert!(speed.first_seconds > 1.9 && speed.tokens_per_second == 100.0);
    }
}
