//! The numbers a turn stays within, and the waits between attempts.

use std::time::Duration;

use gnoma_core::{ErrorKind, ProviderError, error_policy::RetryRule, session::AttemptLimit};

use crate::context::Strategy;

/// First wait before another attempt; doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest wait that is not asked for, before a call that broke is made again.
const LONGEST_BREAK: Duration = Duration::from_secs(8);
/// Longest wait that is not asked for, before a provider that has too much to do is asked again.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// So many waits in a row are as short as the provider asks for.
const OBEYED_WAITS: u32 = 3;
/// Most attempts at a call to a server that cannot be reached.
const UNREACHABLE_ATTEMPTS: u32 = 4;
/// Most attempts at a call that is met with silence: each takes minutes.
const SILENT_ATTEMPTS: u32 = 2;
/// The same where silence ends sooner, in all of its limits.
const SHORT_SILENCE: Duration = Duration::from_secs(60);
const SHORT_SILENT_ATTEMPTS: u32 = 3;
/// Most attempts at a call that is answered with what nobody can read, from the beginning: an address
/// that is wrong gives no better answer the next time.
const UNREADABLE_ATTEMPTS: u32 = 3;

/// Numbers a turn stays within.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most model calls of one turn.
    pub rounds: u32,
    /// Most attempts at a model call that breaks or fails inside the provider.
    pub attempts: u32,
    /// Longest time that all waits before one model call take together. Within it, a provider that is
    /// overloaded or limits the rate is asked again and again; one that asks for more is not waited for.
    pub patience: Duration,
    /// Most times an answer that the output limit cut off is continued.
    pub continuations: u32,
    /// Most times the machine puts the model right before it gives up.
    pub corrections: u32,
    /// Most calls of one answer that are run; the rest is refused.
    pub calls_per_round: usize,
    /// Longest silence before the first sign of an answer, where the server is not this user's own.
    pub first_byte: Duration,
    /// Longest wait for the first byte of an answer of a server of the user's own, which may have to load a
    /// model first.
    pub local_first_byte: Duration,
    /// Longest time within an answer in which nothing of it comes.
    pub silence: Duration,
    /// The time that running tools get to stop by themselves.
    pub grace: Duration,
    /// Tool results of more tokens go into the result store, if there is one. Files of a few hundred lines are
    /// below the limit: a file that is read in order to work on it should not need a second call.
    pub result_tokens: usize,
    /// The way to make room in a window that is about to be full.
    pub compaction: Strategy,
    /// The seed for the jitter of waits.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: 50,
            attempts: 8,
            patience: Duration::from_mins(5),
            continuations: 3,
            corrections: 3,
            calls_per_round: 128,
            first_byte: Duration::from_secs(120),
            local_first_byte: Duration::from_secs(300),
            silence: Duration::from_secs(300),
            grace: Duration::from_secs(3),
            result_tokens: 8_000,
            compaction: Strategy::default(),
            seed: 0x9E37_79B9_7F4A_7C15,
        }
    }
}

impl Limits {
    /// Returns the time to wait before attempt `attempt + 1`; `None` if there is no such attempt. `waited` is the
    /// time that earlier attempts have waited, and `is_begun` says whether part of the answer had arrived.
    ///
    /// The wait is what the provider asks for, a few times and then at least the following, or doubles with a jitter of a quarter either way, so that parallel
    /// sessions do not come back together.
    pub(super) fn retry_wait(
        &mut self,
        attempt: u32,
        waited: Duration,
        error: &ProviderError,
        is_begun: bool,
    ) -> Option<Duration> {
        let most = self.most_attempts(error, is_begun);
        if most.is_some_and(|most| attempt >= most) {
            return None;
        }
        let asked = error.retry_after.filter(|asked| !asked.is_zero());
        let longest = if most.is_none() { LONGEST_REST } else { LONGEST_BREAK };
        // A provider that keeps asking for a moment is asked less and less often.
        let more = attempt.checked_sub(OBEYED_WAITS).filter(|more| *more > 0);
        let wait = match (asked, more) {
            (None, _) => self.jittered_wait(attempt, longest),
            (Some(asked), None) => asked,
            (Some(asked), Some(more)) => asked.max(self.jittered_wait(more, longest)),
        };
        (waited + wait <= self.patience).then_some(wait)
    }

    /// Returns the limit on attempts at a call that fails in this way. `waited` is the time that all waits have
    /// taken.
    pub(super) fn attempt_limit(
        &self,
        error: &ProviderError,
        is_begun: bool,
        waited: Duration,
    ) -> AttemptLimit {
        let left = self.patience.saturating_sub(waited);
        self.most_attempts(error, is_begun).map_or_else(
            || AttemptLimit::WaitMs(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
            AttemptLimit::Attempts,
        )
    }

    /// Most attempts at a call that fails in this way; `None` while patience lasts.
    fn most_attempts(&self, error: &ProviderError, is_begun: bool) -> Option<u32> {
        // A time-out that the server tells of is no silence.
        let is_told = error.status.is_some() || error.code.is_some();
        let is_brief = self.first_byte.max(self.silence) <= SHORT_SILENCE;
        let most = match error.kind.policy().retry {
            RetryRule::Patient => return None,
            // A server that answers without an error answers no better the next time.
            RetryRule::Broken if !is_begun && error.kind == ErrorKind::Garbled => {
                UNREADABLE_ATTEMPTS
            }
            RetryRule::Broken => self.attempts,
            RetryRule::Unreadable if is_begun => self.attempts,
            RetryRule::Unreadable => UNREADABLE_ATTEMPTS,
            RetryRule::Unreachable => UNREACHABLE_ATTEMPTS,
            RetryRule::Silent if is_told => self.attempts,
            RetryRule::Silent if is_brief => SHORT_SILENT_ATTEMPTS,
            RetryRule::Silent => SILENT_ATTEMPTS,
            RetryRule::Never => 1,
        };
        Some(most.min(self.attempts))
    }

    fn jittered_wait(&mut self, attempt: u32, longest: Duration) -> Duration {
        let seed = &mut self.seed;
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        let base = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(8));
        let percent = 75 + u32::try_from(*seed % 51).unwrap_or(0);
        base.min(longest) * percent / 100
    }
}
