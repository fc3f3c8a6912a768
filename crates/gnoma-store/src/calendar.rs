//! Days and months in UTC. A day is the number of days between 1970-01-01 and it.

use jiff::{
    civil::{Date, Time},
    tz::TimeZone,
};

use crate::time;

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// Returns the day of a time in milliseconds since 1970.
#[must_use]
pub fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

/// Returns the time at which a day begins, in milliseconds since 1970.
#[must_use]
pub fn begin_ms(day: i64) -> i64 {
    day.saturating_mul(DAY_MS)
}

/// Returns the first day of the month that `day` is in.
#[must_use]
pub fn month_start(day: i64) -> i64 {
    day_of_date(date_of(day).first_of_month())
}

/// Returns the first day of the month after the one that `day` is in.
#[must_use]
pub fn next_month(day: i64) -> i64 {
    day_of_date(date_of(day).last_of_month()) + 1
}

/// Returns the date of a day. Days beyond the calendar become its first or last date.
#[must_use]
pub fn date_of(day: i64) -> Date {
    TimeZone::UTC.to_datetime(time::timestamp_from_ms(begin_ms(day))).date()
}

/// Returns the day of a date.
#[must_use]
pub fn day_of_date(date: Date) -> i64 {
    TimeZone::UTC
        .to_timestamp(date.to_datetime(Time::midnight()))
        .map_or(0, |at| day_of(at.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn calendar_assigns_each_day_to_one_month(day in -40_000_i64..200_000) {
            let (first, next) = (month_start(day), next_month(day));
            prop_assert!(first <= day && day < next);
            prop_assert!((28..=31).contains(&(next - first)));
            prop_assert_eq!(month_start(next), next);
            prop_assert_eq!(next_month(first), next);
            prop_assert_eq!(day_of_date(date_of(day)), day);
        }
    }
}
