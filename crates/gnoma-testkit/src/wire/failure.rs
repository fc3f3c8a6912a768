//! Failures, each vendor's way.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::protocol::{Wire, named_event, unnamed_event};
use crate::server::Reply;

/// The time to come back, as `Retry-After` says it.
#[derive(Clone, Debug)]
pub enum RetryAfter {
    /// After so many seconds.
    Seconds(u64),
    /// At this HTTP date, while the answer's own `Date` is that one.
    Date {
        /// The moment to come back.
        at: String,
        /// The time of the server's clock.
        now: String,
    },
}

/// The failure of a vendor.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The key is wrong.
    Key,
    /// There is no such model.
    NoModel,
    /// The prompt does not fit.
    TooLong,
    /// The quota, paid or free, is used up.
    Quota,
    /// The client sent too many requests.
    RateLimited(Option<RetryAfter>),
    /// The vendor is overloaded.
    Overloaded,
    /// The vendor's server has an internal error.
    Internal,
    /// A server in between answers with a web page.
    WebPage,
}

/// One failure in a vendor's words.
struct FailureText {
    status: u16,
    kind: &'static str,
    code: &'static str,
    message: Cow<'static, str>,
}

const fn fixed_text(
    status: u16,
    kind: &'static str,
    code: &'static str,
    message: &'static str,
) -> FailureText {
    FailureText { status, kind, code, message: Cow::Borrowed(message) }
}

pub(super) fn failure_reply(wire: Wire, failure: &Failure) -> Reply {
    if matches!(failure, Failure::WebPage) {
        let page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
        return Reply::new(502, "text/html", page);
    }
    let words = vendor_text(wire, failure);
    let body = match (wire, failure) {
        (Wire::Google, Failure::Quota) => google_quota(&words),
        _ => error_body(wire, &words),
    };
    let reply = Reply::json(words.status, body.to_string());
    match failure {
        Failure::RateLimited(Some(RetryAfter::Seconds(seconds))) => {
            reply.with_header("retry-after", seconds.to_string())
        }
        Failure::RateLimited(Some(RetryAfter::Date { at, now })) => {
            reply.with_header("retry-after", at).with_header("date", now)
        }
        _ => reply,
    }
}

/// The answer to a request that breaks a rule of the vendor's.
pub(super) fn refusal_reply(wire: Wire, reason: String) -> Reply {
    let (kind, code) = match wire {
        Wire::Google => ("INVALID_ARGUMENT", ""),
        _ => ("invalid_request_error", ""),
    };
    let words = FailureText { status: 400, kind, code, message: Cow::Owned(reason) };
    Reply::json(words.status, error_body(wire, &words).to_string())
}

/// A failure as the last record of a stream that had begun well.
pub(super) fn failure_record(wire: Wire, failure: &Failure) -> String {
    let words = vendor_text(wire, failure);
    let data = error_body(wire, &words);
    match wire {
        Wire::Anthropic => named_event(&data),
        Wire::Responses => {
            let error = json!({"code": words.kind, "message": words.message});
            named_event(&json!({"type": "error", "code": words.kind, "message": words.message}))
                + &named_event(&json!({
                    "type": "response.failed",
                    "response": {"id": "resp_1", "status": "failed", "error": error, "output": []},
                }))
        }
        Wire::Google => format!("data: {data}\r\n\r\n"),
        Wire::Ollama => format!("{data}\n"),
        Wire::Mistral | Wire::OpenAi | Wire::Compatible => unnamed_event(&data),
    }
}

fn vendor_text(wire: Wire, failure: &Failure) -> FailureText {
    match wire {
        Wire::Anthropic => anthropic_text(failure),
        Wire::OpenAi | Wire::Responses => openai_text(failure),
        Wire::Compatible => compatible_text(failure),
        Wire::Mistral => mistral_text(failure),
        Wire::Google => google_text(failure),
        Wire::Ollama => ollama_text(failure),
    }
}

/// Google tells a day's quota from a minute's in the details only.
fn google_quota(words: &FailureText) -> Value {
    let violation = json!({
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
        "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
    });
    let mut body = error_body(Wire::Google, words);
    body["error"]["details"] = json!([{
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [violation],
    }]);
    body
}

fn error_body(wire: Wire, words: &FailureText) -> Value {
    let FailureText { status, kind, code, message } = words;
    match wire {
        Wire::Anthropic => json!({
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": "req_1",
        }),
        Wire::OpenAi | Wire::Responses => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
        Wire::Compatible => json!({"error": {"code": status, "message": message, "type": kind}}),
        Wire::Mistral if kind.is_empty() => json!({"detail": message}),
        Wire::Mistral => json!({
            "object": "error",
            "message": message,
            "type": kind,
            "param": null,
            "code": code,
            "raw_status_code": status,
        }),
        Wire::Google => json!({"error": {"code": status, "message": message, "status": kind}}),
        Wire::Ollama => json!({"error": message}),
    }
}

