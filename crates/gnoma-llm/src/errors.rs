//! Translates the error responses of vendors into provider errors.
//!
//! Vendors agree on nothing: the message may stand under `error`, be `error`, stand beside it, or be
//! called `detail`. One reader ([`facts`]) knows all shapes, so every dialect classifies alike
//! ([`kind`]).

mod advice;
mod facts;
mod foreign;
mod keys;
mod kind;
mod overflow;
mod overflow_words;
mod quote;
mod remedy;

use std::time::Duration;

use gnoma_core::{ErrorKind, ProviderError, duration, error::MAX_RETRY_AFTER};
use gnoma_net::{NetError, NetErrorKind};
use serde_json::Value;

use self::facts::ErrorFacts;
pub(crate) use self::foreign::foreign_stream;
pub(crate) use self::keys::key_error as unusable_key;
use self::quote::is_page;
pub(crate) use self::quote::quote_text;
use crate::{Profile, catalogue};
pub(crate) use gnoma_net::retry_wait::{asked_wait, sent_at};

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
        Err(_) => classify_error(profile, Some(status), ErrorFacts::from_text(&text)),
    };
    if let Some(wait) = retry_after {
        ask_wait(&mut error, wait);
    }
    error
}

/// The longest wait that is told in days.
const MOST_SAID_WAIT: Duration = Duration::from_hours(24 * 365);

/// Takes over the wait that the provider asks for, up to the longest that is believed; says so where it is more. The
/// hint names the wait as it was asked for: an earlier attempt is refused again.
fn ask_wait(error: &mut ProviderError, wait: Duration) {
    error.retry_after = Some(wait.min(MAX_RETRY_AFTER));
    let asked = if wait > MOST_SAID_WAIT {
        "more than a year".to_owned()
    } else {
        duration::format_duration(wait)
    };
    if error.hint.as_deref() == Some(&remedy::retry_in("a minute")) {
        error.hint = Some(remedy::retry_in(&asked));
    }
    if wait > MAX_RETRY_AFTER {
        let most = duration::format_duration(MAX_RETRY_AFTER);
        let said = format!("it asks for a wait of {asked}; gnoma waits at most {most}");
        let gap = if error.message.is_empty() { "" } else { "; " };
        error.message = format!("{}{gap}{said}", error.message);
    }
}

/// A failure of a call of `model`, which its hint names, with the one that may be meant where that is not there.
pub(crate) fn suggest_model(
    profile: &Profile,
    mut error: ProviderError,
    model: &str,
) -> ProviderError {
    error.hint =
        error.hint.map(|hint| hint.replace("/models/MODEL:", &format!("/models/{model}:")));
    let is_of_model = |hint: &&str| {
        [remedy::LISTS_MODELS, remedy::MODEL_OR_ADDRESS].iter().any(|begin| hint.starts_with(begin))
    };
    let hint = error.hint.as_deref().filter(is_of_model);
    let Some(hint) = hint.filter(|_| error.kind == ErrorKind::NotFound) else { return error };
    let names_model = model.is_empty() || error.message.contains(model);
    // A server that names the model is the right one.
    let is_certain = names_model && hint.starts_with(remedy::MODEL_OR_ADDRESS);
    let certain = || remedy::of_kind(profile, ErrorKind::NotFound, None);
    let hint = is_certain.then(certain).flatten().unwrap_or_else(|| hint.to_owned());
    let message = match error.message.as_str() {
        message if names_model => message.to_owned(),
        "" => format!("the model `{model}`"),
        message => format!("{message} (the model `{model}`)"),
    };
    let hint = match catalogue::find_similar_model(&profile.name, model) {
        Some(near) => format!("Did you mean `{near}`? {hint}"),
        None => hint,
    };
    ProviderError { message, ..error }.with_hint(hint)
}

/// A failure told in a JSON value: the body of an answer, or a record in mid-stream.
pub(crate) fn from_value(profile: &Profile, status: Option<u16>, value: &Value) -> ProviderError {
    classify_error(profile, status, ErrorFacts::from_value(value))
}

