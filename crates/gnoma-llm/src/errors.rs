//! From a vendor's words for a failure to gnoma's.
//!
//! Vendors agree on nothing: the message may stand under `error`, be `error`, stand beside it, or be
//! called `detail`. One reader knows all shapes, so every dialect classifies alike.

use std::time::Duration;

use gnoma_core::{ErrorKind, ProviderError};
use gnoma_net::{NetError, NetErrorKind};
use serde_json::Value;

use crate::Profile;

/// Most of a foreign body that is quoted when it is not understood, in characters.
const MAX_QUOTE_CHARS: usize = 300;

/// Longest wait we believe a provider.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// A failure with a status: read from the answer's body and its `Retry-After`.
pub(crate) fn from_status(
    profile: &Profile,
    status: u16,
    retry_after: Option<Duration>,
    body: &[u8],
) -> ProviderError {
    let text = String::from_utf8_lossy(body);
    let mut error = match serde_json::from_str::<Value>(&text) {
        Ok(value) => from_value(profile, Some(status), &value),
        Err(_) => classified(profile, Some(status), Facts::unread(&text)),
    };
    if let Some(wait) = retry_after {
        error.retry_after = Some(wait.min(MAX_RETRY_AFTER));
    }
    error
}

/// A failure told in a JSON value: the body of an answer, or a record in mid-stream.
pub(crate) fn from_value(profile: &Profile, status: Option<u16>, value: &Value) -> ProviderError {
    classified(profile, status, Facts::read(value))
}

/// A record that cannot be read.
pub(crate) fn broken_record(
    profile: &Profile,
    error: &serde_json::Error,
    data: &str,
) -> ProviderError {
    protocol(profile, format!("broken record in the answer ({error}): {}", quote(data)))
}

/// An answer that does not follow the protocol.
pub(crate) fn protocol(profile: &Profile, message: impl Into<String>) -> ProviderError {
    let hint = format!(
        "Check that the address of `{}` is right and that it speaks the configured protocol.",
        profile.name
    );
    ProviderError::new(ErrorKind::Protocol, &profile.name, message).with_hint(hint)
}

/// The server points elsewhere, where the key would go too.
pub(crate) fn redirected(profile: &Profile, status: u16, location: &str) -> ProviderError {
    let message = format!("the server redirects to `{location}`, which is not followed");
    ProviderError { status: Some(status), ..protocol(profile, message) }
}

/// The connection ended before the answer did.
pub(crate) fn truncated(profile: &Profile) -> ProviderError {
    ProviderError::new(
        ErrorKind::Network,
        &profile.name,
        "the connection ended before the answer was complete",
    )
}

/// No answer at all.
pub(crate) fn from_net(profile: &Profile, error: &NetError) -> ProviderError {
    let kind = match error.kind {
        NetErrorKind::Timeout => ErrorKind::Timeout,
        NetErrorKind::Connect | NetErrorKind::Broken => ErrorKind::Network,
        NetErrorKind::Invalid => ErrorKind::BadRequest,
    };
    let mut out = ProviderError::new(kind, &profile.name, error.to_string());
    out.hint = match error.kind {
        NetErrorKind::Connect if profile.local => {
            Some(format!("Is the server of `{}` running at {}?", profile.name, profile.base_url))
        }
        NetErrorKind::Connect => {
            Some("Check the network, the proxy variables and the provider's address.".to_owned())
        }
        NetErrorKind::Invalid => {
            Some(format!("Check `provider.endpoints.{}` and the key.", profile.name))
        }
        NetErrorKind::Timeout => Some(
            "A longer `network.idle_timeout` helps where a model thinks or reads for long."
                .to_owned(),
        ),
        NetErrorKind::Broken => None,
    };
    out
}

