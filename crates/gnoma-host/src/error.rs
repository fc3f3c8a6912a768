//! The error of requests that a person or a front end makes to the host.

use std::fmt;

use gnoma_core::{
    ErrorKind, ProviderError,
    protocol::{RequestError, RequestErrorKind},
    store::{StoreError, StoreErrorKind},
    system_error::without_numbers,
};

/// The kind of reason, for code that branches on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostErrorKind {
    /// The request or a setting is wrong, and the person can fix it.
    Usage,
    /// The thing that the request names does not exist.
    NotFound,
    /// The session is open elsewhere; a copy of it could continue.
    Held,
    /// A provider refused or could not be reached: how that is called.
    Provider(ErrorKind),
    /// The request failed for another reason.
    Failure,
}

/// A reason in sentences for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// The kind of the reason, for code that branches on it.
    pub kind: HostErrorKind,
    /// The cause of the error, in one or more lines.
    pub cause: String,
    /// The remedy, if that is known and not part of the cause.
    pub remedy: Option<String>,
}

/// The result type of the host's functions.
pub type Result<T, E = HostError> = std::result::Result<T, E>;

impl HostError {
    /// A mistake of the person's, in a sentence that says what to do instead.
    #[must_use]
    pub fn usage(cause: impl Into<String>) -> Self {
        Self::new(HostErrorKind::Usage, &cause.into())
    }

    /// Creates the error for a thing that the request names and that does not exist.
    #[must_use]
    pub fn not_found(cause: impl Into<String>) -> Self {
        Self::new(HostErrorKind::NotFound, &cause.into())
    }

    /// Creates the error for a failure.
    #[must_use]
    pub fn failure(cause: impl Into<String>) -> Self {
        Self::new(HostErrorKind::Failure, &cause.into())
    }

    fn new(kind: HostErrorKind, cause: &str) -> Self {
        Self { kind, cause: without_numbers(cause).into_owned(), remedy: None }
    }
}

/// The cause, and after a semicolon the remedy. A provider's own advice, and a remedy behind whole sentences, is on a
/// separate line.
impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        match (&self.remedy, self.kind) {
            (None, _) => Ok(()),
            (Some(remedy), HostErrorKind::Provider(_)) => write!(f, "\n{remedy}"),
            // Whole sentences, or several lines: a semicolon would be lost behind them.
            (Some(remedy), _) if self.cause.ends_with('.') || self.cause.contains('\n') => {
                write!(f, "\n{remedy}")
            }
            (Some(remedy), _) => write!(f, "; {remedy}"),
        }
    }
}

impl std::error::Error for HostError {}

impl From<ProviderError> for HostError {
    fn from(error: ProviderError) -> Self {
        let kind = HostErrorKind::Provider(error.kind);
        Self { remedy: error.hint.clone(), ..Self::new(kind, &error.to_string()) }
    }
}

impl From<anyhow::Error> for HostError {
    fn from(error: anyhow::Error) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(known) => return known,
            Err(error) => error,
        };
        match error.downcast::<ProviderError>() {
            Ok(known) => known.into(),
            Err(error) => Self::failure(format!("{error:#}")),
        }
    }
}

impl From<HostError> for RequestError {
    fn from(HostError { kind, cause, remedy }: HostError) -> Self {
        let (kind, failure) = match kind {
            HostErrorKind::Usage => (RequestErrorKind::Invalid, None),
            HostErrorKind::NotFound => (RequestErrorKind::NotFound, None),
            HostErrorKind::Held => (RequestErrorKind::Held, None),
            HostErrorKind::Provider(failure) => (RequestErrorKind::Provider, Some(failure)),
            HostErrorKind::Failure => (RequestErrorKind::Failed, None),
        };
        Self { kind, cause, remedy, failure }
    }
}

impl From<RequestError> for HostError {
    fn from(RequestError { kind, cause, remedy, failure }: RequestError) -> Self {
        let kind = match kind {
            RequestErrorKind::Invalid => HostErrorKind::Usage,
            RequestErrorKind::NotFound => HostErrorKind::NotFound,
            RequestErrorKind::Held => HostErrorKind::Held,
            // Older servers do not tell which failure it was.
            RequestErrorKind::Provider => {
                HostErrorKind::Provider(failure.unwrap_or(ErrorKind::BadRequest))
            }
            _ => HostErrorKind::Failure,
        };
        Self { kind, cause, remedy }
    }
}

macro_rules! failures {
    ($($error:ty),+) => {$(
        impl From<$error> for HostError {
            fn from(error: $error) -> Self {
                anyhow::Error::new(error).into()
            }
        }
    )+};
}

failures!(std::io::Error, serde_json::Error);

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> Self {
        let is_held = matches!(error.kind, StoreErrorKind::Held { .. });
        let other = Self::from(anyhow::Error::new(error));
        if is_held { Self { kind: HostErrorKind::Held, ..other } } else { other }
    }
}

impl From<gnoma_store::checkpoint::Error> for HostError {
    fn from(error: gnoma_store::checkpoint::Error) -> Self {
        // It names its source itself.
        Self::failure(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::store::Holder;

    use super::*;

    #[test]
    fn only_a_session_locked_by_another_process_gives_error_held() {
        let by = Holder { pid: 7, host: "here".into(), since_ms: 0 };
        let held = StoreError::new(StoreErrorKind::Held { by }, "it is open in process 7");
        let error = RequestError::from(HostError::from(held));
        assert_eq!(
            (error.kind, &*error.cause),
            (RequestErrorKind::Held, "it is open in process 7")
        );
        let other = StoreError::new(StoreErrorKind::NotFound, "there is no such session");
        assert_eq!(HostError::from(other).kind, HostErrorKind::Failure);
    }
}
