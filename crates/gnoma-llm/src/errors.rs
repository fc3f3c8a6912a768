//! From a vendor's words for a failure to gnoma's.
//!
//! Vendors agree on nothing: the message may stand under `error`, be `error`, stand beside it, or be
//! called `detail`. One reader ([`facts`]) knows all shapes, so every dialect classifies alike
//! ([`kind`]).

mod advice;
mod facts;
mod keys;
mod kind;
mod quote;
mod wait;

use std::time::Duration;

use gnoma_core::{ErrorKind, ProviderError};
use gnoma_net::{NetError, NetErrorKind};
use serde_json::Value;

use self::facts::ErrorFacts;
pub(crate) use self::keys::unusable as unusable_key;
use self::quote::is_page;
pub(crate) use self::quote::quote;
pub(crate) use self::wait::retry_after;
use crate::{Profile, catalogue};

/// How the hint begins where a model is not there.
const LISTS_MODELS: &str = "`gnoma providers` lists the models";
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
        Err(_) => classified(profile, Some(status), ErrorFacts::unread(&text)),
    };
    if let Some(wait) = retry_after {
        error.retry_after = Some(wait.min(MAX_RETRY_AFTER));
    }
    error
}

/// A failure of a call of `model`, with the one that may be meant where that is not there.
pub(crate) fn suggesting(profile: &Profile, error: ProviderError, model: &str) -> ProviderError {
    let hint = error.hint.as_deref().filter(|hint| hint.starts_with(LISTS_MODELS));
    let Some(hint) = hint.filter(|_| error.kind == ErrorKind::NotFound) else { return error };
    let Some(near) = catalogue::near(&profile.name, model) else { return error };
    ProviderError { hint: Some(format!("Did you mean `{near}`? {hint}")), ..error }
}

/// A failure told in a JSON value: the body of an answer, or a record in mid-stream.
pub(crate) fn from_value(profile: &Profile, status: Option<u16>, value: &Value) -> ProviderError {
    classified(profile, status, ErrorFacts::read(value))
}

/// A record that cannot be read.
pub(crate) fn broken_record(
    profile: &Profile,
    error: &serde_json::Error,
    data: &str,
) -> ProviderError {
    let text = format!("invalid record in the answer ({error}): {}", quote(data));
    // Where JSON is whole and says something else, another server speaks.
    let kind = if error.is_data() { ErrorKind::Protocol } else { ErrorKind::Garbled };
    ProviderError { kind, ..protocol(profile, text) }
}

/// What providers call a request that they refuse.
const REFUSALS: &[&str] = &["invalid_request", "invalid_argument", "bad_request"];
/// What they say of one, where nothing of an answer has come.
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
        error.hint = hint(profile, error.kind);
    }
    error
}

/// An answer without a byte.
pub(crate) fn empty(profile: &Profile) -> ProviderError {
    ProviderError { kind: ErrorKind::Garbled, ..protocol(profile, "the answer is empty") }
}

/// An answer that does not follow the protocol.
pub(crate) fn protocol(profile: &Profile, message: impl Into<String>) -> ProviderError {
    let hint = format!(
        "Check that the address of `{}` ({}) is right and that it speaks the configured protocol.",
        profile.name, profile.base_url
    );
    ProviderError::new(ErrorKind::Protocol, &profile.name, without_key(profile, message.into()))
        .with_hint(hint)
}

/// A body that is no answer at all, by the beginning of it that has come.
pub(crate) fn misframed(profile: &Profile, why: String, begin: &[u8]) -> ProviderError {
    let text = String::from_utf8_lossy(begin);
    let text = text.trim();
    if !text.starts_with('<') {
        return protocol(profile, why);
    }
    if !is_page(text) {
        return protocol(profile, quote(text));
    }
    let hint = format!(
        "Check that the address of `{}` ({}) is right. If it is, the login page of a network or a proxy \
         answered in its place: open the address in a browser.",
        profile.name, profile.base_url
    );
    protocol(profile, quote(text)).with_hint(hint)
}

/// The server points elsewhere, where the key would go too.
pub(crate) fn redirected(profile: &Profile, status: u16, location: Option<&str>) -> ProviderError {
    let place = location.map_or("another address".to_owned(), |at| format!("`{}`", quote(at)));
    let message = format!("the server redirects to {place}; gnoma does not follow redirects");
    let error = ProviderError { status: Some(status), ..protocol(profile, message) };
    match advice::moved(profile, location.unwrap_or_default()) {
        Some(hint) => ProviderError { hint: Some(without_key(profile, hint)), ..error },
        None => error,
    }
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
        NetErrorKind::Connect | NetErrorKind::Proxy | NetErrorKind::Certificate => {
            ErrorKind::Unreachable
        }
        NetErrorKind::Broken => ErrorKind::Network,
        NetErrorKind::Invalid => ErrorKind::BadRequest,
        NetErrorKind::NoTls | NetErrorKind::NoHttp => ErrorKind::Protocol,
    };
    ProviderError::new(kind, &profile.name, error.to_string())
        .with_hint(net_hint(profile, error.kind))
}

