//! How long to wait, in the many ways of saying it.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};

/// Seconds in the units that servers write.
const UNITS: [(&str, f64); 5] =
    [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// What stands before the wait in a message.
const BEFORE: [&str; 3] = ["try again in ", "retry in ", "retry after "];

/// `17s`, `1.5s`, `250ms`, `7m12.5s`.
pub(super) fn duration(text: &str) -> Option<Duration> {
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

/// The wait that a message asks for: `Please try again in 7m12s.`, `Please retry after 24 seconds.`
pub(super) fn stated(message: &str) -> Option<Duration> {
    let after = BEFORE.iter().find_map(|before| Some(message.split_once(before)?.1))?;
    let mut words = after.split_whitespace();
    let first = words.next()?.trim_end_matches(['.', ',']);
    let spelled = || {
        let unit = words.next()?;
        let short = if unit.starts_with("milli") { "ms" } else { unit.get(..1)? };
        duration(&format!("{first}{short}"))
    };
    duration(first).or_else(spelled)
}

/// `Retry-After` as a wait: seconds, or a date (RFC 9110 §10.2.3) counted from the answer's own `Date`,
/// so that no clock of ours is needed.
pub(crate) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    http_date(value)?.duration_since(http_date(date?)?).try_into().ok()
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form servers may send. Some get the day of the week wrong.
fn http_date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7", None), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("0.5", None), Some(Duration::from_millis(500)));
        let now = "Sat, 29 Feb 2020 23:59:50 GMT";
        let then = "Sun, 01 Mar 2020 00:00:20 GMT";
        assert_eq!(retry_after(then, Some(now)), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("soon", Some(now)), None);
        assert_eq!(retry_after(now, Some(then)), None, "it has passed");
        let first = http_date("Thu, 01 Jan 1970 00:00:01 GMT").unwrap();
        assert_eq!(first.as_second(), 1);
    }

    #[test]
    fn waits_are_found_in_words() {
        let seconds = |message| stated(message).map(|wait| wait.as_secs_f64());
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
