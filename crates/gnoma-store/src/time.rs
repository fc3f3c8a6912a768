//! Times as they are in the database and files, and as people read them.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// The time `at_ms` milliseconds after 1970 began; what is beyond the calendar is its end.
pub(crate) fn timestamp_from_ms(at_ms: i64) -> Timestamp {
    let end = if at_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at_ms).unwrap_or(end)
}

/// `YYYY-MM-DD HH:MM +02:00`: the minute on the clocks of `zone`, and how far they are from UTC, since
/// an exported file may be read elsewhere.
pub(crate) fn minute_in(zone: TimeZone, at_ms: i64) -> String {
    timestamp_from_ms(at_ms).to_zoned(zone).strftime("%Y-%m-%d %H:%M %:z").to_string()
}

/// Milliseconds since 1970 of a time such as `2026-01-31T12:30:00.5Z` or with `+02:00`; one without
/// a zone is in UTC. `None` when it is not a time.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    // A date alone is read as its midnight by the library, and is no time here.
    text.contains(':').then_some(())?;
    let time = text
        .parse::<Timestamp>()
        .or_else(|_| text.parse::<DateTime>().and_then(|time| TimeZone::UTC.to_timestamp(time)));
    time.ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use jiff::tz;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn timestamps_of_any_time_zone_are_parsed() {
        for (text, ms) in [
            ("2024-02-29T12:34:56.789Z", Some(1_709_210_096_789)),
            ("2024-02-29T14:34:56+02:00", Some(1_709_210_096_000)),
            ("2024-02-29 12:34:56", Some(1_709_210_096_000)),
            ("2024-02-29", None),
            ("2024-02-30T00:00:00Z", None),
            ("yesterday", None),
        ] {
            assert_eq!(parse_time(text), ms, "{text}");
        }
    }

    #[test]
    fn timestamps_are_shown_in_the_local_time_zone() {
        let in_zone = |hours| minute_in(TimeZone::fixed(tz::offset(hours)), 1_709_210_096_789);
        assert_eq!(in_zone(0), "2024-02-29 12:34 +00:00");
        assert_eq!(in_zone(2), "2024-02-29 14:34 +02:00");
        assert_eq!(in_zone(12), "2024-03-01 00:34 +12:00");
    }

    proptest! {
        #[test]
        fn timestamp_parser_never_panics(text in "[0-9TZ:+. -]{0,40}|\\PC{0,30}") {
            parse_time(&text);
        }
    }
}
