//! Errors of providers: rate limit (HTTP 429), wrong key, overload, full context window, network and others.
//!
//! [`ErrorKind`] is for branching, [`ProviderError::message`] for people. The vendor's own status
//! and code stay beside them. Nobody but the adapters makes these errors.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// The one taxonomy every provider's failures are mapped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The key is missing or wrong (401).
    Auth,
    /// The key is good, but what it asks for is not open to it: a region, a model, a policy (403, 451).
    Forbidden,
    /// The request itself is refused (400, 422); sending it again cannot help.
    BadRequest,
    /// The prompt does not fit the model's window; a shorter one would.
    ContextTooLong,
    /// No such model or endpoint (404).
    NotFound,
    /// Too many requests right now (429); wait and retry.
    RateLimited,
    /// A paid or fixed quota is used up; waiting seconds does not help.
    Quota,
    /// The provider is overloaded right now (502, 503, 529).
    Overloaded,
    /// The provider failed inside (500).
    ServerError,
    /// No connection could be made.
    Unreachable,
    /// The server's certificate cannot be checked, or is not trusted.
    Certificate,
    /// What answers is no model server: a web page, a redirect, another protocol. Nor will it be one the
    /// next time.
    WrongServer,
    /// The connection broke.
    Network,
    /// Nothing arrived for too long.
    Timeout,
    /// The answer was damaged on its way: broken JSON, an empty body.
    Garbled,
    /// The answer does not follow the protocol: HTML, another server's words.
    Protocol,
    /// Another program's agent could not be started, broke down or gave up. The same again would do the same
    /// work twice.
    Agent,
    /// Somebody cancelled the call.
    Cancelled,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auth => "not authorised",
            Self::Forbidden => "no access",
            Self::BadRequest => "request refused",
            Self::ContextTooLong => "prompt too long for the model",
            Self::NotFound => "not found",
            Self::RateLimited => "rate limited",
            Self::Quota => "quota used up",
            Self::Overloaded => "provider overloaded",
            Self::ServerError => "server error",
            Self::Unreachable => "cannot be reached",
            Self::Certificate => "untrusted certificate",
            Self::WrongServer => "not a model server",
            Self::Network => "network failure",
            Self::Timeout => "timed out",
            Self::Garbled | Self::Protocol => "unreadable answer",
            Self::Agent => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// Longest wait that a provider is believed.
pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// A failed model call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderError {
    /// What kind of failure, for branching.
    pub kind: ErrorKind,
    /// Name of the provider, as the user configured it.
    pub provider: String,
    /// The cause in the provider's or our own words; a fragment without a full stop.
    pub message: String,
    /// HTTP status, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The vendor's error code or type, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How long the provider asked us to wait before trying again, up to a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// What the user can do about it; a sentence, shown on a line of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ProviderError {
    /// An error of `kind` from `provider`; the other facts start empty.
    pub fn new(kind: ErrorKind, provider: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            provider: provider.into(),
            message: message.into(),
            status: None,
            code: None,
            retry_after: None,
            hint: None,
        }
    }

    /// Adds a remedy for the user: one sentence, or a few.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns whether a proxy says with this HTTP status that the server behind it gave no usable answer: 502, and those
/// that Cloudflare adds.
#[must_use]
pub const fn is_fault_behind_proxy(status: u16) -> bool {
    matches!(status, 502 | 520..=523 | 525..=527 | 530)
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Why nobody could be reached says that nobody could.
        let says_all = matches!(self.kind, ErrorKind::Unreachable | ErrorKind::Certificate);
        if says_all && self.status.is_none() && !self.message.is_empty() {
            return write!(f, "{}: {}", self.provider, self.message);
        }
        // A proxy says so of the server behind it.
        let is_behind_proxy =
            self.kind == ErrorKind::Overloaded && self.status.is_some_and(is_fault_behind_proxy);
        if is_behind_proxy {
            let what = "no usable answer from the server behind the proxy";
            write!(f, "{}: {what}", self.provider)?;
        } else {
            write!(f, "{}: {}", self.provider, self.kind)?;
        }
        if let Some(status) = self.status {
            write!(f, " (HTTP {status})")?;
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl std::error::Error for ProviderError {}
