//! How long a server asks to be left alone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Numbers from here on are moments, not durations: seconds since 1970.
const FIRST_MOMENT_S: f64 = 1e9;

/// The wait that a `Retry-After` header asks for: seconds, a date, or a moment since 1970.
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let until = |moment_s: f64| {
        Duration::try_from_secs_f64(moment_s).ok().map(|it| it.saturating_sub(since))
    };
    let number = value.trim_end_matches("ms").trim_end_matches('s').trim();
    match number.parse::<f64>() {
        Ok(ms) if value.ends_with("ms") => Duration::try_from_secs_f64(ms / 1000.0).ok(),
        // Milliseconds since 1970 are a thousand times as many.
        Ok(moment) if moment >= 1000.0 * FIRST_MOMENT_S => until(moment / 1000.0),
        Ok(moment) if moment >= FIRST_MOMENT_S => until(moment),
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(value).map(|date| date.timestamp());
            let date = date.or_else(|_| value.parse::<Timestamp>()).ok()?;
            until(date.as_duration().as_secs_f64())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_date_or_moment() {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        for (value, seconds) in [
            ("3", Some(3.0)),
            ("1.5", Some(1.5)),
            ("250ms", Some(0.25)),
            ("20s", Some(20.0)),
            ("1795000007", Some(7.0)),
            ("1795000007000", Some(7.0)),
            ("Wed, 18 Nov 2026 11:06:45 GMT", Some(5.0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0.0)),
            ("soon", None),
            ("-1", None),
            ("NaN", None),
        ] {
            let wait = retry_after(value, now).map(|wait| wait.as_secs_f64());
            assert_eq!(wait, seconds, "{value}");
        }
    }
}
