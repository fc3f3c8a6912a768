//! Times for people, in UTC. Asks no clock.

const SECOND_MS: i64 = 1000;
const DAY_SECONDS: i64 = 86_400;

/// `HH:MM UTC`; with seconds where they matter, with the date where it is another day than `now_ms`.
pub(crate) fn time_of(at_ms: i64, now_ms: i64) -> String {
    // A time that is told as over would mislead: round up.
    let seconds = at_ms.div_euclid(SECOND_MS) + i64::from(at_ms.rem_euclid(SECOND_MS) > 0);
    let (day, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let clock = if second == 0 {
        format!("{hour:02}:{minute:02} UTC")
    } else {
        format!("{hour:02}:{minute:02}:{second:02} UTC")
    };
    let today = now_ms.div_euclid(SECOND_MS * DAY_SECONDS);
    // Midnight that comes is known without its date.
    let is_next_midnight = day == today + 1 && hour == 0 && minute == 0 && second == 0;
    if day == today || is_next_midnight {
        return clock;
    }
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02} {clock}")
}

/// Year, month and day of a day counted from 1970-01-01. Years are counted from March, so that the
/// leap day is the last of its year; 400 years have 146,097 days.
pub(crate) fn date(day: i64) -> (i64, i64, i64) {
    let since_year_0 = day + 719_468;
    let era = since_year_0.div_euclid(146_097);
    let day_of_era = since_year_0.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = (from_march + 2) % 12 + 1;
    (
        year_of_era + era * 400 + i64::from(month <= 2),
        month,
        day_of_year - (153 * from_march + 2) / 5 + 1,
    )
}

/// The inverse of [`date`].
pub(crate) fn day_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_read_well() {
        let now = 1_709_210_096_789;
        assert_eq!(time_of(now, now), "12:34:57 UTC");
        assert_eq!(time_of(1_709_210_100_000, now), "12:35 UTC");
        assert_eq!(time_of(1_709_251_200_000, now), "00:00 UTC");
        assert_eq!(time_of(1_709_251_260_000, now), "2024-03-01 00:01 UTC");
    }

    proptest! {
        #[test]
        fn dates_and_days_are_inverse(number in -700_000_i64..2_900_000) {
            let (year, month, day) = date(number);
            prop_assert_eq!(day_of_date(year, month, day), number);
        }
    }
}
