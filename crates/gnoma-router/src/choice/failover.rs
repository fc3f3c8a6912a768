//! Decides whether a failed call goes to another arm. Pure.
//!
//! The same arm is retried if that costs less: after a temporary failure, a warm prompt cache is worth a short
//! wait, and without another arm there is no choice.

use std::time::Duration;

use gnoma_core::ProviderError;

/// A warm cache that saves this much is worth a short wait.
const CACHE_WORTH_A_WAIT_MICRO_USD: u64 = 10_000;
/// The longest such wait.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// The reaction to a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverAction {
    /// The turn continues with the same arm or ends, as if there were no other arm.
    Stay,
    /// Another arm is asked.
    Move,
}

/// A failed call and its circumstances.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// The error with which the call failed.
    pub error: &'a ProviderError,
    /// Number of the attempt that failed, from 1.
    pub attempt: u32,
    /// Part of the answer had arrived.
    pub has_content: bool,
    /// Micro-dollars that the arm's prompt cache saves on the same request.
    pub cached_micro_usd: u64,
}

/// Decides whether a failed call moves to another arm or stays with this one.
#[must_use]
pub fn decide_failover(failure: Failure<'_>) -> FailoverAction {
    let Failure { error, attempt, has_content, cached_micro_usd } = failure;
    if !error.kind.policy().another_model {
        return FailoverAction::Stay;
    }
    let wait = error.retry_after.unwrap_or(Duration::from_secs(1));
    let waits_briefly = error.kind.is_transient() && attempt == 1 && wait <= SHORT_WAIT;
    let is_warm = cached_micro_usd >= CACHE_WORTH_A_WAIT_MICRO_USD;
    if waits_briefly && is_warm && !has_content {
        FailoverAction::Stay
    } else {
        FailoverAction::Move
    }
}

/// The reason in a few words, for the line that names the change.
#[must_use]
pub fn describe_failure(error: &ProviderError, has_content: bool) -> String {
    let broke = if has_content { " in the middle of the answer" } else { "" };
    match error.status {
        Some(status) => format!("{}{broke} (HTTP {status})", error.kind),
        None => format!("{}{broke}", error.kind),
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::ErrorKind;

    use super::*;

    fn error(kind: ErrorKind) -> ProviderError {
        ProviderError::new(kind, "p", "")
    }

    fn decide(
        error: &ProviderError,
        attempt: u32,
        has_content: bool,
        cached: u64,
    ) -> FailoverAction {
        decide_failover(Failure { error, attempt, has_content, cached_micro_usd: cached })
    }

    #[test]
    fn failover_moves_to_another_model_unless_a_short_retry_is_cheaper() {
        let busy = error(ErrorKind::Overloaded);
        assert_eq!(decide(&busy, 1, false, 0), FailoverAction::Move);
        assert_eq!(decide(&busy, 1, false, 50_000), FailoverAction::Stay);
        assert_eq!(decide(&busy, 2, false, 50_000), FailoverAction::Move, "it did not pass");
        assert_eq!(
            decide(&busy, 1, true, 50_000),
            FailoverAction::Move,
            "what was shown must be taken back"
        );
        let mut limited = error(ErrorKind::RateLimited);
        limited.retry_after = Some(Duration::from_secs(30));
        assert_eq!(decide(&limited, 1, false, 50_000), FailoverAction::Move, "too long");
        assert_eq!(decide(&error(ErrorKind::Quota), 1, false, 50_000), FailoverAction::Move);
        assert_eq!(decide(&error(ErrorKind::Cancelled), 1, false, 0), FailoverAction::Stay);
    }
}