/// What an error body says, whatever its shape.
#[derive(Debug, Default)]
struct Facts {
    message: String,
    code: Option<String>,
    kind: Option<String>,
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Facts {
    fn unread(text: &str) -> Self {
        Self { message: quote(text), ..Self::default() }
    }

    fn read(value: &Value) -> Self {
        let value = value.get(0).unwrap_or(value);
        let inner = match value.get("error") {
            Some(error @ Value::Object(_)) => error,
            _ => value,
        };
        let word = |key: &str| word(inner.get(key)).or_else(|| word(value.get(key)));
        let number =
            |key: &str| inner.get(key).and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok());
        let message =
            ["message", "detail", "error"].into_iter().find_map(|key| sentence(inner.get(key)));
        Self {
            message: message.unwrap_or_else(|| quote(&value.to_string())),
            code: word("code"),
            kind: word("type").filter(|kind| kind != "error").or_else(|| word("status")),
            status: number("status_code").or_else(|| number("code")).or_else(|| number("status")),
            retry_after: retry_delay(inner),
        }
    }

    /// Whether any of `words` occurs in the code, the type or the message.
    fn mentions(&self, words: &[&str]) -> bool {
        let texts = [self.code.as_deref(), self.kind.as_deref(), Some(self.message.as_str())];
        texts.into_iter().flatten().any(|text| {
            let text = text.to_ascii_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    }
}

fn word(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A message: a string, or a list of findings (validation errors).
fn sentence(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        list @ Value::Array(_) => Some(quote(&list.to_string())),
        object @ Value::Object(_) => {
            sentence(object.get("message")).or_else(|| sentence(object.get("detail")))
        }
        _ => None,
    }
}

/// Google's `RetryInfo`: `{"details":[{"retryDelay":"17s"}]}`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().map(|wait| wait.min(MAX_RETRY_AFTER))
}

const CONTEXT_WORDS: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "exceeds the available context",
    "context length",
    "context window",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input token count",
    "too many tokens in the prompt",
    "maximum context",
    "request_too_large",
];
const QUOTA_WORDS: &[&str] = &[
    "insufficient_quota",
    "quota exceeded for",
    "exceeded your current quota",
    "credit balance is too low",
    "billing",
    "payment required",
    "insufficient balance",
    "insufficient credits",
    "monthly limit",
];
const KEY_WORDS: &[&str] =
    &["api_key_invalid", "api key not valid", "invalid api key", "invalid_api_key"];
const MODEL_WORDS: &[&str] =
    &["model not found", "model_not_found", "not_found_error", "is not a valid model"];
const LIMIT_WORDS: &[&str] =
    &["rate_limit", "rate limit", "ratelimit", "too many requests", "resource_exhausted"];
const OVERLOAD_WORDS: &[&str] =
    &["overloaded", "server_error", "api_error", "unavailable", "internal"];

fn classified(profile: &Profile, status: Option<u16>, facts: Facts) -> ProviderError {
    let kind = kind_of(status.filter(|status| *status >= 400).or(facts.status), &facts);
    let mut error = ProviderError::new(kind, &profile.name, facts.message.clone());
    error.status = status.or(facts.status);
    error.code = facts.code.or(facts.kind);
    error.retry_after = facts.retry_after;
    error.hint = hint(profile, kind);
    error
}

fn kind_of(status: Option<u16>, facts: &Facts) -> ErrorKind {
    if facts.mentions(CONTEXT_WORDS) {
        return ErrorKind::ContextTooLong;
    }
    if facts.mentions(QUOTA_WORDS) {
        return ErrorKind::Quota;
    }
    match status {
        Some(401 | 403) => ErrorKind::Auth,
        Some(402) => ErrorKind::Quota,
        Some(404) => ErrorKind::NotFound,
        Some(408 | 504) => ErrorKind::Timeout,
        Some(413) => ErrorKind::ContextTooLong,
        Some(429) => ErrorKind::RateLimited,
        Some(400..=499) if facts.mentions(KEY_WORDS) => ErrorKind::Auth,
        Some(400..=499) if facts.mentions(MODEL_WORDS) => ErrorKind::NotFound,
        Some(400..=499) => ErrorKind::BadRequest,
        Some(500..) => ErrorKind::Overloaded,
        _ if facts.mentions(LIMIT_WORDS) => ErrorKind::RateLimited,
        _ if facts.mentions(KEY_WORDS) => ErrorKind::Auth,
        _ if facts.mentions(OVERLOAD_WORDS) => ErrorKind::Overloaded,
        _ => ErrorKind::BadRequest,
    }
}

