//! Parses schedules as people type them: `weekdays 9:00`, `every 2 hours`.

use std::fmt;

use jiff::{
    Timestamp, ToSpan as _,
    civil::{Date, DateTime, Time},
    tz::{AmbiguousOffset, TimeZone},
};

use super::rule::{ALL_DAYS, DAY_NAMES, ScheduleRule, WEEKDAYS, WEEKENDS};

/// Shortest and longest time between two runs, in minutes.
const MIN_INTERVAL: u32 = 5;
const MAX_INTERVAL: u32 = 31 * 24 * 60;
/// Shortest beginning of a day's name.
const MIN_DAY_LETTERS: usize = 3;

/// The reason why words are no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// A word is neither a day, a time nor an interval.
    UnknownWord(String),
    /// Days are named, and no time.
    NoTime(String),
    /// No day is named.
    NoDay(String),
    /// The interval is too short or too long.
    Interval(String),
    /// The text is no moment.
    NoMoment(String),
    /// The moment has passed.
    Past(String),
    /// The clock of the zone is set forward over the moment.
    Skipped(String),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownWord(word) => write!(
                f,
                "`{}` is neither a day, a time nor an interval; write `weekdays 9:00`, `monday, friday 18:30`, `day 7:00` or `2h`",
                word.escape_debug()
            ),
            Self::NoTime(text) => {
                write!(
                    f,
                    "`{}` names no time; write `{} 9:00`",
                    text.escape_debug(),
                    text.escape_debug()
                )
            }
            Self::NoDay(text) => {
                write!(
                    f,
                    "`{}` names no day; write `day {}`",
                    text.escape_debug(),
                    text.escape_debug()
                )
            }
            Self::Interval(text) => write!(
                f,
                "`{}` is no interval from {MIN_INTERVAL}m to {}h; write `30m` or `2h`",
                text.escape_debug(),
                MAX_INTERVAL / 60
            ),
            Self::NoMoment(text) => write!(
                f,
                "`{}` is no time; write `18:30`, which is the next time the clock shows it, or `2026-12-01 09:00`",
                text.escape_debug()
            ),
            Self::Past(text) => {
                write!(f, "`{}` has passed; name a time in the future", text.escape_debug())
            }
            Self::Skipped(text) => write!(
                f,
                "`{}` does not exist in this time zone, because the clock is set forward over it; name another time",
                text.escape_debug()
            ),
        }
    }
}

impl std::error::Error for ScheduleError {}

/// Parses what follows `--every`: `weekdays 9:00`, `mon, fri 18:30`, `day 7:00`, `mon-thu 8:15`, `30m`, `2h`.
///
/// # Errors
/// The words are no schedule.
pub fn parse_every(text: &str) -> Result<ScheduleRule, ScheduleError> {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty())
        .collect();
    if let [word] = words.as_slice()
        && let Some(minutes) = parse_interval(word)
    {
        return minutes.ok_or_else(|| ScheduleError::Interval(text.to_owned()));
    }
    let (mut days, mut time) = (0, None);
    for word in &words {
        match (clock_time(word), day_bits(word)) {
            (Some(at), _) if time.is_none() => time = Some(at),
            (_, Some(bits)) => days |= bits,
            _ => return Err(ScheduleError::UnknownWord((*word).to_owned())),
        }
    }
    match (days, time) {
        (0, None) => Err(ScheduleError::UnknownWord(text.to_owned())),
        (0, Some(_)) => Err(ScheduleError::NoDay(text.to_owned())),
        (_, None) => Err(ScheduleError::NoTime(text.to_owned())),
        (days, Some(at)) => Ok(ScheduleRule::Days { days, hour: at.hour(), minute: at.minute() }),
    }
}

/// Parses what follows `--at`: a time of the clock, which is its next one, or a date and a time. A moment that a clock
/// shows twice is the first.
///
/// # Errors
/// The text is no moment, or the moment has passed.
pub fn parse_moment(text: &str, now_ms: i64, zone: &TimeZone) -> Result<i64, ScheduleError> {
    let none = || ScheduleError::NoMoment(text.to_owned());
    let now = Timestamp::from_millisecond(now_ms).map_err(|_| none())?;
    let text = text.trim();
    if let Some(time) = clock_time(text) {
        let today = zone.to_datetime(now).date();
        let next = (0..3).filter_map(|ahead| {
            let day = today.checked_add(ahead.days()).ok()?;
            zone.to_timestamp(day.to_datetime(time)).ok().map(Timestamp::as_millisecond)
        });
        return next.into_iter().find(|at_ms| *at_ms > now_ms).ok_or_else(none);
    }
    let (day, time) = text.split_once(['T', ' ']).ok_or_else(none)?;
    let (day, time): (Option<Date>, _) = (day.parse().ok(), clock_time(time.trim()));
    let (Some(day), Some(time)) = (day, time) else { return Err(none()) };
    let at = DateTime::from_parts(day, time);
    let ambiguous = zone.to_ambiguous_timestamp(at);
    if matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) {
        return Err(ScheduleError::Skipped(text.to_owned()));
    }
    let at_ms = ambiguous.compatible().map_err(|_| none())?.as_millisecond();
    if at_ms <= now_ms { Err(ScheduleError::Past(text.to_owned())) } else { Ok(at_ms) }
}