/// A record that cannot be read.
pub(crate) fn broken_record(
    profile: &Profile,
    error: &serde_json::Error,
    data: &str,
) -> ProviderError {
    let text = format!("invalid record in the answer ({error}): {}", quote_text(data));
    // Where JSON is whole and says something else, another server speaks.
    let kind = if error.is_data() { ErrorKind::Protocol } else { ErrorKind::Garbled };
    ProviderError { kind, ..protocol_error(profile, text) }
}

/// The error types by which providers mark a request that they refuse.
const REFUSALS: &[&str] = &["invalid_request", "invalid_argument", "bad_request"];
/// Words in messages of providers about a refused request, if nothing of an answer has come.
const REFUSING_WORDS: &[&str] = &[
    "invalid",
    "unsupported",
    "not support",
    "bad request",
    "must be",
    "is required",
    "missing",
    "unexpected endpoint",
];

/// A failure told in place of an answer, or of its rest: unless it says that the request is wrong, it may go
/// well the next time.
pub(crate) fn in_answer(
    profile: &Profile,
    mut error: ProviderError,
    has_begun: bool,
) -> ProviderError {
    let code = error.code.as_deref().unwrap_or_default().to_ascii_lowercase();
    let text = error.message.to_ascii_lowercase();
    let is_refused = error.status.is_some()
        || REFUSALS.iter().any(|word| code.contains(word))
        || (!has_begun && REFUSING_WORDS.iter().any(|words| text.contains(words)));
    if error.kind == ErrorKind::BadRequest && !is_refused {
        error.kind = ErrorKind::ServerError;
        error.hint = remedy::of_kind(profile, error.kind, error.status);
    }
    error
}

/// An answer without a byte.
pub(crate) fn empty_answer(profile: &Profile) -> ProviderError {
    ProviderError { kind: ErrorKind::Garbled, ..protocol_error(profile, "the answer is empty") }
}

/// An answer that does not follow the protocol.
pub(crate) fn protocol_error(profile: &Profile, message: impl Into<String>) -> ProviderError {
    let hint = format!(
        "Check that the address of `{}` ({}) in {} is right, and that the server speaks {} (change it with \
         `provider.protocols.{}`).",
        profile.name,
        profile.base_url,
        profile.address_place(),
        profile.protocol.describe(),
        profile.name
    );
    ProviderError::new(ErrorKind::Protocol, &profile.name, without_key(profile, message.into()))
        .with_hint(hint)
}

/// A whole answer in JSON that is none of a model: another server speaks, and will say the same again.
pub(crate) fn foreign_answer(profile: &Profile, message: &str) -> ProviderError {
    ProviderError { kind: ErrorKind::WrongServer, ..protocol_error(profile, message) }
}

/// A body that is no answer at all, by the beginning of it that has come: another server speaks, and will say the same
/// again.
pub(crate) fn unreadable_body(profile: &Profile, why: &str, begin: &[u8]) -> ProviderError {
    let text = String::from_utf8_lossy(begin);
    let text = text.trim();
    if !text.starts_with('<') {
        return foreign_answer(profile, why);
    }
    let error = foreign_answer(profile, &quote_text(text));
    if !is_page(text) {
        return error;
    }
    let hint = format!(
        "Check that the address of `{}` ({}) in {} is right. If it is, the login page of a network or a proxy \
         answered in its place: open the address in a browser.",
        profile.name,
        profile.base_url,
        profile.address_place()
    );
    error.with_hint(hint)
}

/// A refusal of the list of models. A server of one's own that does not know the request may have no list.
pub(crate) fn refused_list(profile: &Profile, error: ProviderError) -> ProviderError {
    if error.kind != ErrorKind::NotFound || profile.has_vendor_address() {
        return error;
    }
    let hint = format!(
        "The server of `{}` ({}) has no list of models: name one with --model, or set `provider.model`.",
        profile.name, profile.base_url
    );
    error.with_hint(hint)
}

