//! The engine of a session: being opened, open, being changed, or gone.

use gnoma_core::{Event, protocol::RequestError, tool::BoxFuture};

use super::{change, ports::OpenedSession};

/// The engine of a session.
pub(super) enum Engine {
    /// The engine is being opened.
    Opening(BoxFuture<'static, Result<OpenedSession, RequestError>>),
    /// The engine runs.
    Open(OpenedSession),
    /// The engine is closed, something is changed, and it will be opened again.
    Changing(BoxFuture<'static, change::ChangeOutcome>),
    /// The engine could not be opened, or has ended.
    Gone,
}

/// A message of an engine.
pub(super) enum EngineWakeup {
    /// The engine is open, or cannot be opened.
    Opened(Result<OpenedSession, RequestError>),
    /// The change is done.
    Changed(Box<change::ChangeOutcome>),
    /// An event of the engine; `None` if it has ended.
    Event(Option<Event>),
}

impl Engine {
    /// Returns whether the engine is being opened or changed.
    pub(super) fn is_coming(&self) -> bool {
        matches!(self, Self::Opening(_) | Self::Changing(_))
    }

    /// Waits for what the engine says next. Safe to drop.
    pub(super) async fn next(&mut self) -> EngineWakeup {
        match self {
            Self::Opening(opening) => EngineWakeup::Opened(opening.await),
            Self::Changing(changing) => EngineWakeup::Changed(Box::new(changing.await)),
            Self::Open(opened) => EngineWakeup::Event(opened.engine.next().await),
            Self::Gone => std::future::pending().await,
        }
    }
}
