//! Parses `Retry-After` in all its forms: seconds, dates, milliseconds.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};

/// Seconds in the units that servers write.
const UNITS: [(&str, f64); 5] =
    [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// The words that stand before the wait in a message.
const BEFORE: [&str; 3] = ["try again in ", "retry in ", "retry after "];

/// Reads a duration such as `17s`, `1.5s`, `250ms` or `7m12.5s`; `None` for none, and for no time at all.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let (number, after) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
        let (unit, after) =
            after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        seconds += number.parse::<f64>().ok()? * factor;
        rest = after;
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| !wait.is_zero())
}

/// Returns the wait that a message asks for: `Please try again in 7m12s.`, `Please retry after 24 seconds.`
#[must_use]
pub fn stated_wait(message: &str) -> Option<Duration> {
    let after = BEFORE.iter().find_map(|before| Some(message.split_once(before)?.1))?;
    let mut words = after.split_whitespace();
    let first = words.next()?.trim_end_matches(['.', ',']);
    let spelled = || {
        let unit = words.next()?;
        let short = if unit.starts_with("milli") { "ms" } else { unit.get(..1)? };
        parse_duration(&format!("{first}{short}"))
    };
    parse_duration(first).or_else(spelled)
}

/// Headers that ask for a wait, the most exact first, and what a bare number in them counts.
const ASKING: [(&str, NumberUnit); 8] = [
    ("retry-after-ms", NumberUnit::Milliseconds),
    ("x-ms-retry-after-ms", NumberUnit::Milliseconds),
    ("x-retry-after-ms", NumberUnit::Milliseconds),
    ("retry-after", NumberUnit::Seconds),
    ("x-retry-after", NumberUnit::Seconds),
    ("x-ratelimit-retry-after", NumberUnit::Seconds),
    ("x-ratelimit-reset-after", NumberUnit::Seconds),
    ("ratelimit-reset-after", NumberUnit::Seconds),
];
/// The words in the headers of a limit, after its name or before it, for what is left and for when it is whole
/// again.
const REMAINING: &str = "remaining";
const RESET: &str = "reset";

/// From here on a number of seconds is a moment since 1970, not a wait: 2001.
const FIRST_MOMENT_S: f64 = 1e9;
/// The same in milliseconds, microseconds and nanoseconds; each is read as the largest unit that fits.
const FIRST_MOMENT_MS: f64 = 1e11;
const FIRST_MOMENT_US: f64 = 1e14;
const FIRST_MOMENT_NS: f64 = 1e17;

/// The unit of a number that is written without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberUnit {
    Seconds,
    Milliseconds,
}

/// Returns the wait that the headers of a failure ask for; for a limit that is used up, the time until it is
/// whole again. `now` is the answer's own `Date` where it has one, so that a wrong clock does no harm.
#[must_use]
pub fn asked_wait(headers: &[(&str, &str)], now: Timestamp) -> Option<Duration> {
    let value = |name: &str| headers.iter().find(|(header, _)| *header == name);
    let asked = ASKING
        .iter()
        .filter_map(|(name, unit)| Some((value(name)?.1, *unit)))
        .find_map(|(value, unit)| wait_of(value, unit, now).filter(|wait| !wait.is_zero()));
    asked.or_else(|| longest_reset(headers, now))
}

/// The time until every limit that is used up is whole again.
fn longest_reset(headers: &[(&str, &str)], now: Timestamp) -> Option<Duration> {
    let is_used_up = |reset: &str| {
        let remaining = reset.replace(RESET, REMAINING);
        let left = headers.iter().find(|(name, _)| *name == remaining);
        left.is_some_and(|(_, left)| left.trim().parse::<f64>().is_ok_and(|left| left <= 0.0))
    };
    let resets = headers
        .iter()
        .filter(|(name, _)| name.contains("ratelimit") && name.contains(RESET) && is_used_up(name));
    resets.filter_map(|(_, value)| wait_of(value, NumberUnit::Seconds, now)).max()
}

/// A wait in any form that servers write: a number, `1m30s`, `20 seconds`, `PT20S`, a moment since 1970, or
/// a date (RFC 9110 §10.2.3, RFC 3339). `None` where it has passed.
fn wait_of(value: &str, unit: NumberUnit, now: Timestamp) -> Option<Duration> {
    let value = value.trim().trim_matches('"');
    if let Ok(number) = value.parse::<f64>() {
        return of_number(number, unit, now);
    }
    let until = |moment: Timestamp| Duration::try_from(moment.duration_since(now)).ok();
    if let Some(wait) = parse_duration(value) {
        return Some(wait);
    }
    let moment = http_date(value).or_else(|| value.parse().ok());
    moment.map_or_else(|| Duration::try_from(value.parse::<SignedDuration>().ok()?).ok(), until)
}

