//! Changes for which this session or another one is opened again: another model, a rewind, a fork.

use std::sync::{Arc, Weak};

use gnoma_core::{
    Command,
    protocol::{Reply, Request, RequestError, SessionSpec, Switch},
    store::SessionId,
};

use super::{
    handle::end_all,
    log::EventLog,
    ports::{
        Change, OpenedSession, PreparedSession, Services, SessionChangeResult, SessionOpening,
    },
    replier::{Replier, ended_error},
    replies::ReplyOutcome,
    shared::HostShared,
};
use crate::Notices;

/// Reports whether a request opens a session again.
pub(super) fn is_change(request: &Request) -> bool {
    matches!(
        request,
        Request::Switch(_)
            | Request::Rewind { .. }
            | Request::RewindElf { .. }
            | Request::RevertFile { .. }
            | Request::Redo
            | Request::Fork
    )
}

/// Reports whether a request opens another session, while this one stays as it is.
pub(super) fn is_for_another(request: &Request) -> bool {
    matches!(
        request,
        Request::Fork
            | Request::Switch(
                Switch::New | Switch::Stored(_) | Switch::Copy(_) | Switch::Profile(_)
            )
    )
}

/// Opens another session and replies with its id.
pub(super) async fn open_another(
    shared: Weak<HostShared>,
    services: Arc<dyn Services>,
    change: Change,
    replier: Replier,
) {
    let outcome = async {
        let SessionChangeResult { spec, .. } = services.apply_change(change).await?;
        let shared = shared.upgrade().ok_or_else(ended_error)?;
        shared.open(spec).await.map(|session| Reply::Opened { session })
    };
    replier.reply(outcome.await);
}

/// A session that is changed: its engine is closed, and opened again as it was or as it becomes.
pub(super) struct EngineChange {
    pub(super) shared: Weak<HostShared>,
    pub(super) session: SessionId,
    pub(super) log: EventLog,
    pub(super) services: Arc<dyn Services>,
    pub(super) notices: Notices,
    pub(super) engine: Option<OpenedSession>,
}

/// The way in which a session continues after a change.
pub(super) enum NextEngine {
    /// With the engine that it had: nothing was changed.
    AsItWas(OpenedSession),
    /// The session is opened again.
    Reopened(Box<ReopenedSession>),
}

impl NextEngine {
    fn from_prepared(prepared: Result<PreparedSession, RequestError>, spec: SessionSpec) -> Self {
        Self::Reopened(Box::new(ReopenedSession { prepared, spec }))
    }
}

/// A session that is opened again.
pub(super) struct ReopenedSession {
    /// The session, or why there is none.
    pub(super) prepared: Result<PreparedSession, RequestError>,
    /// The options that the session is opened with.
    pub(super) spec: SessionSpec,
}

/// The result of a change.
pub(super) struct ChangeOutcome {
    pub(super) next: NextEngine,
    /// The reply once it continues.
    pub(super) outcome: ReplyOutcome,
    pub(super) replier: Replier,
}

impl EngineChange {
    pub(super) async fn apply_change(mut self, change: Change, replier: Replier) -> ChangeOutcome {
        if let Some(engine) = self.engine.take() {
            if let Err(error) = self.services.check_change(change.clone()).await {
                return ChangeOutcome {
                    next: NextEngine::AsItWas(engine),
                    outcome: Err(error),
                    replier,
                };
            }
            close_engine(engine).await;
            // What works in the background would continue changing files that are put back here.
            let children =
                self.shared.upgrade().map(|shared| shared.forbid_children(&self.session));
            end_all(children.unwrap_or_default()).await;
        }
        let before = change.spec.clone();
        let changed = self.services.apply_change(change).await;
        let (spec, keeps_messages, outcome) = match changed {
            Ok(SessionChangeResult { spec, keeps_messages, told }) => {
                let reply = if told.is_empty() { Reply::Done } else { Reply::Text(told) };
                (spec, keeps_messages, Ok(reply))
            }
            Err(error) => (self.services.unchanged_spec(before.clone()), true, Err(error)),
        };
        match self.open(spec.clone(), keeps_messages).await {
            Err(error) if outcome.is_ok() => {
                let spec = self.services.unchanged_spec(before);
                let prepared = self.open(spec.clone(), true).await;
                ChangeOutcome {
                    next: NextEngine::from_prepared(prepared, spec),
                    outcome: Err(error),
                    replier,
                }
            }
            prepared => {
                ChangeOutcome { next: NextEngine::from_prepared(prepared, spec), outcome, replier }
            }
        }
    }

    async fn open(
        &mut self,
        spec: SessionSpec,
        keeps_messages: bool,
    ) -> Result<PreparedSession, RequestError> {
        let shared = self.shared.upgrade().ok_or_else(ended_error)?;
        let carried =
            if keeps_messages { self.log.messages(None, usize::MAX).1 } else { Vec::new() };
        let (session, notices) = (Some(self.session.clone()), self.notices.clone());
        let spawner = Arc::clone(&shared.spawner);
        let wanted = SessionOpening { spec, session, carried, notices, spawner };
        let mut prepared = shared.opener.open(wanted).await?;
        // All of it, so that what cannot be opened is known while the session can continue as it was.
        let opened = prepared.opening.await?;
        prepared.opening = Box::pin(async { Ok(opened) });
        Ok(prepared)
    }
}

/// Ends an engine, which ends its tools and stores what it has.
async fn close_engine(mut opened: OpenedSession) {
    if opened.engine.send_command(Command::Close) {
        while opened.engine.next().await.is_some() {}
    }
}
