//! What the shell tools share.

use std::time::Duration;

use super::{jobs::Jobs, shell::Shell};

/// Shortest time-out a call can ask for, in seconds.
const MIN_TIMEOUT_SECONDS: f64 = 1.0;
/// Longest time-out a call can ask for, in seconds; what takes longer is for the background.
const MAX_TIMEOUT_SECONDS: f64 = 3600.0;
/// The least time-out of a model that is read as milliseconds, in which other programs' tools have it. As seconds it
/// would be many hours.
const LEAST_MILLISECONDS: f64 = 30_000.0;

/// The state that the shell tools share.
#[derive(Debug)]
pub(super) struct ShellTools {
    pub(super) shell: Shell,
    pub(super) default_timeout: Duration,
    pub(super) jobs: Jobs,
}

/// Returns the time that a command may take which asks for this time-out. People who write steps of tasks mean seconds.
pub(super) fn read_time_limit(timeout: f64, is_of_step: bool) -> Duration {
    let is_milliseconds = timeout >= LEAST_MILLISECONDS && !is_of_step;
    let seconds = if is_milliseconds { timeout / 1000.0 } else { timeout };
    Duration::from_secs_f64(seconds.clamp(MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_in_milliseconds_is_distinguished_from_seconds() {
        for (timeout, is_of_step, seconds) in [
            (0.0, false, 1),
            (30.0, false, 30),
            (3600.0, false, 3600),
            (7200.0, false, 3600),
            (120_000.0, false, 120),
            (120_000.0, true, 3600),
        ] {
            let limit = read_time_limit(timeout, is_of_step);
            assert_eq!(limit, Duration::from_secs(seconds), "{timeout}");
        }
    }
}
