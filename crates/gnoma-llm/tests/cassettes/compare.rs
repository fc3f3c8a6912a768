//! Compares what gnoma read with what a recording says there was.

use gnoma_core::{Content, ErrorKind, ProviderError, Response, StopReason, ToolCall, Usage};
use gnoma_testkit::cassette::{Api, Cassette, ExpectedCall, ExpectedError};
use serde_json::Value;

use crate::replay::Reading;

/// What is compared, by the names that `unsupported.toml` uses.
pub(crate) const FIELDS: [&str; 7] =
    ["text", "thinking", "signatures", "tool_calls", "stop_reason", "usage", "error"];

/// How the signatures begin in which the phase of a message is kept.
const PHASE: &str = "phase:";

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Difference {
    /// One of [`FIELDS`].
    pub(crate) field: &'static str,
    /// What the recording says.
    pub(crate) expected: String,
    /// What gnoma read.
    pub(crate) got: String,
}

/// Every field that differs.
pub(crate) fn differences(cassette: &Cassette, reading: &Reading) -> Vec<Difference> {
    let checks = [
        text(cassette, &reading.response),
        thinking(cassette, &reading.response),
        signatures(cassette, &reading.response),
        tool_calls(cassette, &reading.response),
        stop_reason(cassette, reading),
        usage(cassette, &reading.response),
        error(cassette, reading),
    ];
    FIELDS
        .into_iter()
        .zip(checks)
        .filter_map(|(field, check)| {
            let (expected, got) = check.err()?;
            Some(Difference { field, expected, got })
        })
        .collect()
}

/// `Err` holds both sides in words.
type Check = Result<(), (String, String)>;

