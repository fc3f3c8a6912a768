//! Classifies a failure by HTTP status (429, 500 …), else by its words.

use gnoma_core::ErrorKind;

use super::{
    facts::{ErrorFacts, Period},
    overflow::is_overflow,
};

const CONTEXT_WORDS: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "exceeds the available context",
    "context length",
    "context limit",
    "context window",
    "maximum context",
    "maximum model length",
    "maximum prompt length",
    "max_prompt_tokens",
    "exceeds max length",
    "model token limit",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input token count",
    "prompt token count",
    "too many tokens in the prompt",
    "reduce the length of the messages",
    "`inputs` tokens + `max_new_tokens`",
    "input_too_long",
    "prompt_too_long",
    // llama.cpp, which then cannot drop the beginning of the conversation, or has no room for it.
    "context shift is disabled",
    "free space in the kv cache",
    // More at once than the limit of a minute allows: waiting does not help.
    "request too large for",
    "request_too_large",
];
const QUOTA_WORDS: &[&str] = &[
    "insufficient_quota",
    "quota exceeded for",
    "exceeded your current quota",
    "credit balance is too low",
    "billing_error",
    "billing_hard_limit",
    "billing_not_active",
    "payment required",
    "insufficient balance",
    "insufficient credits",
    "out of credits",
    "any credits",
    "all available credits",
    "spending limit",
    "spending-limit",
    "monthly limit",
    "usage limit",
    "usage_limit",
];
const KEY_WORDS: &[&str] = &[
    "api_key_invalid",
    "api key not valid",
    "invalid api key",
    "incorrect api key",
    "invalid_api_key",
    "authentication_error",
    "permission_error",
];
/// That a 403 is about the key itself, and not about what it may do.
const BAD_KEY_WORDS: &[&str] = &[
    "api_key_invalid",
    "api key not valid",
    "invalid api key",
    "incorrect api key",
    "invalid_api_key",
    "authentication_error",
    "unregistered callers",
    "invalid key",
    "key is invalid",
    "key is not valid",
    "key expired",
    "key has expired",
    "invalid token",
    "missing api key",
    "no api key",
];
const MODEL_WORDS: &[&str] = &[
    "model not found",
    "model_not_found",
    "not_found_error",
    "is not a valid model",
    "deploymentnotfound",
    "no models loaded",
    "invalid model",
    "invalid_model",
    "unknown model",
    "model not exist",
    "model_decommissioned",
    "decommissioned",
];
const LIMIT_WORDS: &[&str] = &[
    "rate_limit",
    "rate limit",
    "rate-limit",
    "ratelimit",
    "too many requests",
    "resource_exhausted",
    "capacity_exceeded",
];
const TIMEOUT_WORDS: &[&str] = &["timeout", "timed out", "deadline exceeded", "deadline_exceeded"];
/// That there is too much to do just now.
const BUSY_WORDS: &[&str] =
    &["overloaded", "unavailable", "capacity", "too busy", "server is busy"];
/// That the server failed inside.
const FAULT_WORDS: &[&str] = &["server_error", "api_error", "internal", "server error"];
/// Words of local servers with a 500 that will fail again next time.
const HOPELESS_WORDS: &[&str] =
    &["more system memory", "not supported", "does not support", "requires --jinja"];

/// The kind of the failure that `facts` tell of.
pub(super) fn classify_failure(status: Option<u16>, facts: &ErrorFacts) -> ErrorKind {
    let says = |words| facts.mentions_any(words);
    match status {
        Some(401) => ErrorKind::Auth,
        Some(402) => ErrorKind::Quota,
        Some(404 | 410) => ErrorKind::NotFound,
        Some(408 | 504 | 524) => ErrorKind::Timeout,
        Some(413) => ErrorKind::ContextTooLong,
        _ if says(CONTEXT_WORDS) => ErrorKind::ContextTooLong,
        None | Some(..429 | 430..)
            if is_overflow(&facts.message) && !is_quota(facts) && !says(LIMIT_WORDS) =>
        {
            ErrorKind::ContextTooLong
        }
        Some(500..) if says(HOPELESS_WORDS) => ErrorKind::BadRequest,
        Some(500) if !says(BUSY_WORDS) => ErrorKind::ServerError,
        // What is not implemented, a proxy that asks itself, a network that wants a login, and no status of HTTP.
        Some(501 | 505 | 506 | 508 | 510 | 511 | 600..) => ErrorKind::BadRequest,
        Some(500..) => ErrorKind::Overloaded,
        _ if is_quota(facts) => ErrorKind::Quota,
        Some(403) if says(BAD_KEY_WORDS) => ErrorKind::Auth,
        Some(403 | 451) => ErrorKind::Forbidden,
        Some(429) => ErrorKind::RateLimited,
        Some(_) if says(KEY_WORDS) => ErrorKind::Auth,
        Some(_) if says(MODEL_WORDS) => ErrorKind::NotFound,
        // A lock that another call holds, and "too early": vendors' own clients call again.
        Some(409 | 425) => ErrorKind::ServerError,
        Some(_) => ErrorKind::BadRequest,
        None => of_words(facts),
    }
}

/// The kind of a failure in mid-stream, which has no status.
fn of_words(facts: &ErrorFacts) -> ErrorKind {
    let table = [
        (LIMIT_WORDS, ErrorKind::RateLimited),
        (KEY_WORDS, ErrorKind::Auth),
        (MODEL_WORDS, ErrorKind::NotFound),
        (BUSY_WORDS, ErrorKind::Overloaded),
        (FAULT_WORDS, ErrorKind::ServerError),
        (TIMEOUT_WORDS, ErrorKind::Timeout),
    ];
    let row = table.into_iter().find(|(words, _)| facts.mentions_any(words));
    row.map_or(ErrorKind::BadRequest, |(_, kind)| kind)
}

/// Reports whether something is used up that a short wait does not bring back. Google says so about the limits of a
/// minute too.
fn is_quota(facts: &ErrorFacts) -> bool {
    match facts.quota {
        Some(Period::Day) => true,
        Some(Period::Minute) => false,
        None => facts.mentions_any(QUOTA_WORDS),
    }
}
