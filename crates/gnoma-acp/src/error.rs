//! Errors that the ACP client receives: codes of JSON-RPC and of the protocol.

use gnoma_core::{
    ProviderError,
    error_policy::ExitMeaning,
    json_value::json,
    protocol::{RequestError, RequestErrorKind},
};
use serde_json::Value;

/// The reason why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// The error code, for branching.
    pub code: i64,
    /// For people: what happened, and what to do.
    pub message: String,
}

impl RpcError {
    /// The line is no JSON.
    pub const PARSE: i64 = -32_700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i64 = -32_600;
    /// There is no such method.
    pub const NO_METHOD: i64 = -32_601;
    /// The parameters are wrong.
    pub const INVALID_PARAMS: i64 = -32_602;
    /// The code of a request that failed on the way.
    pub const INTERNAL: i64 = -32_603;
    /// The code of a request that its client cancelled.
    pub const CANCELLED: i64 = -32_800;
    /// A provider must be set up first.
    pub const AUTH_REQUIRED: i64 = -32_000;
    /// There is no such session.
    pub const NOT_FOUND: i64 = -32_002;
    /// Another program has the session open; a copy of it can be opened.
    pub const OPEN_ELSEWHERE: i64 = -32_003;

    /// An error of this code.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Parameters that are wrong.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// No session of that id is open for the client.
    pub(crate) fn no_session(id: &str) -> Self {
        let text = format!("no session `{id}` is open; load or resume it first");
        Self::new(Self::NOT_FOUND, text)
    }

    /// Another program has the session open.
    fn open_elsewhere(cause: &str) -> Self {
        let text = format!(
            "{cause}. Close it there, open a copy with `session/fork`, or read it with `gnoma sessions export`"
        );
        Self::new(Self::OPEN_ELSEWHERE, text)
    }

    /// Returns what a client can read of the error beside its message: for a session that is open elsewhere, the methods
    /// that open it all the same.
    pub(crate) fn data(&self) -> Option<Value> {
        (self.code == Self::OPEN_ELSEWHERE)
            .then(|| json!({ "reason": "open_elsewhere", "offers": ["session/fork"] }))
    }

    /// A failed model call.
    pub(crate) fn from_provider_error(error: &ProviderError) -> Self {
        let code = match error.kind.policy().exit {
            ExitMeaning::NotAuthorised => Self::AUTH_REQUIRED,
            ExitMeaning::NoModel | ExitMeaning::Failed => Self::INTERNAL,
        };
        let mut message = error.to_string();
        if let Some(hint) = &error.hint {
            message.push_str(". ");
            message.push_str(hint);
        }
        Self::new(code, message)
    }
}

impl From<RequestError> for RpcError {
    fn from(error: RequestError) -> Self {
        let code = match error.kind {
            RequestErrorKind::NoSession | RequestErrorKind::Closed | RequestErrorKind::NotFound => {
                Self::NOT_FOUND
            }
            RequestErrorKind::Held => return Self::open_elsewhere(&error.cause),
            RequestErrorKind::Invalid | RequestErrorKind::Malformed => Self::INVALID_PARAMS,
            RequestErrorKind::Version
            | RequestErrorKind::Unknown
            | RequestErrorKind::Busy
            | RequestErrorKind::NotAsked
            | RequestErrorKind::Refused
            | RequestErrorKind::Provider
            | RequestErrorKind::Failed => Self::INTERNAL,
        };
        let message = match error.remedy {
            Some(remedy) => format!("{}. {remedy}", error.cause),
            None => error.cause,
        };
        Self::new(code, message)
    }
}