fn of_number(number: f64, unit: NumberUnit, now: Timestamp) -> Option<Duration> {
    let moment_s = match number {
        FIRST_MOMENT_NS.. => number / 1e9,
        FIRST_MOMENT_US.. => number / 1e6,
        FIRST_MOMENT_MS.. => number / 1e3,
        // A wait of so many milliseconds is eleven days.
        FIRST_MOMENT_S.. => number,
        _ => {
            let seconds = match unit {
                NumberUnit::Seconds => number,
                NumberUnit::Milliseconds => number / 1e3,
            };
            return Duration::try_from_secs_f64(seconds).ok();
        }
    };
    let now_s = now.as_millisecond() as f64 / 1e3;
    Duration::try_from_secs_f64(moment_s - now_s).ok()
}

/// Returns the moment at which an answer was sent, by its `Date`.
#[must_use]
pub fn sent_at(date: Option<&str>) -> Option<Timestamp> {
    http_date(date?)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form servers may send. Some get the day of the week wrong.
fn http_date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "Sat, 29 Feb 2020 23:59:50 GMT";
    const NOW_S: u64 = 1_583_020_790;

    fn asked(headers: &[(&str, &str)]) -> Option<f64> {
        let now = http_date(NOW).unwrap();
        assert_eq!(now.as_second().cast_unsigned(), NOW_S);
        asked_wait(headers, now).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        for (value, wait) in [
            ("7", Some(7.0)),
            ("0.5", Some(0.5)),
            ("\"20\"", Some(20.0)),
            ("Sun, 01 Mar 2020 00:00:20 GMT", Some(30.0)),
            ("2020-03-01T00:00:20Z", Some(30.0)),
            ("1583020793", Some(3.0)),
            ("1583020793.5", Some(3.5)),
            ("1583020793000", Some(3.0)),
            ("1583020793000000", Some(3.0)),
            ("1m30s", Some(90.0)),
            ("250ms", Some(0.25)),
            ("20 seconds", Some(20.0)),
            ("PT20S", Some(20.0)),
            ("3153600000", Some(3_153_600_000.0 - NOW_S as f64)),
            ("soon", None),
            ("", None),
            ("-5", None),
            ("1583020700", None),
            ("Sat, 29 Feb 2020 23:59:20 GMT", None),
        ] {
            assert_eq!(asked(&[("retry-after", value)]), wait, "{value}");
        }
    }

    #[test]
    fn vendor_rate_limit_headers_give_the_retry_wait() {
        for (headers, wait) in [
            (&[("retry-after", "2"), ("retry-after-ms", "1500")][..], Some(1.5)),
            (&[("retry-after", "1"), ("retry-after-ms", "0")], Some(1.0)),
            (&[("x-ms-retry-after-ms", "1500")], Some(1.5)),
            (&[("retry-after-ms", "1583020793000")], Some(3.0)),
            (&[("x-ratelimit-reset-after", "4")], Some(4.0)),
            (
                &[
                    ("anthropic-ratelimit-requests-remaining", "0"),
                    ("anthropic-ratelimit-requests-reset", "2020-03-01T00:00:20Z"),
                    ("anthropic-ratelimit-tokens-remaining", "5000"),
                    ("anthropic-ratelimit-tokens-reset", "2020-03-01T00:09:20Z"),
                ],
                Some(30.0),
            ),
            (
                &[
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", "6m0s"),
                    ("x-ratelimit-remaining-requests", "9"),
                    ("x-ratelimit-reset-requests", "1s"),
                ],
                Some(360.0),
            ),
            (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1583020793")], Some(3.0)),
            (&[("ratelimit-remaining", "0"), ("ratelimit-reset", "50")], Some(50.0)),
            (&[("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", "50")], None),
        ] {
            assert_eq!(asked(headers), wait, "{headers:?}");
        }
    }

    #[test]
    fn retry_wait_is_parsed_from_the_error_message() {
        let seconds = |message| stated_wait(message).map(|wait| wait.as_secs_f64());
        for (message, wait) in [
            ("Limit 6000. Please try again in 9m38.5s. Need more?", Some(578.5)),
            ("Please try again in 120ms.", Some(0.12)),
            ("Please retry after 24 seconds.", Some(24.0)),
            ("Please retry in 20.04466179s.", Some(20.044_661_79)),
            ("Please try again in 1 minute", Some(60.0)),
            ("try again in 500 milliseconds", Some(0.5)),
            ("please try again in a moment", None),
            ("try again in ", None),
            ("try again in 5 \u{fc}", None),
            ("try again in 99999999999999999999d", None),
        ] {
            assert_eq!(seconds(message), wait, "{message}");
        }
    }
}