fn same(expected: &str, got: &str) -> Check {
    if expected == got {
        return Ok(());
    }
    let equal = expected.bytes().zip(got.bytes()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| {
        let start = (0..=equal).rev().find(|at| text.is_char_boundary(*at));
        let tail = text.get(start.unwrap_or_default()..).unwrap_or_default();
        format!("…@{equal} {tail:?}")
    };
    Err((from(expected), from(got)))
}

fn text(cassette: &Cassette, response: &Response) -> Check {
    let expect = &cassette.expect;
    let refusal = expect.refusal_text.as_deref().unwrap_or_default();
    let got = joined(response, |block| match block {
        Content::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    same(&format!("{}{refusal}", expect.text), &got)
}

fn thinking(cassette: &Cassette, response: &Response) -> Check {
    let got = joined(response, |block| match block {
        Content::Thinking(thinking) => Some(thinking.text.as_str()),
        _ => None,
    });
    same(&cassette.expect.thinking, &got)
}

fn joined<'a>(response: &'a Response, part: impl Fn(&'a Content) -> Option<&'a str>) -> String {
    response.content.iter().filter_map(part).collect()
}

fn signatures(cassette: &Cassette, response: &Response) -> Check {
    let got: Vec<&str> = response.content.iter().filter_map(signature).collect();
    let expected = &cassette.expect.signatures;
    let kept = match cassette.api {
        // A chat server's token is kept with the record around it, which goes back as a whole.
        Api::OpenAi => expected.iter().all(|token| got.iter().any(|record| record.contains(token))),
        // A stream has the token of a reasoning item twice, encrypted anew; either is as good. What a
        // text is signed with is no token, but the phase of its message.
        Api::Responses => {
            let tokens: Vec<_> = got.iter().filter(|token| !token.starts_with(PHASE)).collect();
            let came = tokens.iter().all(|token| cassette.body_contains(token));
            expected.len() == tokens.len() && came
        }
        Api::Anthropic | Api::Mistral | Api::Google | Api::Ollama => *expected == got,
    };
    if kept { Ok(()) } else { Err((format!("{expected:?}"), format!("{got:?}"))) }
}

fn signature(block: &Content) -> Option<&str> {
    match block {
        Content::Text(text) => text.signature.as_deref(),
        Content::Thinking(thinking) => thinking.signature.as_deref(),
        Content::RedactedThinking(redacted) => Some(&redacted.data),
        Content::ToolCall(call) => call.signature.as_deref(),
        Content::Image(_) | Content::ToolResult(_) => None,
    }
}

fn tool_calls(cassette: &Cassette, response: &Response) -> Check {
    let expected = &cassette.expect.tool_calls;
    let got: Vec<&ToolCall> = response.tool_calls().collect();
    let alike = expected.len() == got.len()
        && expected.iter().zip(&got).all(|(expected, got)| same_call(expected, got));
    if alike {
        return Ok(());
    }
    let expected: Vec<_> = expected
        .iter()
        .map(|call| {
            let id = call.id.as_deref().unwrap_or("-");
            let raw = call.args_raw.as_deref().unwrap_or_default();
            format!("{id} {}({}) {raw:?}", call.name, call.args)
        })
        .collect();
    let got: Vec<_> = got
        .iter()
        .map(|call| format!("{} {}({}) broken={}", call.id, call.name, call.arguments, call.broken))
        .collect();
    Err((expected.join("; "), got.join("; ")))
}

fn same_call(expected: &ExpectedCall, got: &ToolCall) -> bool {
    let id = expected.id.as_deref().unwrap_or_default();
    let arguments: Value = got.arguments.read().unwrap_or_default();
    let same_arguments = match (&expected.args, &expected.args_raw) {
        (Value::Null, Some(raw)) => got.broken && arguments.as_str() == Some(raw),
        (args, _) => !got.broken && *args == arguments,
    };
    // Where the provider sent no id, gnoma makes one.
    (id.is_empty() || id == got.id.as_str()) && expected.name == got.name && same_arguments
}

fn stop_reason(cassette: &Cassette, reading: &Reading) -> Check {
    let got = match (&reading.error, reading.response.stop) {
        (Some(_), _) => "error",
        (None, None) => "nothing",
        (None, Some(stop)) => match stop {
            StopReason::EndTurn => "end_turn",
            StopReason::ToolUse => "tool_use",
            StopReason::MaxTokens => "max_tokens",
            StopReason::Refusal | StopReason::ContentFilter => "refusal",
            StopReason::StopSequence | StopReason::Pause | StopReason::Other => "other",
        },
    };
    let expected = cassette.expect.stop_reason.as_deref().unwrap_or("other");
    if expected == got {
        return Ok(());
    }
    let raw = cassette.expect.stop_reason_raw.as_deref();
    Err((format!("{expected} ({})", raw.unwrap_or("-")), got.to_owned()))
}

/// Input, output, cache read, cache write, reasoning.
type Tokens = [u64; 5];

fn usage(cassette: &Cassette, response: &Response) -> Check {
    let expect = cassette.expect.usage.unwrap_or_default();
    let expected: Tokens = [
        expect.input_tokens,
        expect.output_tokens,
        cached_tokens(cassette),
        expect.cache_write_tokens,
        expect.reasoning_tokens,
    ]
    .map(Option::unwrap_or_default);
    let got = as_counted_by_provider(cassette, response.usage.unwrap_or_default());
    if expected == got { Ok(()) } else { Err((format!("{expected:?}"), format!("{got:?}"))) }
}

/// Mistral has a second name for them, which the expectation leaves out.
fn cached_tokens(cassette: &Cassette) -> Option<u64> {
    let usage = cassette.expect.usage.unwrap_or_default();
    let second = cassette.expect.usage_raw.get("num_cached_tokens");
    usage.cache_read_tokens.or(second.and_then(Value::as_u64))
}

/// Undoes what adapters do to make the parts of a [`Usage`] disjoint.
fn as_counted_by_provider(cassette: &Cassette, usage: Usage) -> Tokens {
    let input = if counts_cache_apart(cassette) { usage.input } else { usage.prompt_tokens() };
    let output = if counts_reasoning_apart(cassette) {
        usage.output.saturating_sub(usage.reasoning)
    } else {
        usage.output
    };
    [input, output, usage.cache_read, usage.cache_write, usage.reasoning]
}

/// Anthropic does; of the others, those whose cache holds more than the whole prompt (Grok on Azure).
fn counts_cache_apart(cassette: &Cassette) -> bool {
    let usage = cassette.expect.usage.unwrap_or_default();
    let cached = cached_tokens(cassette).unwrap_or_default();
    cassette.api == Api::Anthropic || cached > usage.input_tokens.unwrap_or_default()
}

/// Google does; of those who speak OpenAI's words, the ones whose total says so (xAI).
fn counts_reasoning_apart(cassette: &Cassette) -> bool {
    let usage = cassette.expect.usage.unwrap_or_default();
    let reasoning = usage.reasoning_tokens.unwrap_or_default();
    let both = usage.input_tokens.unwrap_or_default() + usage.output_tokens.unwrap_or_default();
    let total = cassette.expect.usage_raw.get("total_tokens");
    let total = total.and_then(Value::as_u64).unwrap_or_default();
    cassette.api == Api::Google || (reasoning > 0 && total == both + reasoning)
}

fn error(cassette: &Cassette, reading: &Reading) -> Check {
    match (&cassette.expect.error, &reading.error) {
        (None, None) => Ok(()),
        (Some(expected), Some(got)) if same_error(expected, got) => Ok(()),
        (expected, got) => Err((
            expected.as_ref().map_or_else(|| "none".to_owned(), words),
            got.as_ref().map_or_else(
                || "none".to_owned(),
                |got| {
                    let code = got.code.as_deref().unwrap_or("-");
                    let wait = got.retry_after;
                    format!("{:?} {:?} {code} {:?} {wait:?}", got.kind, got.status, got.message)
                },
            ),
        )),
    }
}

fn words(error: &ExpectedError) -> String {
    let status = error.status.unwrap_or_default();
    let message = error.message.as_deref().unwrap_or_default();
    let wait = error.retry_after.as_deref().unwrap_or("-");
    format!("{status} {} {} {message:?} {wait}", error.kind, error.code)
}

fn same_error(expected: &ExpectedError, got: &ProviderError) -> bool {
    let status = expected.status.filter(|status| *status >= 400);
    let message = expected.message.as_deref().unwrap_or_default();
    let names: Vec<String> =
        [&expected.code, &expected.kind].into_iter().filter_map(plain).collect();
    let named = match &got.code {
        Some(code) => names.is_empty() || names.contains(code),
        None => names.is_empty(),
    };
    let wait = expected.retry_after.as_deref().and_then(|wait| wait.parse().ok());
    let same_status = status.is_none() || status == got.status;
    let same_wait = wait.is_none() || wait == got.retry_after.map(|wait| wait.as_secs());
    same_status
        && same_wait
        && named
        && kind_fits(status, got.kind)
        && got.message.contains(message)
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Whether a status allows for the kind; a failure inside a stream has none to go by.
fn kind_fits(status: Option<u16>, kind: ErrorKind) -> bool {
    use ErrorKind::{
        Auth, BadRequest, ContextTooLong, Forbidden, NotFound, Overloaded, Quota, RateLimited,
        ServerError, Timeout,
    };
    match status {
        None => !matches!(kind, ErrorKind::Network | ErrorKind::Cancelled),
        Some(401) => kind == Auth,
        Some(403) => matches!(kind, Auth | Forbidden | Quota),
        Some(402) => kind == Quota,
        Some(404) => kind == NotFound,
        Some(413) => kind == ContextTooLong,
        Some(429) => matches!(kind, RateLimited | Quota | ContextTooLong),
        // Some vendors say 400 for a wrong key or a wrong model too.
        Some(400..=499) => {
            matches!(kind, BadRequest | ContextTooLong | Auth | NotFound | Quota | Timeout)
        }
        Some(_) => matches!(kind, Overloaded | ServerError | Timeout | BadRequest | ContextTooLong),
    }
}
