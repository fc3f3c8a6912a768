//! Formats durations for people: `5s`, `2m 5s`, `5m ago`. Only what is shown; settings parse their own.

use std::time::Duration;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;
/// From here on, days say more than hours.
const DAYS_S: u64 = 2 * DAY_S;
/// Times below this are measured to a tenth of a second.
const EXACT_S: u64 = 10;

/// A time in whole seconds, in its two largest units: `250ms`, `5s`, `2m 5s`, `3h 10m`, `4 days`.
#[must_use]
pub fn format_duration(time: Duration) -> String {
    match time.as_secs() {
        0 if !time.is_zero() => format!("{}ms", time.as_millis()),
        seconds @ 0..MINUTE_S => format!("{seconds}s"),
        seconds @ MINUTE_S..HOUR_S => {
            join_units((seconds / MINUTE_S, "m"), (seconds % MINUTE_S, "s"))
        }
        seconds @ HOUR_S..DAYS_S => {
            join_units((seconds / HOUR_S, "h"), (seconds % HOUR_S / MINUTE_S, "m"))
        }
        seconds @ DAYS_S.. => format!("{} days", seconds / DAY_S),
    }
}

/// A measured time: to a tenth of a second below ten, such as `3.2s`, then as [`format_duration`].
#[must_use]
pub fn format_precise_duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..EXACT_S => format!("{seconds}.{}s", time.subsec_millis() / 100),
        seconds => format_duration(Duration::from_secs(seconds)),
    }
}

/// Formats the time since something happened in its largest unit: `just now`, `5m ago`, `2h ago`, `3 days ago`.
#[must_use]
pub fn format_age(since_ms: i64) -> String {
    let seconds = u64::try_from(since_ms).unwrap_or_default() / 1_000;
    match seconds {
        0..MINUTE_S => "just now".to_owned(),
        MINUTE_S..HOUR_S => format!("{}m ago", seconds / MINUTE_S),
        HOUR_S..DAY_S => format!("{}h ago", seconds / HOUR_S),
        DAY_S..DAYS_S => "1 day ago".to_owned(),
        DAYS_S.. => format!("{} days ago", seconds / DAY_S),
    }
}

fn join_units((large, of): (u64, &str), (small, unit): (u64, &str)) -> String {
    if small == 0 { format!("{large}{of}") } else { format!("{large}{of} {small}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_duration_shows_the_two_largest_units() {
        let all = [0, 59, 120, 125, 598, 7_380, 86_400, 172_800]
            .map(|s| format_duration(Duration::from_secs(s)));
        assert_eq!(all, ["0s", "59s", "2m", "2m 5s", "9m 58s", "2h 3m", "24h", "2 days"]);
        assert_eq!(format_duration(Duration::from_millis(250)), "250ms");
    }

    #[test]
    fn format_precise_duration_shows_tenths_of_short_times() {
        let all = [0, 340, 3_240, 59_900, 65_000]
            .map(|ms| format_precise_duration(Duration::from_millis(ms)));
        assert_eq!(all, ["0.0s", "0.3s", "3.2s", "59s", "1m 5s"]);
    }

    #[test]
    fn format_age_shows_only_the_largest_unit() {
        let all = [-5, 59, 119, 7_200, 86_400, 13 * 86_400].map(|s| format_age(s * 1_000));
        assert_eq!(all, ["just now", "just now", "1m ago", "2h ago", "1 day ago", "13 days ago"]);
    }
}
