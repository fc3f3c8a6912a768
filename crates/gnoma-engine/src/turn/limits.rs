//! The numbers a turn stays within, and the waits between attempts.

use std::time::Duration;

use gnoma_core::ProviderError;

/// First wait before another attempt; doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Numbers a turn stays within.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most model calls of one turn.
    pub rounds: u32,
    /// Most attempts at one model call.
    pub attempts: u32,
    /// Most times an answer that the output limit cut off is continued.
    pub continuations: u32,
    /// Most times the machine puts the model right before it gives up.
    pub corrections: u32,
    /// Most calls of one answer that are run; the rest is refused.
    pub calls_per_round: usize,
    /// Longest wait before another attempt. A provider that asks for more is not waited for.
    pub wait_max: Duration,
    /// How long running tools get to stop by themselves.
    pub grace: Duration,
    /// Tool results of more tokens are put into the result store, where there is one. Files of a few hundred
    /// lines are below it: what is read to be worked on should not need a second call.
    pub result_tokens: usize,
    /// Where the jitter of waits starts from.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: 50,
            attempts: 4,
            continuations: 3,
            corrections: 3,
            calls_per_round: 128,
            wait_max: Duration::from_secs(60),
            grace: Duration::from_secs(3),
            result_tokens: 8_000,
            seed: 0x9E37_79B9_7F4A_7C15,
        }
    }
}

impl Limits {
    /// How long to wait before attempt `attempt + 1`: what the provider asks for, else doubling with
    /// a jitter of a quarter either way, so that parallel sessions do not come back together.
    pub(super) fn wait(&mut self, attempt: u32, error: &ProviderError) -> Duration {
        if let Some(asked) = error.retry_after {
            return asked;
        }
        let seed = &mut self.seed;
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        let base = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(8));
        let percent = 75 + u32::try_from(*seed % 51).unwrap_or(0);
        base.min(self.wait_max) * percent / 100
    }
}