/// Parses `9:00` or `09:00`.
fn clock_time(word: &str) -> Option<Time> {
    let (hour, minute) = word.split_once(':')?;
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=2).contains(&hour.len()) || minute.len() != 2 || !is_digits(hour) || !is_digits(minute)
    {
        return None;
    }
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

/// Parses `30m`, `2h` or `hour`; `Some(None)`: it is an interval that is too short or too long.
fn parse_interval(word: &str) -> Option<Option<ScheduleRule>> {
    if word.eq_ignore_ascii_case("hour") || word.eq_ignore_ascii_case("hourly") {
        return Some(Some(ScheduleRule::Interval { minutes: 60 }));
    }
    let (number, factor) = match (word.strip_suffix('m'), word.strip_suffix('h')) {
        (Some(number), _) => (number, 1),
        (None, Some(number)) => (number, 60),
        (None, None) => return None,
    };
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let minutes = number.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    let fits = |minutes: &u32| (MIN_INTERVAL..=MAX_INTERVAL).contains(minutes);
    Some(minutes.filter(fits).map(|minutes| ScheduleRule::Interval { minutes }))
}

/// Returns the bits of the days that a word names.
fn day_bits(word: &str) -> Option<u8> {
    let word = word.to_lowercase();
    if let Some((first, last)) = word.split_once('-') {
        let (first, last) = (day_place(first)?, day_place(last)?);
        // Friday to Monday goes over the end of the week.
        let count = (last + 7 - first) % 7 + 1;
        return Some((0..count).fold(0, |bits, ahead| bits | 1 << ((first + ahead) % 7)));
    }
    match word.as_str() {
        "day" | "days" | "daily" => Some(ALL_DAYS),
        "weekday" | "weekdays" => Some(WEEKDAYS),
        "weekend" | "weekends" => Some(WEEKENDS),
        word => day_place(word).map(|place| 1 << place),
    }
}

/// Returns the place of a day in the week, Monday 0, by its English name, its plural or the beginning of it.
fn day_place(word: &str) -> Option<u8> {
    let is_it = |name: &str| {
        name.strip_suffix('s').unwrap_or(name) == word
            || name == word.strip_suffix('s').unwrap_or(word)
            || word.len() >= MIN_DAY_LETTERS && name.starts_with(word)
    };
    (0..).zip(DAY_NAMES).find(|(_, name)| is_it(name)).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use jiff::tz;

    use super::*;

    #[test]
    fn schedules_are_parsed_as_people_type_them() {
        for (text, shown) in [
            ("weekdays 9:00", "every weekdays 09:00"),
            ("9:05 Mondays", "every monday 09:05"),
            ("mon, wed,fri 18:30", "every monday, wednesday, friday 18:30"),
            ("fri-mon 00:00", "every monday, friday, saturday, sunday 00:00"),
            ("weekends weekdays 23:59", "every day 23:59"),
            ("daily 7:00", "every day 07:00"),
            ("30m", "every 30m"),
            ("hour", "every 1h"),
            ("120m", "every 2h"),
        ] {
            assert_eq!(parse_every(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn invalid_schedules_are_explained() {
        for (text, part) in [
            ("", "`` is neither a day"),
            ("noon", "`noon` is neither"),
            ("monday 25:00", "`25:00` is neither"),
            ("monday 9:00 10:00", "`10:00` is neither"),
            ("m 9:00", "`m` is neither"),
            ("9:00", "names no day; write `day 9:00`"),
            ("monday", "names no time; write `monday 9:00`"),
            ("1m", "`1m` is no interval from 5m"),
            ("99999999999h", "is no interval"),
        ] {
            let error = parse_every(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn schedule_time_is_parsed_to_a_future_moment_that_exists() {
        let vienna = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        // 2026-11-30 02:00 UTC, 03:00 in Vienna.
        let now_ms = 1_796_004_000_000;
        let at = |text: &str| parse_moment(text, now_ms, &vienna);
        let hour_ms = 3_600_000;
        assert_eq!(at("4:00"), Ok(now_ms + hour_ms));
        assert_eq!(at("03:00"), Ok(now_ms + 24 * hour_ms));
        assert_eq!(at("2026-11-30 05:00"), Ok(now_ms + 2 * hour_ms));
        assert_eq!(at("2026-11-30T05:00"), Ok(now_ms + 2 * hour_ms));
        assert_eq!(at("2026-11-30 03:00"), Err(ScheduleError::Past("2026-11-30 03:00".into())));
        assert_eq!(at("2027-03-28 02:30"), Err(ScheduleError::Skipped("2027-03-28 02:30".into())));
        for text in ["", "soon", "2026-13-01 09:00", "2026-12-01", "24:00", "2026-12-01 9"] {
            assert_eq!(at(text), Err(ScheduleError::NoMoment(text.into())), "{text}");
        }
        let utc = TimeZone::fixed(tz::offset(0));
        assert_eq!(parse_moment("2:01", now_ms, &utc), Ok(now_ms + 60_000));
    }
}
