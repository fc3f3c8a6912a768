//! The time, for machines and for people, and names made of it.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

/// Bits from the system's random source, by way of the hasher's seed.
pub fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A name for a session that is not kept: `YYYYMMDD-HHMMSS-<6 hex>`, in UTC.
pub fn session_id() -> String {
    format!("{}-{:06x}", stamp(now_ms().unsigned_abs() / 1000), random() & 0xFF_FFFF)
}

/// How long ago that was, in few characters; a date where it is long.
pub fn ago(then_ms: i64, now_ms: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    /// After so many days a date says more.
    const DATED: i64 = 14 * DAY;
    match now_ms.saturating_sub(then_ms) / 1000 {
        ..MINUTE => "just now".to_owned(),
        seconds @ MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h ago", seconds / HOUR),
        seconds @ DAY..DATED => format!("{} d ago", seconds / DAY),
        DATED.. => date(then_ms),
    }
}

/// A day as `YYYY-MM-DD`, in UTC.
pub fn date(at_ms: i64) -> String {
    let stamp = stamp(at_ms.max(0).unsigned_abs() / 1000);
    let date = stamp.split('-').next().unwrap_or_default();
    match (date.get(..4), date.get(4..6), date.get(6..)) {
        (Some(year), Some(month), Some(day)) => format!("{year}-{month}-{day}"),
        _ => date.to_owned(),
    }
}

/// A Unix time as `YYYYMMDD-HHMMSS`. Days to date after Howard Hinnant's `civil_from_days`.
fn stamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_told_in_the_largest_unit_that_fits() {
        let ago = |seconds: i64| ago(1_795_307_625_000 - seconds * 1000, 1_795_307_625_000);
        assert_eq!(ago(-5), "just now");
        assert_eq!(ago(59), "just now");
        assert_eq!(ago(119), "1 min ago");
        assert_eq!(ago(7_200), "2 h ago");
        assert_eq!(ago(13 * 86_400), "13 d ago");
        assert_eq!(ago(21 * 86_400), "2026-11-01");
    }

    #[test]
    fn stamps_are_dates() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_868_799), "20000229-235959");
        assert_eq!(stamp(1_795_307_625), "20261122-003345");
    }
}
