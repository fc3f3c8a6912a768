//! Days of the calendar as numbers.

use jiff::civil::Date;

/// Days from 1970-01-01 to an ISO date; `None` for what is no date or before it.
pub(super) fn from_iso(text: &str) -> Option<i32> {
    let mut parts = text.split('-');
    let mut part = |digits: usize| -> Option<i32> {
        let part = parts.next().filter(|part| part.len() == digits)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    if parts.next().is_some() { None } else { from_parts(year, month, day) }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar; `None` for what is no date or before it.
pub(super) fn from_parts(year: i32, month: i32, day: i32) -> Option<i32> {
    const FIRST: Date = jiff::civil::date(1970, 1, 1);
    let date =
        Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let days = date.duration_since(FIRST).as_hours() / 24;
    i32::try_from(days).ok().filter(|days| *days >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        for (text, day) in
            [("1970-01-01", 0), ("1970-03-01", 59), ("2000-02-29", 11_016), ("2026-11-11", 20_768)]
        {
            assert_eq!(from_iso(text), Some(day), "{text}");
        }
        for text in
            ["", "2026", "2026-02-30", "2100-02-29", "1969-12-31", "2026-1-01", "+026-01-01"]
        {
            assert_eq!(from_iso(text), None, "{text}");
        }
    }

    #[test]
    fn consecutive_dates_have_consecutive_day_numbers() {
        let days = (1970..2110).flat_map(|year| {
            (1..=12)
                .flat_map(move |month| (1..=31).filter_map(move |day| from_parts(year, month, day)))
        });
        assert!(days.enumerate().all(|(index, day)| usize::try_from(day) == Ok(index)));
    }
}
