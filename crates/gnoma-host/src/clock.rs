//! The time, for machines and for people, and names made of it.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use gnoma_core::duration;

use jiff::{Timestamp, tz::TimeZone};

/// The source of a process's time, its random bits and the ids of its sessions. A clock that repeats its values
/// makes what sessions send repeat.
#[derive(Clone)]
pub struct Clock {
    now_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
    session_id: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Default for Clock {
    /// Creates a clock that uses the system's time and random bits.
    fn default() -> Self {
        Self::new(now_ms, random_bits, session_id)
    }
}

impl Clock {
    /// Creates a clock that reads these: milliseconds since 1970, unpredictable bits, an id that no session has.
    pub fn new(
        now_ms: impl Fn() -> i64 + Send + Sync + 'static,
        random: impl Fn() -> u64 + Send + Sync + 'static,
        session_id: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            now_ms: Arc::new(now_ms),
            random: Arc::new(random),
            session_id: Arc::new(session_id),
        }
    }

    /// Returns the time in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        (self.now_ms)()
    }

    /// Returns unpredictable bits.
    #[must_use]
    pub fn random_bits(&self) -> u64 {
        (self.random)()
    }

    /// An id that no session has.
    #[must_use]
    pub fn session_id(&self) -> String {
        (self.session_id)()
    }
}

/// Bits from the system's random source, by way of the hasher's seed.
pub fn random_bits() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Returns the system's time in milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A name for a session that is not kept, in the form that kept ones have.
pub fn session_id() -> String {
    let chance = i64::try_from(random_bits() & 0xFF_FFFF).unwrap_or_default();
    gnoma_store::session_id(now_ms(), chance).as_str().to_owned()
}

/// The system's time zone, which is that of the people at the screen; UTC if it cannot be found. The first call
/// reads files.
pub fn local_time_zone() -> TimeZone {
    TimeZone::system()
}

/// The name of the system's time zone, such as `Europe/Vienna`; empty if it has none.
#[must_use]
pub fn zone_name() -> String {
    local_time_zone().iana_name().unwrap_or_default().to_owned()
}

/// Says how long ago a time was, in a few characters; longer times are shown as a date in the local time zone.
pub fn describe_age(then_ms: i64, now_ms: i64) -> String {
    ago_in(local_time_zone, then_ms, now_ms)
}

fn ago_in(zone: fn() -> TimeZone, then_ms: i64, now_ms: i64) -> String {
    /// After so many days a date says more.
    const DATED_MS: i64 = 14 * 86_400_000;
    match now_ms.saturating_sub(then_ms) {
        since @ ..DATED_MS => duration::format_age(since),
        DATED_MS.. => local_date(&zone(), then_ms),
    }
}

/// A local time for people: `14:05` on the local day of `now_ms`, and with its date on other days.
#[must_use]
pub fn time_near(at_ms: i64, now_ms: i64) -> String {
    time_near_in(&local_time_zone(), at_ms, now_ms)
}

/// As [`time_near`], in a time zone.
#[must_use]
pub fn time_near_in(zone: &TimeZone, at_ms: i64, now_ms: i64) -> String {
    let time = zone.to_datetime(to_timestamp(at_ms));
    let (date, clock) = (time.date(), time.strftime("%H:%M"));
    if date == zone.to_datetime(to_timestamp(now_ms)).date() {
        clock.to_string()
    } else {
        format!("{date} {clock}")
    }
}

/// A day in UTC, counted from 1970-01-01, as `YYYY-MM-DD`: what is spent is counted by such days.
pub fn utc_day(day: i32) -> String {
    const DAY_MS: i64 = 86_400_000;
    local_date(&TimeZone::UTC, i64::from(day) * DAY_MS)
}

fn local_date(zone: &TimeZone, at_ms: i64) -> String {
    zone.to_datetime(to_timestamp(at_ms)).date().to_string()
}

fn to_timestamp(at_ms: i64) -> Timestamp {
    let end = if at_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at_ms).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use jiff::tz;

    use super::*;

    const NOW_MS: i64 = 1_795_307_625_000;

    #[test]
    fn age_is_shown_in_the_largest_unit_or_as_a_date() {
        let ago = |seconds: i64| ago_in(|| TimeZone::UTC, NOW_MS - seconds * 1000, NOW_MS);
        assert_eq!(ago(-5), "just now");
        assert_eq!(ago(59), "just now");
        assert_eq!(ago(119), "1m ago");
        assert_eq!(ago(7_200), "2h ago");
        assert_eq!(ago(13 * 86_400), "13 days ago");
        assert_eq!(ago(21 * 86_400), "2026-11-01");
    }

    #[test]
    fn dates_are_shown_in_the_local_time_zone() {
        // Half past midnight in UTC is still the day before in New York.
        let west = || TimeZone::fixed(tz::offset(-5));
        assert_eq!(ago_in(west, NOW_MS - 21 * 86_400_000, NOW_MS), "2026-10-31");
        assert_eq!(utc_day(20_779), "2026-11-22");
        let zone = TimeZone::fixed(tz::offset(-5));
        assert_eq!(time_near_in(&zone, NOW_MS + 12 * 3_600_000, NOW_MS), "2026-11-22 07:33");
        assert_eq!(time_near_in(&zone, NOW_MS, NOW_MS), "19:33");
    }
}
