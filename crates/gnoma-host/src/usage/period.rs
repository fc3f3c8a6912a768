//! Days, weeks and months as people have them, and the time from which usage is shown. Pure.

use std::{fmt, str::FromStr};

use gnoma_store::calendar::{self, date_of, day_of_date, month_start};
use jiff::{
    Timestamp,
    civil::{Date, Time},
    tz::TimeZone,
};

use super::dimension::Period;

/// More days, weeks or hours than this mean everything.
const MAX_COUNT: u32 = 100_000;

/// The time from which usage is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageStart {
    /// This many hours before now.
    Hours(u32),
    /// Today and the days before it, so many in all; local days.
    Days(u32),
    /// The beginning of a local day.
    Date(Date),
    /// All usage from the beginning.
    All,
}

impl UsageStart {
    /// The beginning in milliseconds since 1970; `None` for everything.
    #[must_use]
    pub fn begin_ms(self, now_ms: i64, zone: &TimeZone) -> Option<i64> {
        match self {
            Self::All => None,
            Self::Hours(hours) => Some(now_ms.saturating_sub(i64::from(hours) * 3_600_000)),
            Self::Date(date) => Some(begin_of_day_ms(day_of_date(date), zone)),
            Self::Days(days) => {
                let today = LocalDays::new(zone.clone()).day_of(now_ms);
                Some(begin_of_day_ms(today.saturating_sub(i64::from(days) - 1), zone))
            }
        }
    }
}

impl fmt::Display for UsageStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hours(1) => f.write_str("the last hour"),
            Self::Hours(hours) => write!(f, "the last {hours} hours"),
            Self::Days(1) => f.write_str("today"),
            Self::Days(days) => write!(f, "the last {days} days"),
            Self::Date(date) => write!(f, "since {date}"),
            Self::All => f.write_str("everything"),
        }
    }
}

/// A text that is no [`UsageStart`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageStartError(String);

impl fmt::Display for UsageStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(f, "`{text}` is not a time; write it like 24h, 7d, 4w, 2026-11-30 or all")
    }
}

impl std::error::Error for UsageStartError {}

impl FromStr for UsageStart {
    type Err = UsageStartError;

    fn from_str(text: &str) -> Result<Self, UsageStartError> {
        let wrong = || UsageStartError(text.to_owned());
        if text == "all" {
            return Ok(Self::All);
        }
        if text.len() == "2026-11-30".len()
            && let Ok(date) = text.parse()
        {
            return Ok(Self::Date(date));
        }
        let digits = text.chars().take_while(char::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u32 = number.parse().map_err(|_| wrong())?;
        if !(1..=MAX_COUNT).contains(&number) {
            return Err(wrong());
        }
        match unit {
            "h" => Ok(Self::Hours(number)),
            "d" => Ok(Self::Days(number)),
            "w" => Ok(Self::Days(number.saturating_mul(7))),
            _ => Err(wrong()),
        }
    }
}

/// Finds the local day of a time. Fast for times that follow one another.
#[derive(Clone, Debug)]
pub(super) struct LocalDays {
    zone: TimeZone,
    /// The day of the last time: its number, and when it begins and ends.
    last: Option<(i64, i64, i64)>,
}

impl LocalDays {
    pub(super) fn new(zone: TimeZone) -> Self {
        Self { zone, last: None }
    }

    /// Returns the day of a time, as the number of days between 1970-01-01 and that date.
    pub(super) fn day_of(&mut self, at_ms: i64) -> i64 {
        if let Some((day, begin, end)) = self.last
            && (begin..end).contains(&at_ms)
        {
            return day;
        }
        let date = self.zone.to_datetime(to_timestamp(at_ms)).date();
        let day = day_of_date(date);
        let begin = begin_of_day_ms(day, &self.zone);
        let end = begin_of_day_ms(day.saturating_add(1), &self.zone);
        // Where a zone was set back over midnight, a date can begin twice.
        self.last = (begin..end).contains(&at_ms).then_some((day, begin, end));
        day
    }
}

/// The time at which the local day with this number begins, in milliseconds since 1970. A day whose midnight does not
/// exist begins with the first moment after it.
fn begin_of_day_ms(day: i64, zone: &TimeZone) -> i64 {
    let midnight = date_of(day).to_datetime(Time::midnight());
    match zone.to_timestamp(midnight) {
        Ok(begin) => begin.as_millisecond(),
        Err(_beyond) => calendar::begin_ms(day),
    }
}

fn to_timestamp(at_ms: i64) -> Timestamp {
    let end = if at_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at_ms).unwrap_or(end)
}

