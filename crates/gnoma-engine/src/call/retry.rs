//! Retries: whether and when a failed call is attempted again, with back-off: on HTTP 429 (rate limit), a broken
//! connection, silence and the rest. What follows from an error's kind is in its policy; this is what the waits and
//! attempts so far make of it.

use std::time::Duration;

use gnoma_core::{ErrorKind, ProviderError, error_policy::RetryRule, session::AttemptLimit};

use crate::{limits::Limits, turn_context::TurnContext};

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

/// Returns the time to wait before attempt `attempt + 1`; `None` if there is no such attempt. `waited` is the time that
/// earlier attempts have waited, and `is_begun` says whether part of the answer had arrived.
///
/// The wait is what the provider asks for, a few times and then at least the following, or doubles with a jitter of a quarter either way, so that parallel
/// sessions do not come back together.
pub(super) fn next_wait(
    cx: &mut TurnContext,
    attempt: u32,
    waited: Duration,
    error: &ProviderError,
    is_begun: bool,
) -> Option<Duration> {
    let most = most_attempts(&cx.limits, error, is_begun);
    if most.is_some_and(|most| attempt >= most) {
        return None;
    }
    let asked = error.retry_after.filter(|asked| !asked.is_zero());
    let longest = if most.is_none() { LONGEST_REST } else { LONGEST_BREAK };
    // A provider that keeps asking for a moment is asked less and less often.
    let more = attempt.checked_sub(OBEYED_WAITS).filter(|more| *more > 0);
    let wait = match (asked, more) {
        (None, _) => jittered_wait(&mut cx.jitter, attempt, longest),
        (Some(asked), None) => asked,
        (Some(asked), Some(more)) => asked.max(jittered_wait(&mut cx.jitter, more, longest)),
    };
    (waited + wait <= cx.limits.patience).then_some(wait)
}

/// Returns the limit on attempts at a call that fails in this way. `waited` is the time that all waits have
/// taken.
pub(super) fn attempt_limit(
    limits: &Limits,
    waited: Duration,
    error: &ProviderError,
    is_begun: bool,
) -> AttemptLimit {
    let left = limits.patience.saturating_sub(waited);
    most_attempts(limits, error, is_begun).map_or_else(
        || AttemptLimit::WaitMs(u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        AttemptLimit::Attempts,
    )
}

fn jittered_wait(seed: &mut u64, attempt: u32, longest: Duration) -> Duration {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    let base = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(8));
    let percent = 75 + u32::try_from(*seed % 51).unwrap_or(0);
    base.min(longest) * percent / 100
}

/// Most attempts at a call that fails in this way; `None` while patience lasts.
fn most_attempts(limits: &Limits, error: &ProviderError, is_begun: bool) -> Option<u32> {
    // A time-out that the server tells of is no silence.
    let is_told = error.status.is_some() || error.code.is_some();
    let is_brief = limits.first_byte.max(limits.silence) <= SHORT_SILENCE;
    let most = match error.kind.policy().retry {
        RetryRule::Patient => return None,
        // A server that answers without an error answers no better the next time.
        RetryRule::Broken if !is_begun && error.kind == ErrorKind::Garbled => UNREADABLE_ATTEMPTS,
        RetryRule::Broken => limits.attempts,
        RetryRule::Unreadable if is_begun => limits.attempts,
        RetryRule::Unreadable => UNREADABLE_ATTEMPTS,
        RetryRule::Unreachable => UNREACHABLE_ATTEMPTS,
        RetryRule::Silent if is_told => limits.attempts,
        RetryRule::Silent if is_brief => SHORT_SILENT_ATTEMPTS,
        RetryRule::Silent => SILENT_ATTEMPTS,
        RetryRule::Never => 1,
    };
    Some(most.min(limits.attempts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_short_retry_after_waits_back_off() {
        let mut cx = TurnContext::new(Vec::new(), Limits::default());
        let mut waited = Duration::ZERO;
        let mut limited = ProviderError::new(ErrorKind::RateLimited, "p", "slow down");
        limited.retry_after = Some(Duration::from_secs(2));
        let mut attempts = 0;
        while let Some(wait) = next_wait(&mut cx, attempts + 1, waited, &limited, false) {
            attempts += 1;
            waited += wait;
            if attempts <= 3 {
                assert_eq!(wait, Duration::from_secs(2), "the provider's own wish");
            }
        }
        assert!((8..30).contains(&attempts), "{attempts} attempts in {waited:?}");
    }
}
