//! Timestamps in the form of ACP.

const MS_OF_DAY: i64 = 24 * 60 * 60 * 1_000;

/// Milliseconds since 1970 in ISO 8601, such as `2026-11-23T14:00:00Z`.
pub(crate) fn format_iso8601(at_ms: i64) -> String {
    let (days, ms) = (at_ms.div_euclid(MS_OF_DAY), at_ms.rem_euclid(MS_OF_DAY));
    let (year, month, day) = civil_date(days);
    let seconds = ms / 1_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day that is counted from 1970: in years that begin with March a leap day is the last.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_8601_dates_follow_the_calendar() {
        assert_eq!(format_iso8601(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_iso8601(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(format_iso8601(1_795_442_399_999), "2026-11-23T13:59:59Z");
        assert_eq!(format_iso8601(-1), "1969-12-31T23:59:59Z");
    }
}
