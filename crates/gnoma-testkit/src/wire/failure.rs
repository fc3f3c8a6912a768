//! Failures, each vendor's way.

use serde_json::{Value, json};

use super::Wire;
use crate::server::Reply;

/// When to come back, as `Retry-After` says it.
#[derive(Clone, Debug)]
pub enum RetryAfter {
    /// After so many seconds.
    Seconds(u64),
    /// At this HTTP date, while the answer's own `Date` is that one.
    Date {
        /// The moment.
        at: String,
        /// The server's clock.
        now: String,
    },
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The key is wrong.
    Key,
    /// There is no such model.
    NoModel,
    /// The prompt does not fit.
    TooLong,
    /// Too many requests.
    RateLimited(Option<RetryAfter>),
    /// The vendor is overloaded.
    Overloaded,
    /// The vendor broke.
    Internal,
    /// Something in between answers with a web page.
    WebPage,
}

/// One failure in a vendor's words.
struct Words {
    status: u16,
    kind: &'static str,
    code: &'static str,
    message: &'static str,
}

const fn words(
    status: u16,
    kind: &'static str,
    code: &'static str,
    message: &'static str,
) -> Words {
    Words { status, kind, code, message }
}

pub(super) fn reply(wire: Wire, failure: &Failure) -> Reply {
    if matches!(failure, Failure::WebPage) {
        let page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
        return Reply::new(502, "text/html", page);
    }
    let words = match wire {
        Wire::Anthropic => anthropic(failure),
        Wire::OpenAi | Wire::Responses => openai(failure),
        Wire::Compatible => compatible(failure),
        Wire::Mistral => mistral(failure),
        Wire::Google => google(failure),
        Wire::Ollama => ollama(failure),
    };
    let reply = Reply::json(words.status, body(wire, &words).to_string());
    match failure {
        Failure::RateLimited(Some(RetryAfter::Seconds(seconds))) => {
            reply.header("retry-after", seconds.to_string())
        }
        Failure::RateLimited(Some(RetryAfter::Date { at, now })) => {
            reply.header("retry-after", at).header("date", now)
        }
        _ => reply,
    }
}

fn body(wire: Wire, words: &Words) -> Value {
    let Words { status, kind, code, message } = words;
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

fn anthropic(failure: &Failure) -> Words {
    match failure {
        Failure::Key => words(401, "authentication_error", "", "invalid x-api-key"),
        Failure::NoModel => words(404, "not_found_error", "", "model: test-model"),
        Failure::TooLong => words(
            400,
            "invalid_request_error",
            "",
            "prompt is too long: 200001 tokens > 200000 maximum",
        ),
        Failure::RateLimited(_) => words(429, "rate_limit_error", "", "rate limit exceeded"),
        Failure::Overloaded => words(529, "overloaded_error", "", "Overloaded"),
        Failure::Internal | Failure::WebPage => {
            words(500, "api_error", "", "Internal server error")
        }
    }
}

fn openai(failure: &Failure) -> Words {
    let refused = "invalid_request_error";
    match failure {
        Failure::Key => words(401, refused, "invalid_api_key", "Incorrect API key provided"),
        Failure::NoModel => words(404, refused, "model_not_found", "The model does not exist"),
        Failure::TooLong => words(
            400,
            refused,
            "context_length_exceeded",
            "Your input exceeds the context window of this model",
        ),
        Failure::RateLimited(_) => {
            words(429, "requests", "rate_limit_exceeded", "Rate limit reached")
        }
        Failure::Overloaded => words(503, "server_error", "", "The server is overloaded"),
        Failure::Internal | Failure::WebPage => {
            words(500, "server_error", "", "The server had an error")
        }
    }
}

fn compatible(failure: &Failure) -> Words {
    match failure {
        Failure::Key => words(401, "authentication_error", "", "Invalid API Key"),
        Failure::NoModel => words(404, "not_found_error", "", "model not found"),
        Failure::TooLong => words(
            400,
            "exceed_context_size_error",
            "",
            "request (5000 tokens) exceeds the available context size (4096 tokens)",
        ),
        Failure::RateLimited(_) => words(429, "rate_limit_error", "", "Too many requests"),
        Failure::Overloaded => words(503, "unavailable_error", "", "Loading model"),
        Failure::Internal | Failure::WebPage => words(500, "server_error", "", "failed to decode"),
    }
}

fn mistral(failure: &Failure) -> Words {
    match failure {
        Failure::Key => words(401, "", "", "Invalid API Key"),
        Failure::NoModel => words(404, "invalid_model", "1500", "Invalid model: test-model"),
        Failure::TooLong => words(
            400,
            "context_length_exceeded",
            "3051",
            "Prompt contains 131073 tokens, too large for model with 131072 maximum context length",
        ),
        Failure::RateLimited(_) => words(429, "rate_limited", "1300", "Rate limit exceeded"),
        Failure::Overloaded => words(503, "unavailable", "3000", "Service unavailable"),
        Failure::Internal | Failure::WebPage => {
            words(500, "internal_server_error", "1000", "Internal server error")
        }
    }
}

fn google(failure: &Failure) -> Words {
    match failure {
        Failure::Key => words(400, "INVALID_ARGUMENT", "", "API key not valid."),
        Failure::NoModel => words(404, "NOT_FOUND", "", "models/test-model is not found"),
        Failure::TooLong => words(
            400,
            "INVALID_ARGUMENT",
            "",
            "The input token count (1048577) exceeds the maximum number of tokens allowed",
        ),
        Failure::RateLimited(_) => words(429, "RESOURCE_EXHAUSTED", "", "Resource exhausted."),
        Failure::Overloaded => words(503, "UNAVAILABLE", "", "The model is overloaded."),
        Failure::Internal | Failure::WebPage => words(500, "INTERNAL", "", "An internal error"),
    }
}

fn ollama(failure: &Failure) -> Words {
    match failure {
        Failure::Key => words(401, "", "", "unauthorized"),
        Failure::NoModel => words(404, "", "", "model 'test-model' not found"),
        Failure::TooLong => {
            words(400, "", "", "the input length exceeds the context length of the model")
        }
        Failure::RateLimited(_) => words(429, "", "", "too many requests"),
        Failure::Overloaded => {
            words(503, "", "", "server busy, please try again: maximum pending requests exceeded")
        }
        Failure::Internal | Failure::WebPage => words(500, "", "", "model runner has stopped"),
    }
}
