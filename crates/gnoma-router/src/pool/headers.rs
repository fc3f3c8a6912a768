//! Rate limits as vendors tell them in the headers of an answer.
//!
//! Names are words joined by `-`: besides `ratelimit` they say which figure it is (`limit`,
//! `remaining`, `reset`), of what (`requests`, `tokens`, `input-tokens`, `output-tokens`; nothing
//! means requests) and sometimes over which time (`minute`, `day`, …). OpenAI, Groq, Cerebras,
//! Mistral, Anthropic, OpenRouter and the IETF draft all keep to that; a header with any other word
//! in its name is not understood and left out.

use std::collections::BTreeMap;

use gnoma_core::ledger::{Limit, Unit, Window};
use serde::{Deserialize, Serialize};

use jiff::Timestamp;

use super::rates::{DAY_MS, MINUTE_MS, SECOND_MS};

/// Headers beyond this number are not read.
pub const MOST_HEADERS: usize = 256;

/// A longer value is no figure.
const MOST_VALUE_BYTES: usize = 64;

/// A plain number from here on is a time since 1970 in seconds, below it a wait.
const EPOCH_SECONDS: f64 = 1e9;

/// A plain number from here on is a time since 1970 in milliseconds.
const EPOCH_MS: f64 = 1e11;

/// The longest time until a limit resets, in milliseconds.
const MOST_RESET_MS: u64 = 366 * DAY_MS;

/// One limit as an answer told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedLimit {
    /// The unit that is counted.
    pub unit: Unit,
    /// Over which time, where the name says that.
    pub window: Option<Window>,
    /// The amount that the limit allows.
    pub limit: Option<u64>,
    /// The amount that is left of the limit.
    pub remaining: Option<u64>,
    /// Milliseconds until there is all of it again.
    pub reset_ms: Option<u64>,
}

impl ReportedLimit {
    /// The limit for a ledger. A minute where no time is named: vendors limit by the minute, and a
    /// limit over a longer time is rather allowed too much than too little by it.
    #[must_use]
    pub fn as_limit(&self) -> Option<Limit> {
        let window = self.window.unwrap_or(Window::Rolling { ms: MINUTE_MS });
        Some(Limit { unit: self.unit, window, most: self.limit? })
    }
}