/// A list of models that is none: a page, nothing, or another server's words.
pub(crate) fn no_list(profile: &Profile, body: &[u8]) -> Option<ProviderError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Some(empty_answer(profile));
    }
    let why = match serde_json::from_slice::<serde::de::IgnoredAny>(body) {
        Err(error) => format!("the list of models is not JSON ({error})"),
        Ok(_) if is_models_list(body) => return None,
        Ok(_) => "it answered, but with no list of models".to_owned(),
    };
    Some(unreadable_body(profile, &why, body))
}

/// Reports whether JSON has the shape of a list of models, which may be empty. What cannot be read here is for the
/// dialect to judge.
fn is_models_list(body: &[u8]) -> bool {
    let is_list = |list: &Value| list.is_array() || list.is_null();
    gnoma_core::json::from_bytes::<Value>(body).map_or(true, |list| {
        list.is_array() || ["data", "models"].iter().any(|name| list.get(name).is_some_and(is_list))
    })
}

/// Reports whether a reason to stop says that the model's window is full.
pub(crate) fn is_window_word(reason: &str) -> bool {
    matches!(
        reason,
        "model_context_window_exceeded"
            | "context_window_exceeded"
            | "context_length_exceeded"
            | "max_context_length"
            | "model_length"
            | "context_length"
            | "context_limit"
    )
}

/// An answer that the server ended with `word`, a failure, before it was complete.
pub(crate) fn broken_off(profile: &Profile, word: &str) -> ProviderError {
    let message = format!("the server broke the answer off (`{word}`)");
    let mut error = ProviderError::new(ErrorKind::ServerError, &profile.name, message);
    error.hint = remedy::of_kind(profile, error.kind, None);
    error
}

/// A prompt that fills the model's window, so that nothing or not all could be answered.
pub(crate) fn window_full(profile: &Profile) -> ProviderError {
    let message =
        "the model's context window is full, so it stopped before the answer was complete";
    let mut error = ProviderError::new(ErrorKind::ContextTooLong, &profile.name, message);
    error.hint = remedy::of_kind(profile, error.kind, None);
    error
}

/// A refusal whose words are not known, but whose numbers are the size of the prompt and a smaller one. The request
/// has `text_bytes` bytes without its pictures, and `bytes` with them.
pub(crate) fn detect_overflow(
    profile: &Profile,
    mut error: ProviderError,
    text_bytes: usize,
    bytes: usize,
) -> ProviderError {
    let is_refused = error.kind == ErrorKind::BadRequest && matches!(error.status, Some(400 | 422));
    if is_refused && overflow::has_prompt_size(&error.message, (text_bytes, bytes)) {
        error.kind = ErrorKind::ContextTooLong;
        error.hint = remedy::of_kind(profile, error.kind, error.status);
    }
    error
}

/// A refusal for the size of a small request: what stands before the model refuses all bodies of that size.
pub(crate) fn refused_size(profile: &Profile, error: ProviderError, bytes: usize) -> ProviderError {
    /// No window of a model is so small.
    const SMALL_BYTES: usize = 64 << 10;
    let is_vague = error.status == Some(413) && !overflow::is_overflow(&error.message);
    if !is_vague || bytes > SMALL_BYTES {
        return error;
    }
    let url = &profile.base_url;
    let hint = if profile.has_vendor_address() {
        format!(
            "The request is small, so a proxy between you and {url} limits what it lets through: ask whoever runs it to \
             raise that limit."
        )
    } else {
        format!(
            "The request is small, so a proxy in front of {url} limits what it lets through: raise that limit (nginx: \
             `client_max_body_size`). {}",
            profile.describe_address()
        )
    };
    ProviderError { kind: ErrorKind::BadRequest, ..error }.with_hint(hint)
}

