//! Times for people, on the clocks of their zone. Asks no clock.

use jiff::{Timestamp, civil::Time, tz::TimeZone};

/// Gives the zone of the people who read. It is asked when a time is shown and not before, since
/// finding the zone may read files.
pub type Zone = fn() -> TimeZone;

/// `HH:MM`; with seconds where they matter, with the date where it is another day than `now_ms`.
pub(crate) fn time_of(at_ms: i64, now_ms: i64, zone: Zone) -> String {
    let zone = zone();
    // A time that is told as over would mislead: round up.
    let seconds = at_ms.div_euclid(1000) + i64::from(at_ms.rem_euclid(1000) > 0);
    let at = zone.to_datetime(timestamp_from_ms(seconds.saturating_mul(1000)));
    let today = zone.to_datetime(timestamp_from_ms(now_ms)).date();
    // Midnight that comes is known without its date.
    let is_next_midnight =
        at.time() == Time::midnight() && today.tomorrow().is_ok_and(|day| day == at.date());
    let clock = if at.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    if at.date() == today || is_next_midnight {
        return at.strftime(clock).to_string();
    }
    at.strftime(&format!("%Y-%m-%d {clock}")).to_string()
}

/// The time `at_ms` milliseconds after 1970 began; what lies beyond the calendar is its end.
pub(crate) fn timestamp_from_ms(at_ms: i64) -> Timestamp {
    let end = if at_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at_ms).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use jiff::tz;

    use super::*;

    const NOW_MS: i64 = 1_709_210_096_789;

    #[test]
    fn reset_time_is_formatted_by_distance_from_now() {
        let at = |at_ms| time_of(at_ms, NOW_MS, || TimeZone::UTC);
        assert_eq!(at(NOW_MS), "12:34:57");
        assert_eq!(at(1_709_210_100_000), "12:35");
        assert_eq!(at(1_709_251_200_000), "00:00");
        assert_eq!(at(1_709_251_260_000), "2024-03-01 00:01");
        assert!(!at(i64::MAX).is_empty() && !at(i64::MIN).is_empty());
    }

    #[test]
    fn reset_time_is_shown_in_the_local_time_zone() {
        let at = |at_ms| time_of(at_ms, NOW_MS, || TimeZone::fixed(tz::offset(2)));
        assert_eq!(at(1_709_210_100_000), "14:35");
        assert_eq!(at(1_709_251_200_000), "2024-03-01 02:00");
        assert_eq!(at(1_709_244_000_000), "00:00");
    }
}
