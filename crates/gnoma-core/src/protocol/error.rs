//! Reasons why a request had no effect.

use serde::{Deserialize, Serialize};

use crate::ErrorKind;

/// Why a request had no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{cause}")]
pub struct RequestError {
    /// For branching.
    pub kind: RequestErrorKind,
    /// What happened and why; a fragment without a full stop.
    pub cause: String,
    /// What to do about it, if anything; a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// How the provider failed, if it was a provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ErrorKind>,
}

/// Kinds of failed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestErrorKind {
    /// The message cannot be read: not JSON, not a request, or too long.
    Malformed,
    /// The host does not speak the client's version.
    Version,
    /// The host does not know the request; it may be older than the client.
    Unknown,
    /// There is no such session, or it is not the client's to see.
    NoSession,
    /// The session has ended.
    Closed,
    /// It cannot be done while a turn runs, or too much waits already.
    Busy,
    /// The stored session is open in another process; a copy of it could continue.
    Held,
    /// The question was answered before, or never asked.
    NotAsked,
    /// There is no such thing.
    NotFound,
    /// A value is wrong; the person can fix it.
    Invalid,
    /// It is not allowed.
    Refused,
    /// A provider refused or could not be reached; the remedy is its own advice.
    Provider,
    /// It failed on the way.
    Failed,
}

impl RequestError {
    /// An error of `kind`, without a remedy.
    pub fn new(kind: RequestErrorKind, cause: impl Into<String>) -> Self {
        Self { kind, cause: cause.into(), remedy: None, failure: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
