//! The error of the tools by which a client talks to sessions.

use gnoma_core::{protocol::RequestError, store::SessionId};

/// The reason why a call about a session has no result.
#[derive(thiserror::Error)]
pub(super) enum ServedSessionError {
    /// An argument of the call is missing or empty.
    #[error("`{0}` is needed")]
    MissingArgument(&'static str),
    /// The client talks to no session with this id.
    #[error("there is no session `{0}` here; `ask` opens one, `continue` resumes a saved one")]
    UnknownSession(SessionId),
    /// As many sessions work as a client may have.
    #[error("{max} sessions work; wait for the end of one with `status`, or `cancel` one")]
    TooManySessions { max: usize },
    /// The session has a turn that runs, so no message can be sent to it.
    #[error("a turn is running in this session; wait for its end, or `cancel` it")]
    TurnRuns,
    /// Too many requests wait for the session, or it has ended.
    #[error("the session does not accept messages")]
    NotAccepting,
    /// The host refused to open the session.
    #[error(transparent)]
    Refused(#[from] RequestError),
}

gnoma_core::debug_as_display!(ServedSessionError);
