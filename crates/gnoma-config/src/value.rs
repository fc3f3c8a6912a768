//! Values of settings, and the short forms of times and sizes (`5m`, `2MB`).

use std::{borrow::Cow, fmt, time::Duration};

use gnoma_core::Secret;

use crate::text::quote_toml;

/// Longest time that can be set: longer ones are slips, and clocks overflow.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// A masked secret shows its end only when it is longer than this.
const SHOWS_END_FROM_CHARS: usize = 12;
/// Characters of a secret's end that are shown.
const END_CHARS: usize = 4;

/// The value of a key. Its text form is TOML on one line, with secrets masked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(Cow<'static, str>),
    Secret(Secret<String>),
    Integer(i64),
    Number(f64),
    Bool(bool),
    Duration(Duration),
    Bytes(u64),
    List(Cow<'static, [Cow<'static, str>]>),
}

impl Value {
    /// The text of a text.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.into_owned()),
            _ => None,
        }
    }

    /// The texts of a list.
    pub(crate) fn into_texts(self) -> Vec<String> {
        match self {
            Self::List(texts) => texts.iter().map(|text| text.clone().into_owned()).collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quote_toml(text)),
            Self::Secret(secret) => f.write_str(&quote_toml(&mask_secret(secret))),
            Self::Integer(number) => write!(f, "{number}"),
            // Unlike `Display`, `Debug` keeps the point of a whole number.
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Duration(time) => write!(f, "\"{}\"", shown_duration(*time)),
            Self::Bytes(count) => write!(f, "{count}"),
            Self::List(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| quote_toml(text)).collect();
                write!(f, "[{}]", texts.join(", "))
            }
        }
    }
}

/// Stars, and the end of a secret that is long enough for its end to tell nothing.
fn mask_secret(secret: &Secret<String>) -> String {
    let count = secret.expose().chars().count();
    let end: String = if count > SHOWS_END_FROM_CHARS {
        secret.expose().chars().skip(count - END_CHARS).collect()
    } else {
        String::new()
    };
    format!("***{end}")
}

/// A time in the largest unit that it is a whole number of, as [`parse_duration`] reads it.
fn shown_duration(time: Duration) -> String {
    const MINUTE_S: u64 = 60;
    const HOUR_S: u64 = 60 * MINUTE_S;
    const DAY_S: u64 = 24 * HOUR_S;
    match time.as_secs() {
        _ if time.subsec_millis() != 0 => format!("{}ms", time.as_millis()),
        DAY_S => "1 day".to_owned(),
        seconds if seconds > 0 && seconds % DAY_S == 0 => format!("{} days", seconds / DAY_S),
        seconds if seconds > 0 && seconds % HOUR_S == 0 => format!("{}h", seconds / HOUR_S),
        seconds if seconds > 0 && seconds % MINUTE_S == 0 => format!("{}m", seconds / MINUTE_S),
        seconds => format!("{seconds}s"),
    }
}

/// Reads a time such as `30s`, `1m30s`, `1.5h`, `30 days`, `250ms`; a number alone is seconds.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, after) = split_number(rest)?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        seconds += number
            * match unit.trim() {
                "ms" => 0.001,
                "s" | "sec" | "second" | "seconds" => 1.0,
                // A number without a unit stands alone.
                "" if rest.len() == text.trim().len() => 1.0,
                "m" | "min" | "minute" | "minutes" => 60.0,
                "h" | "hour" | "hours" => 3600.0,
                "d" | "day" | "days" => 86400.0,
                _ => return None,
            };
        rest = next;
    }
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (time <= MAX_DURATION).then_some(time)
}

/// Reads a size such as `1MB` (a million), `1MiB` (2^20) or `4096` bytes.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text.trim())?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = (number * factor).round();
    // Above 2^53 a float no longer counts single bytes, and no file is that large.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    (0.0..=9_007_199_254_740_992.0).contains(&bytes).then_some(bytes as u64)
}

/// The decimal number at the start of `text`, and what follows it.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_people_write() {
        let seconds = |text| parse_duration(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("30s"), Some(30.0));
        assert_eq!(seconds("30"), Some(30.0));
        assert_eq!(seconds("1m30s"), Some(90.0));
        assert_eq!(seconds("1.5h"), Some(5400.0));
        assert_eq!(seconds("2d"), Some(172_800.0));
        assert_eq!(seconds("250ms"), Some(0.25));
        assert_eq!(seconds("30 days"), Some(2_592_000.0));
        assert_eq!(seconds("1 hour 30 min"), Some(5400.0));
        for wrong in ["", "s", "1x", "-1s", "1m30", "1..5s", "99999999h"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_shown_in_the_largest_unit_and_read_back() {
        for (ms, shown) in [
            (0, "0s"),
            (250, "250ms"),
            (30_000, "30s"),
            (90_000, "90s"),
            (300_000, "5m"),
            (7_200_000, "2h"),
            (86_400_000, "1 day"),
            (2_592_000_000, "30 days"),
        ] {
            let time = Duration::from_millis(ms);
            assert_eq!(shown_duration(time), shown);
            assert_eq!(parse_duration(shown), Some(time));
        }
    }

    #[test]
    fn sizes_tell_decimal_from_binary_units() {
        assert_eq!(parse_bytes("1MB"), Some(1_000_000));
        assert_eq!(parse_bytes("1.5 MiB"), Some(1_572_864));
        assert_eq!(parse_bytes("64k"), Some(64_000));
        assert_eq!(parse_bytes("12"), Some(12));
        for wrong in ["", "MB", "1TBB", "-1", "1e9999"] {
            assert_eq!(parse_bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_shows_its_end_only_when_it_is_long() {
        let secret = |text: &str| Value::Secret(Secret::new(text.to_owned())).to_string();
        assert_eq!(secret("123456789012"), "\"***\"");
        assert_eq!(secret("1234567890123"), "\"***0123\"");
    }
}