/// The server points elsewhere, where the key would go too.
pub(crate) fn redirect_error(
    profile: &Profile,
    status: u16,
    location: Option<&str>,
) -> ProviderError {
    let location = location.map(|at| without_key(profile, at.to_owned()));
    let location = location.as_deref();
    let message = match location {
        Some(place) => format!(
            "the server redirects to `{}`; gnoma does not follow redirects",
            quote_text(place)
        ),
        None => "the server redirects, but does not say where".to_owned(),
    };
    let (kind, status) = (ErrorKind::WrongServer, Some(status));
    let error = ProviderError { kind, status, ..protocol_error(profile, message) };
    match advice::of_redirect(profile, location.unwrap_or_default().trim()) {
        Some(hint) => ProviderError { hint: Some(hint), ..error },
        None => error,
    }
}

/// The connection ended before the answer did.
pub(crate) fn truncated_answer(profile: &Profile) -> ProviderError {
    let message = "the connection ended before the answer was complete";
    ProviderError::new(ErrorKind::Network, &profile.name, message)
        .with_hint(remedy::of_connection(profile, NetErrorKind::Broken))
}

/// The system's words for a process that has as many files and connections open as it may.
const TOO_MANY_FILES: &str = "Too many open files";

/// No answer at all.
pub(crate) fn from_net(profile: &Profile, error: &NetError) -> ProviderError {
    let kind = match error.kind {
        NetErrorKind::Timeout => ErrorKind::Timeout,
        NetErrorKind::Connect | NetErrorKind::Proxy => ErrorKind::Unreachable,
        NetErrorKind::Certificate | NetErrorKind::ClientCertificate | NetErrorKind::Authorities => {
            ErrorKind::Certificate
        }
        NetErrorKind::Broken => ErrorKind::Network,
        NetErrorKind::Invalid => ErrorKind::BadRequest,
        NetErrorKind::NoTls | NetErrorKind::NoHttp => ErrorKind::WrongServer,
    };
    let hint = match error.kind {
        _ if error.to_string().contains(TOO_MANY_FILES) => {
            "gnoma may not open more files: raise the limit of this shell, as in `ulimit -n 1024`, and retry.".to_owned()
        }
        NetErrorKind::Connect if error.is_unknown_host() => remedy::of_unknown_host(profile),
        NetErrorKind::Certificate => remedy::of_certificate(profile, error.certificate_fault),
        kind => remedy::of_connection(profile, kind),
    };
    ProviderError::new(kind, &profile.name, error.to_string()).with_hint(hint)
}

/// The shortest key that is taken out of what a server says, in bytes. A shorter one is a word that servers without keys
/// are given, such as `none` or `ollama`, and stands in sentences that are not about it.
const MIN_SECRET_KEY_BYTES: usize = 8;

/// A server may quote the key it was sent; it must not reach a screen or a log by that way.
fn without_key(profile: &Profile, text: String) -> String {
    match &profile.key {
        Some(key) if key.expose().len() >= MIN_SECRET_KEY_BYTES => {
            text.replace(key.expose().as_str(), "***")
        }
        Some(_) | None => text,
    }
}

fn classify_error(profile: &Profile, status: Option<u16>, facts: ErrorFacts) -> ProviderError {
    let kind =
        kind::classify_failure(status.filter(|status| *status >= 400).or(facts.status), &facts);
    let mut error = ProviderError::new(kind, &profile.name, without_key(profile, facts.message));
    error.status = status.or(facts.status);
    error.code = facts.code.or(facts.kind).map(|code| without_key(profile, code));
    let said = [Some(&error.message), error.code.as_ref()];
    error.hint = said
        .into_iter()
        .flatten()
        .find_map(|text| advice::of_text(profile, text))
        .or_else(|| advice::of_status(profile, error.status?))
        .or_else(|| remedy::of_page(profile, kind, status, facts.is_page))
        .or_else(|| remedy::of_kind(profile, kind, status));
    if let Some(wait) = facts.retry_after {
        ask_wait(&mut error, wait);
    }
    error
}

#[cfg(test)]
mod tests;