fn net_hint(profile: &Profile, kind: NetErrorKind) -> String {
    let (name, url) = (&profile.name, &profile.base_url);
    match kind {
        NetErrorKind::NoTls => {
            format!("Use http:// instead of https:// in `provider.endpoints.{name}` ({url}).")
        }
        NetErrorKind::NoHttp => format!(
            "Check `provider.endpoints.{name}` ({url}). If the server expects TLS, use https:// instead \
             of http://."
        ),
        NetErrorKind::Certificate => "If your company's proxy or a server of your own signed it, set \
                                      `network.ca_file` (or SSL_CERT_FILE) to the PEM file with its certificate \
                                      authority. Otherwise check the address and this machine's clock, and do \
                                      not send a key: somebody may be intercepting the connection."
            .to_owned(),
        NetErrorKind::Connect if profile.local => {
            format!("Is the server of `{name}` running at {url}?")
        }
        NetErrorKind::Connect => "Check the network and the provider's address.".to_owned(),
        NetErrorKind::Proxy => "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names this proxy. Check that it runs and that its \
                                address is right (http://NAME:PASSWORD@HOST:PORT), or add the provider's host to \
                                NO_PROXY to connect without it."
            .to_owned(),
        NetErrorKind::Invalid => format!("Check `provider.endpoints.{name}` and the key."),
        NetErrorKind::Timeout => {
            "Raise `network.idle_timeout` if the model needs longer to think or read.".to_owned()
        }
        NetErrorKind::Broken => {
            format!("Retry later, or check the network and the server at {url}.")
        }
    }
}

/// A server may quote the key it was sent; it must not reach a screen or a log by that way.
fn without_key(profile: &Profile, text: String) -> String {
    match &profile.key {
        Some(key) if !key.expose().is_empty() => text.replace(key.expose().as_str(), "***"),
        Some(_) | None => text,
    }
}

fn classified(profile: &Profile, status: Option<u16>, facts: ErrorFacts) -> ProviderError {
    let kind = kind::of(status.filter(|status| *status >= 400).or(facts.status), &facts);
    let mut error = ProviderError::new(kind, &profile.name, without_key(profile, facts.message));
    error.status = status.or(facts.status);
    error.code = facts.code.or(facts.kind).map(|code| without_key(profile, code));
    error.retry_after = facts.retry_after.map(|wait| wait.min(MAX_RETRY_AFTER));
    let said = [Some(&error.message), error.code.as_ref()];
    error.hint = said
        .into_iter()
        .flatten()
        .find_map(|text| advice::of(profile, text))
        .or_else(|| advice::of_status(profile, error.status?))
        .or_else(|| page_hint(profile, kind, status, facts.is_page))
        .or_else(|| hint(profile, kind));
    error
}

/// What to do where no model server answered, but something before it or at another address.
fn page_hint(
    profile: &Profile,
    kind: ErrorKind,
    status: Option<u16>,
    is_page: bool,
) -> Option<String> {
    let (name, url) = (&profile.name, &profile.base_url);
    match kind {
        ErrorKind::NotFound | ErrorKind::BadRequest if is_page || status == Some(405) => {
            Some(format!(
                "The address of `{name}` may be wrong: {url}. It often ends in /v1; change it in \
             `provider.endpoints.{name}`."
            ))
        }
        ErrorKind::Auth if is_page && profile.key.is_some() => Some(format!(
            "A proxy or firewall may have answered in place of {url}. If not, `{name}` rejected \
             the key: check {} or `provider.api_keys.{name}`.",
            profile.key_variable
        )),
        _ => None,
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
            "`{name}` rejected the key: check {} or `provider.api_keys.{name}`.{}",
            profile.key_variable,
            keys::looks(profile)
        ),
        ErrorKind::NotFound => {
            format!("{LISTS_MODELS} of `{name}`. The address is {}.", profile.base_url)
        }
        ErrorKind::ContextTooLong if profile.local => {
            "Compact the session with /compact, start a new one, or start the server with a larger window."
                .to_owned()
        }
        ErrorKind::ContextTooLong => {
            "Compact the session with /compact, start a new one, or choose a model with a larger window."
                .to_owned()
        }
        ErrorKind::Quota => format!("Top up or raise the limit at `{name}`, or use another provider."),
        ErrorKind::RateLimited | ErrorKind::Overloaded => {
            "Retry later, or use another provider with --provider.".to_owned()
        }
        ErrorKind::ServerError => format!(
            "The problem is on the side of `{name}`. Retry later, or use another provider with --provider."
        ),
        ErrorKind::BadRequest
        | ErrorKind::Unreachable
        | ErrorKind::Network
        | ErrorKind::Timeout
        | ErrorKind::Garbled
        | ErrorKind::Protocol
        | ErrorKind::Agent
        | ErrorKind::Cancelled => return None,
    })
}

#[cfg(test)]
mod tests;