fn anthropic_text(failure: &Failure) -> FailureText {
    match failure {
        Failure::Key => fixed_text(401, "authentication_error", "", "invalid x-api-key"),
        Failure::NoModel => fixed_text(404, "not_found_error", "", "model: test-model"),
        Failure::TooLong => fixed_text(
            400,
            "invalid_request_error",
            "",
            "prompt is too long: 200001 tokens > 200000 maximum",
        ),
        Failure::Quota => fixed_text(
            400,
            "invalid_request_error",
            "",
            "Your credit balance is too low to access the Anthropic API.",
        ),
        Failure::RateLimited(_) => fixed_text(429, "rate_limit_error", "", "rate limit exceeded"),
        Failure::Overloaded => fixed_text(529, "overloaded_error", "", "Overloaded"),
        Failure::Internal | Failure::WebPage => {
            fixed_text(500, "api_error", "", "Internal server error")
        }
    }
}

fn openai_text(failure: &Failure) -> FailureText {
    let refused = "invalid_request_error";
    match failure {
        Failure::Key => fixed_text(401, refused, "invalid_api_key", "Incorrect API key provided"),
        Failure::NoModel => fixed_text(404, refused, "model_not_found", "The model does not exist"),
        Failure::TooLong => fixed_text(
            400,
            refused,
            "context_length_exceeded",
            "Your input exceeds the context window of this model",
        ),
        Failure::Quota => fixed_text(
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        Failure::RateLimited(_) => {
            fixed_text(429, "requests", "rate_limit_exceeded", "Rate limit reached")
        }
        Failure::Overloaded => fixed_text(503, "server_error", "", "The server is overloaded"),
        Failure::Internal | Failure::WebPage => {
            fixed_text(500, "server_error", "", "The server had an error")
        }
    }
}

fn compatible_text(failure: &Failure) -> FailureText {
    match failure {
        Failure::Key => fixed_text(401, "authentication_error", "", "Invalid API Key"),
        Failure::NoModel => fixed_text(404, "not_found_error", "", "model not found"),
        Failure::TooLong => fixed_text(
            400,
            "exceed_context_size_error",
            "",
            "request (5000 tokens) exceeds the available context size (4096 tokens)",
        ),
        Failure::Quota => fixed_text(402, "unknown_error", "", "Insufficient Balance"),
        Failure::RateLimited(_) => fixed_text(429, "rate_limit_error", "", "Too many requests"),
        Failure::Overloaded => fixed_text(503, "unavailable_error", "", "Loading model"),
        Failure::Internal | Failure::WebPage => {
            fixed_text(500, "server_error", "", "failed to decode")
        }
    }
}

fn mistral_text(failure: &Failure) -> FailureText {
    match failure {
        Failure::Key => fixed_text(401, "", "", "Invalid API Key"),
        Failure::NoModel => fixed_text(404, "invalid_model", "1500", "Invalid model: test-model"),
        Failure::TooLong => fixed_text(
            400,
            "context_length_exceeded",
            "3051",
            "Prompt contains 131073 tokens, too large for model with 131072 maximum context length",
        ),
        // It has no words of its own for this.
        Failure::Quota => fixed_text(
            429,
            "service_tier_capacity_exceeded",
            "3505",
            "Service tier capacity exceeded for this model.",
        ),
        Failure::RateLimited(_) => fixed_text(429, "rate_limited", "1300", "Rate limit exceeded"),
        Failure::Overloaded => fixed_text(503, "unavailable", "3000", "Service unavailable"),
        Failure::Internal | Failure::WebPage => {
            fixed_text(500, "internal_server_error", "1000", "Internal server error")
        }
    }
}

fn google_text(failure: &Failure) -> FailureText {
    match failure {
        Failure::Key => fixed_text(400, "INVALID_ARGUMENT", "", "API key not valid."),
        Failure::NoModel => fixed_text(404, "NOT_FOUND", "", "models/test-model is not found"),
        Failure::TooLong => fixed_text(
            400,
            "INVALID_ARGUMENT",
            "",
            "The input token count (1048577) exceeds the maximum number of tokens allowed",
        ),
        Failure::Quota => {
            fixed_text(429, "RESOURCE_EXHAUSTED", "", "You exceeded your current quota.")
        }
        Failure::RateLimited(_) => fixed_text(429, "RESOURCE_EXHAUSTED", "", "Resource exhausted."),
        Failure::Overloaded => fixed_text(503, "UNAVAILABLE", "", "The model is overloaded."),
        Failure::Internal | Failure::WebPage => {
            fixed_text(500, "INTERNAL", "", "An internal error")
        }
    }
}

fn ollama_text(failure: &Failure) -> FailureText {
    match failure {
        Failure::Key => fixed_text(401, "", "", "unauthorized"),
        Failure::NoModel => fixed_text(404, "", "", "model 'test-model' not found"),
        Failure::TooLong => {
            fixed_text(400, "", "", "the input length exceeds the context length of the model")
        }
        Failure::Quota => fixed_text(429, "", "", "you have reached your weekly usage limit"),
        Failure::RateLimited(_) => fixed_text(429, "", "", "too many requests"),
        Failure::Overloaded => fixed_text(
            503,
            "",
            "",
            "server busy, please try again: maximum pending requests exceeded",
        ),
        Failure::Internal | Failure::WebPage => fixed_text(500, "", "", "model runner has stopped"),
    }
}