/// A limit is the same one when it counts the same over the same time.
type Key = (HeaderField, Option<LimitWindow>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HeaderField {
    Requests,
    Input,
    Output,
    Tokens,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LimitWindow {
    Second,
    Minute,
    Hour,
    Day,
    Month,
}

enum Figure {
    Limit,
    Remaining,
    Reset,
}

/// The limits that the headers of an answer tell. `now_ms` is when it came, in milliseconds since
/// 1970.
#[must_use]
pub fn reported_limits<'h>(
    headers: impl IntoIterator<Item = (&'h str, &'h str)>,
    now_ms: i64,
) -> Vec<ReportedLimit> {
    let mut found: BTreeMap<Key, ReportedLimit> = BTreeMap::new();
    for (name, value) in headers.into_iter().take(MOST_HEADERS) {
        let Some((figure, kind, span)) = read_name(name) else { continue };
        let entry = found.entry((kind, span)).or_insert(ReportedLimit {
            unit: unit_of(kind),
            window: span.map(window_of),
            limit: None,
            remaining: None,
            reset_ms: None,
        });
        match figure {
            Figure::Limit => entry.limit = parse_count(value).or(entry.limit),
            Figure::Remaining => entry.remaining = parse_count(value).or(entry.remaining),
            Figure::Reset => entry.reset_ms = parse_wait_ms(value, now_ms).or(entry.reset_ms),
        }
    }
    found.into_values().filter(|seen| seen.limit.is_some() || seen.remaining.is_some()).collect()
}

fn read_name(name: &str) -> Option<(Figure, HeaderField, Option<LimitWindow>)> {
    if name.len() > MOST_VALUE_BYTES {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("x-").unwrap_or(&name);
    let (mut figure, mut span) = (None, None);
    let (mut is_limit, mut input, mut output, mut tokens) = (false, false, false, false);
    for word in name.split('-') {
        match word {
            "ratelimit" => is_limit = true,
            "limit" => figure = Some(Figure::Limit),
            "remaining" => figure = Some(Figure::Remaining),
            "reset" => figure = Some(Figure::Reset),
            "input" => input = true,
            "output" => output = true,
            "tokens" => tokens = true,
            "second" => span = Some(LimitWindow::Second),
            "minute" => span = Some(LimitWindow::Minute),
            "hour" => span = Some(LimitWindow::Hour),
            "day" => span = Some(LimitWindow::Day),
            "month" => span = Some(LimitWindow::Month),
            "anthropic" | "requests" | "request" | "req" => {}
            _ => return None,
        }
    }
    let kind = match (tokens, input, output) {
        (true, true, false) => HeaderField::Input,
        (true, false, true) => HeaderField::Output,
        (true, false, false) => HeaderField::Tokens,
        (false, false, false) => HeaderField::Requests,
        (_, true, _) | (_, _, true) => return None,
    };
    figure.filter(|_| is_limit).map(|figure| (figure, kind, span))
}

fn unit_of(kind: HeaderField) -> Unit {
    match kind {
        HeaderField::Requests => Unit::Requests,
        HeaderField::Input => Unit::Input,
        HeaderField::Output => Unit::Output,
        HeaderField::Tokens => Unit::Tokens,
    }
}

fn window_of(span: LimitWindow) -> Window {
    match span {
        LimitWindow::Second => Window::Rolling { ms: SECOND_MS },
        LimitWindow::Minute => Window::Rolling { ms: MINUTE_MS },
        LimitWindow::Hour => Window::Rolling { ms: 60 * MINUTE_MS },
        LimitWindow::Day => Window::Rolling { ms: DAY_MS },
        LimitWindow::Month => Window::Month,
    }
}

/// A whole number; the IETF draft may add `;w=60` and further limits after it.
fn parse_count(value: &str) -> Option<u64> {
    let first = value.get(..value.len().min(MOST_VALUE_BYTES))?.split([',', ';']).next()?.trim();
    first.parse().ok().or_else(|| to_whole(first.parse().ok()?))
}

/// Milliseconds to wait: `1m30.5s`, `120ms`, seconds, a time since 1970, or a date.
fn parse_wait_ms(value: &str, now_ms: i64) -> Option<u64> {
    let value = value.trim();
    if value.len() > MOST_VALUE_BYTES {
        return None;
    }
    let wait = match value.parse::<f64>() {
        Ok(number) if number >= EPOCH_MS => ms_until(to_whole(number)?, now_ms),
        Ok(number) if number >= EPOCH_SECONDS => ms_until(to_whole(number * 1000.0)?, now_ms),
        Ok(number) => to_whole((number * 1000.0).ceil())?,
        Err(_) => match parse_date_ms(value) {
            Some(at_ms) => ms_until(u64::try_from(at_ms).ok()?, now_ms),
            None => parse_duration_ms(value)?,
        },
    };
    Some(wait.min(MOST_RESET_MS))
}

fn ms_until(at_ms: u64, now_ms: i64) -> u64 {
    at_ms.saturating_sub(u64::try_from(now_ms).unwrap_or(0))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked here")]
fn to_whole(number: f64) -> Option<u64> {
    (0.0..=1e18).contains(&number).then_some(number as u64)
}

/// `2h3m4.5s` and the like in milliseconds.
fn parse_duration_ms(value: &str) -> Option<u64> {
    let (mut sum, mut rest) = (0.0, value);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let ms = match unit {
            "d" => 86_400_000.0,
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1000.0,
            "ms" => 1.0,
            "us" | "µs" => 0.001,
            "ns" => 0.000_001,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * ms;
        rest = next;
    }
    to_whole(sum.ceil())
}

/// `2026-11-22T08:15:00Z`, with a fraction or not, in milliseconds since 1970.
fn parse_date_ms(value: &str) -> Option<i64> {
    let (day, clock) = value.strip_suffix(['Z', 'z'])?.split_once(['T', 't'])?;
    (day.len() == 10 && clock.contains(':')).then_some(())?;
    let at: Timestamp = value.parse().ok()?;
    (at.as_second() >= 0).then_some(at.as_second() * 1000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    type Told = (Unit, Option<u64>, Option<u64>, Option<u64>);

    fn read(headers: &[(&str, &str)]) -> Vec<Told> {
        reported_limits(headers.iter().copied(), NOW_MS)
            .into_iter()
            .map(|seen| (seen.unit, seen.limit, seen.remaining, seen.reset_ms))
            .collect()
    }

    #[test]
    fn rate_limit_headers_of_every_vendor_are_parsed() {
        let openai = [
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("X-RateLimit-Limit-Tokens", "30000"),
            ("x-ratelimit-remaining-tokens", "28500"),
            ("x-ratelimit-reset-tokens", "1m3.5s"),
            ("x-request-id", "9"),
        ];
        assert_eq!(
            read(&openai),
            [
                (Unit::Requests, Some(500), Some(499), Some(120)),
                (Unit::Tokens, Some(30_000), Some(28_500), Some(63_500)),
            ]
        );
        let anthropic = [
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2027-01-15T08:00:12Z"),
            ("anthropic-ratelimit-input-tokens-limit", "30000"),
            ("anthropic-ratelimit-output-tokens-remaining", "8000"),
            ("anthropic-ratelimit-unified-5h-utilization", "0.4"),
        ];
        assert_eq!(
            read(&anthropic),
            [
                (Unit::Requests, Some(50), Some(0), Some(12_000)),
                (Unit::Input, Some(30_000), None, None),
                (Unit::Output, None, Some(8000), None),
            ]
        );
        let openrouter = [
            ("X-RateLimit-Limit", "20"),
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", "1800000060000"),
        ];
        assert_eq!(read(&openrouter), [(Unit::Requests, Some(20), Some(0), Some(60_000))]);
        let draft = [("RateLimit-Limit", "100;w=60"), ("RateLimit-Reset", "30")];
        assert_eq!(read(&draft), [(Unit::Requests, Some(100), None, Some(30_000))]);
        let seconds = [("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "1800000007")];
        assert_eq!(read(&seconds), [(Unit::Requests, None, Some(1), Some(7000))]);
    }

    #[test]
    fn named_rate_limit_periods_are_parsed_as_windows() {
        let cerebras = [
            ("x-ratelimit-limit-requests-day", "14400"),
            ("x-ratelimit-limit-tokens-minute", "60000"),
            ("x-ratelimit-reset-tokens-minute", "12.4"),
        ];
        let seen = reported_limits(cerebras, NOW_MS);
        assert_eq!(seen[0].window, Some(Window::Rolling { ms: DAY_MS }));
        assert_eq!(seen[1].window, Some(Window::Rolling { ms: MINUTE_MS }));
        assert_eq!(seen[1].reset_ms, Some(12_400));
        assert_eq!(seen[0].as_limit().map(|limit| limit.most), Some(14_400));
    }

    proptest! {
        #[test]
        fn rate_limit_header_parser_never_panics(
            headers in prop::collection::vec(
                ("(x-)?ratelimit-(limit|remaining|reset)(-(requests|tokens|day))?|\\PC{0,80}",
                 "[0-9TZ:.\\-hmsd]{0,40}|\\PC{0,80}|[0-9]{1,30}"),
                0..20,
            ),
            now: i64,
        ) {
            let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            for seen in reported_limits(pairs, now) {
                prop_assert!(seen.reset_ms.is_none_or(|ms| ms <= MOST_RESET_MS));
                prop_assert!(seen.limit.is_some() || seen.remaining.is_some());
            }
        }
    }
}
