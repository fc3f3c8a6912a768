//! Attempts at a model call (retries), and what limits them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;

/// What limits the attempts at a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum AttemptLimit {
    /// There are at most so many.
    Attempts(u32),
    /// Further waits may take so many milliseconds together.
    WaitMs(u64),
}

/// Describes the attempt that follows: `attempt 2 of 8`, or `attempt 5, for up to 4m more`.
#[must_use]
pub fn describe_attempt(attempt: u32, limit: Option<AttemptLimit>) -> String {
    match limit {
        Some(AttemptLimit::Attempts(most)) => format!("attempt {attempt} of {most}"),
        Some(AttemptLimit::WaitMs(left)) => {
            let left = duration::format_duration(Duration::from_secs(left / 1_000));
            format!("attempt {attempt}, for up to {left} more")
        }
        None => format!("attempt {attempt}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_described_with_their_limit() {
        assert_eq!(describe_attempt(2, Some(AttemptLimit::Attempts(8))), "attempt 2 of 8");
        let told = describe_attempt(5, Some(AttemptLimit::WaitMs(240_900)));
        assert_eq!(told, "attempt 5, for up to 4m more");
        assert_eq!(describe_attempt(3, None), "attempt 3");
    }
}