impl Period {
    /// Returns the first day of the period that `day` is in.
    #[must_use]
    pub fn first_day(self, day: i64) -> i64 {
        /// 1970-01-01 was a Thursday.
        const DAYS_SINCE_MONDAY: i64 = 3;
        match self {
            Self::Day => day,
            Self::Week => day.saturating_sub(day.saturating_add(DAYS_SINCE_MONDAY).rem_euclid(7)),
            Self::Month => month_start(day),
        }
    }

    /// Returns the name of the period that begins with `day`: `2026-11-28`, `2026-W48`, `2026-11`.
    pub(super) fn name_of(self, day: i64) -> String {
        let date = date_of(day);
        match self {
            Self::Day => date.to_string(),
            Self::Week => {
                let week = date.iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            Self::Month => format!("{:04}-{:02}", date.year(), date.month()),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{civil::date, tz};
    use proptest::prelude::*;

    use super::*;

    const NOON_MS: i64 = 1_795_867_200_000;

    /// Central European time, without a database: summer time from March 29 to October 25, 2026.
    fn vienna() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    #[test]
    fn usage_days_begin_at_local_midnight_across_dst_changes() {
        let mut days = LocalDays::new(vienna());
        for (at, expected) in [
            ("2026-10-24T21:59:59.999Z", date(2026, 10, 24)),
            ("2026-10-24T22:00:00Z", date(2026, 10, 25)),
            ("2026-10-25T22:59:59.999Z", date(2026, 10, 25)),
            ("2026-10-25T23:00:00Z", date(2026, 10, 26)),
            ("2026-03-28T22:59:59.999Z", date(2026, 3, 28)),
            ("2026-03-28T23:00:00Z", date(2026, 3, 29)),
            ("2026-03-29T21:59:59.999Z", date(2026, 3, 29)),
            ("2026-03-29T22:00:00Z", date(2026, 3, 30)),
        ] {
            assert_eq!(date_of(days.day_of(ms(at))), expected, "{at}");
        }
    }

    #[test]
    fn usage_since_counts_local_days_or_exact_hours() {
        let zone = TimeZone::fixed(tz::offset(-8));
        let begin = |text: &str| text.parse::<UsageStart>().unwrap().begin_ms(NOON_MS, &zone);
        // Noon in UTC is four in the morning there.
        assert_eq!(NOON_MS, ms("2026-11-28T12:00:00Z"));
        assert_eq!(begin("1d"), Some(ms("2026-11-28T08:00:00Z")));
        assert_eq!(begin("7d"), Some(ms("2026-11-22T08:00:00Z")));
        assert_eq!(begin("1w"), begin("7d"));
        assert_eq!(begin("24h"), Some(ms("2026-11-27T12:00:00Z")));
        assert_eq!(begin("2026-11-01"), Some(ms("2026-11-01T08:00:00Z")));
        assert_eq!(begin("all"), None);
    }

    #[test]
    fn invalid_usage_since_values_are_rejected() {
        for text in ["", "7", "d", "0d", "-1d", "7m", "2026-13-01", "yesterday", "99999999d", "٣d"]
        {
            let error = text.parse::<UsageStart>().unwrap_err().to_string();
            assert!(error.contains("write it like"), "{text}: {error}");
        }
    }

    #[test]
    fn usage_periods_are_named_by_calendar_day_week_and_month() {
        let day = day_of_date(date(2027, 1, 1));
        assert_eq!(Period::Day.name_of(day), "2027-01-01");
        let monday = Period::Week.first_day(day);
        assert_eq!(date_of(monday), date(2026, 12, 28));
        assert_eq!(Period::Week.name_of(monday), "2026-W53");
        let first = Period::Month.first_day(day_of_date(date(2027, 2, 28)));
        assert_eq!(Period::Month.name_of(first), "2027-02");
    }

    proptest! {
        #[test]
        fn cached_local_day_equals_a_fresh_computation(times in prop::collection::vec(0..4_000_000_000_000_i64, 1..40)) {
            let mut kept = LocalDays::new(vienna());
            for at_ms in times {
                let fresh = LocalDays::new(vienna()).day_of(at_ms);
                prop_assert_eq!(kept.day_of(at_ms), fresh);
                prop_assert_eq!(kept.day_of(at_ms), fresh);
            }
        }

        #[test]
        fn usage_period_first_day_is_idempotent(day in -20_000_i64..100_000) {
            for period in [Period::Day, Period::Week, Period::Month] {
                let begin = period.first_day(day);
                prop_assert!(begin <= day && day - begin < 31);
                prop_assert_eq!(period.first_day(begin), begin);
                prop_assert_eq!(period.name_of(begin).len(), period.name_of(day).len());
            }
        }
    }
}
