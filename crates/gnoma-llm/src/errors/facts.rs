//! Extracts message, code and retry delay from an error body of any shape.

use std::time::Duration;

use gnoma_net::retry_wait::{parse_duration, stated_wait};
use serde_json::Value;

use super::quote::quote_text;

/// The fields that may hold the message, under its various names.
const MESSAGES: [&str; 11] = [
    "message",
    "detail",
    "error",
    "errors",
    "msg",
    "error_msg",
    "error_message",
    "errorMessage",
    "err_msg",
    "errmsg",
    "Message",
];

/// The fields that may hold the status. Mistral's own codes look alike, but are larger.
const STATUSES: [&str; 5] = ["status_code", "raw_status_code", "statusCode", "code", "status"];

/// An error body, read.
#[derive(Debug, Default)]
pub(super) struct ErrorFacts {
    pub(super) message: String,
    pub(super) code: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    /// The period of the used-up quota, if the error tells it.
    pub(super) quota: Option<Period>,
    /// The body is no JSON.
    pub(super) is_page: bool,
}

/// The period over which a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Period {
    Minute,
    Day,
}

impl ErrorFacts {
    /// A body that is no JSON.
    pub(super) fn from_text(text: &str) -> Self {
        Self { message: quote_text(text), is_page: true, ..Self::default() }
    }

    pub(super) fn from_value(value: &Value) -> Self {
        let value = value.get(0).unwrap_or(value);
        if let Value::String(text) = value {
            return Self { message: quote_text(text), ..Self::default() };
        }
        let inner = match value.get("error") {
            Some(error @ Value::Object(_)) => error,
            // iFlytek's form.
            _ => value.get("header").filter(|header| header.is_object()).unwrap_or(value),
        };
        let word = |key: &str| word_of(inner.get(key)).or_else(|| word_of(value.get(key)));
        let message = MESSAGES.into_iter().find_map(|key| message_text(inner.get(key)));
        let message = with_origin(message, inner).unwrap_or_else(|| quote_text(&value.to_string()));
        Self {
            code: word("code").or_else(|| word("error_code")),
            kind: word("type").filter(|kind| kind != "error").or_else(|| word("status")),
            status: STATUSES.into_iter().find_map(|key| failure_status(inner.get(key)?)),
            retry_after: retry_delay(inner).or_else(|| stated_wait(&message)),
            quota: quota_period(inner, &message),
            message,
            is_page: false,
        }
    }

    /// Reports whether any of `words` occurs in the code, the type or the message.
    pub(super) fn mentions_any(&self, words: &[&str]) -> bool {
        let texts = [self.code.as_deref(), self.kind.as_deref(), Some(self.message.as_str())];
        texts.into_iter().flatten().any(|text| {
            let text = text.to_ascii_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    }
}

fn word_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A status that means failure, as a number or in a string.
fn failure_status(value: &Value) -> Option<u16> {
    let number = match value {
        Value::String(text) => text.parse().ok()?,
        other => other.as_u64().and_then(|number| u16::try_from(number).ok())?,
    };
    (400..600).contains(&number).then_some(number)
}

/// A message: a string, or a list of findings (validation errors).
fn message_text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        list @ Value::Array(items) => {
            let findings: Option<Vec<_>> = items.iter().map(describe_finding).collect();
            Some(quote_text(&findings.map_or_else(|| list.to_string(), |all| all.join("; "))))
        }
        object @ Value::Object(_) => MESSAGES.iter().find_map(|key| message_text(object.get(key))),
        _ => None,
    }
}

/// One of FastAPI's findings: `{"loc": ["body", "messages"], "msg": "field required"}`.
fn describe_finding(value: &Value) -> Option<String> {
    let says = value.get("msg")?.as_str()?;
    let place: Vec<_> =
        value.get("loc")?.as_array()?.iter().filter_map(|step| word_of(Some(step))).collect();
    Some(format!("{}: {says}", place.join(".")))
}

/// The message and what stands behind it: OpenRouter says no more than that the provider it asked
/// failed, and keeps that one's own words in `metadata.raw`.
fn with_origin(message: Option<String>, error: &Value) -> Option<String> {
    let origin =
        error.pointer("/metadata/raw").and_then(Value::as_str).map(
            |raw| match serde_json::from_str::<Value>(raw) {
                Ok(value) => ErrorFacts::from_value(&value).message,
                Err(_) => quote_text(raw),
            },
        );
    match (message, origin.filter(|origin| !origin.is_empty())) {
        (Some(message), Some(origin)) if !message.contains(&origin) => {
            Some(format!("{message}: {origin}"))
        }
        (message, origin) => message.or(origin),
    }
}

/// Google's details of an error.
fn error_details(error: &Value) -> impl Iterator<Item = &Value> {
    error.get("details").and_then(Value::as_array).into_iter().flatten()
}

/// Parses the wait in Google's `RetryInfo`: `{"details":[{"retryDelay":"17s"}]}`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let delay = error_details(error).find_map(|detail| detail.get("retryDelay")?.as_str())?;
    parse_duration(delay)
}

/// The longest of the quotas in Google's `QuotaFailure`, whose ids say what they count; Vertex names
/// its one in the message.
fn quota_period(error: &Value, message: &str) -> Option<Period> {
    let violations = error_details(error).filter_map(|detail| detail.get("violations")?.as_array());
    let ids: Vec<&str> =
        violations.flatten().filter_map(|violation| violation.get("quotaId")?.as_str()).collect();
    if ids.iter().any(|id| id.contains("PerDay")) {
        Some(Period::Day)
    } else if ids.iter().any(|id| id.contains("PerMinute")) || message.contains("_per_minute") {
        Some(Period::Minute)
    } else {
        None
    }
}