fn hint(profile: &Profile, kind: ErrorKind) -> Option<String> {
    let name = &profile.name;
    Some(match kind {
        ErrorKind::Auth if profile.key.is_none() => format!(
            "No key for `{name}` is set: export {} or set `provider.api_keys.{name}`.",
            profile.key_variable
        ),
        ErrorKind::Auth => format!(
            "The key for `{name}` was refused: check {} or `provider.api_keys.{name}`.",
            profile.key_variable
        ),
        ErrorKind::NotFound => {
            format!("`gnoma providers` lists the models of `{name}`; the address asked was {}.", profile.base_url)
        }
        ErrorKind::ContextTooLong => {
            "Start a new conversation, ask for less at once, or choose a model with a larger window.".to_owned()
        }
        ErrorKind::Quota => format!("Top up or raise the limit at `{name}`, or use another provider."),
        ErrorKind::RateLimited | ErrorKind::Overloaded => {
            "Try again later, or use another provider with --provider.".to_owned()
        }
        ErrorKind::BadRequest
        | ErrorKind::Network
        | ErrorKind::Timeout
        | ErrorKind::Protocol
        | ErrorKind::Cancelled => return None,
    })
}

fn quote(text: &str) -> String {
    let text = text.trim();
    if text.starts_with('<') {
        return "the server answered with an HTML page".to_owned();
    }
    match text.char_indices().nth(MAX_QUOTE_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// `Retry-After` as a wait: seconds, or a date (RFC 9110 §10.2.3) counted from the answer's own `Date`,
/// so that no clock of ours is needed.
pub(crate) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let wait = http_date(value)?.checked_sub(http_date(date?)?)?;
    Some(Duration::from_secs(wait))
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`, the one form servers may send.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split([' ', ':']);
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = [0_u64; 3];
    for part in &mut clock {
        *part = words.next()?.parse().ok()?;
    }
    // Days from a civil date, counting years from March (Howard Hinnant's algorithm).
    let (year, month) =
        if month < 2 { (year.checked_sub(1)?, month + 10) } else { (year, month - 2) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    fn read(status: u16, body: &str) -> ProviderError {
        let profile = Profile::new("p", Protocol::OpenAi, "http://x");
        from_status(&profile, status, None, body.as_bytes())
    }

    #[test]
    fn every_shape_of_error_is_read() {
        let cases = [
            (401, r#"{"detail":"Invalid API Key"}"#, ErrorKind::Auth, "Invalid API Key", None),
            (
                404,
                r#"{"error":"model 'x' not found"}"#,
                ErrorKind::NotFound,
                "model 'x' not found",
                None,
            ),
            (
                400,
                r#"{"code":"invalid-argument","error":"Model not found: x"}"#,
                ErrorKind::NotFound,
                "Model not found: x",
                Some("invalid-argument"),
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}"#,
                ErrorKind::Auth,
                "API key not valid.",
                Some("400"),
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
                ErrorKind::Quota,
                "You exceeded your current quota",
                Some("insufficient_quota"),
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
                ErrorKind::ContextTooLong,
                "prompt is too long: 9 > 8",
                Some("invalid_request_error"),
            ),
            (529, "", ErrorKind::Overloaded, "", None),
            (
                502,
                "<html>bad gateway</html>",
                ErrorKind::Overloaded,
                "the server answered with an HTML page",
                None,
            ),
        ];
        for (status, body, kind, message, code) in cases {
            let error = read(status, body);
            assert_eq!((error.kind, error.message.as_str()), (kind, message), "{body}");
            assert_eq!(error.code.as_deref(), code, "{body}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7", None), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("0.5", None), Some(Duration::from_millis(500)));
        let now = "Sat, 29 Feb 2020 23:59:50 GMT";
        let then = "Sun, 01 Mar 2020 00:00:20 GMT";
        assert_eq!(retry_after(then, Some(now)), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("soon", Some(now)), None);
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:01 GMT"), Some(1));
    }

    #[test]
    fn google_tells_the_wait_in_the_body() {
        let body = r#"{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED",
            "details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17.5s"}]}}"#;
        let error = read(429, body);
        assert_eq!(error.kind, ErrorKind::RateLimited);
        assert_eq!(error.retry_after, Some(Duration::from_millis(17_500)));
    }
}
