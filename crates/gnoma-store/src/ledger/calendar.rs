//! Days and months in UTC.

use jiff::{
    civil::{Date, Time},
    tz::TimeZone,
};

use crate::time;

/// Length of a day.
pub(super) const DAY_MS: i64 = 86_400_000;

/// The day of a time, counted from 1970-01-01.
pub(super) fn day_of(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

/// The first day of the month that `day` is in.
pub(super) fn month_start(day: i64) -> i64 {
    day_number(date(day).first_of_month())
}

/// The first day of the month after the one that `day` is in.
pub(super) fn next_month(day: i64) -> i64 {
    day_number(date(day).last_of_month()) + 1
}

fn date(day: i64) -> Date {
    TimeZone::UTC.to_datetime(time::timestamp(begins_ms(day))).date()
}

fn day_number(date: Date) -> i64 {
    TimeZone::UTC
        .to_timestamp(date.to_datetime(Time::midnight()))
        .map_or(0, |at| day_of(at.as_millisecond()))
}

/// When a day begins.
pub(super) fn begins_ms(day: i64) -> i64 {
    day.saturating_mul(DAY_MS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_day_is_in_one_month(day in -40_000_i64..200_000) {
            let (first, next) = (month_start(day), next_month(day));
            prop_assert!(first <= day && day < next);
            prop_assert!((28..=31).contains(&(next - first)));
            prop_assert_eq!(month_start(next), next);
            prop_assert_eq!(next_month(first), next);
        }
    }
}
