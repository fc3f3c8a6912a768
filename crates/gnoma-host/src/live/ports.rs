//! The ports of a host of sessions: one opens them, one answers the requests that their engines do not.

use std::sync::Arc;

use gnoma_core::{
    Message,
    info::{Choice, SessionInfo},
    protocol::{HistoryNote, Reply, Request, RequestError, RequestErrorKind, SessionSpec, Start},
    store::{SessionFacts, SessionId},
    tool::{BoxFuture, ChildMerge, ChildTask, Spawner},
};
use gnoma_engine::{CheckpointReadiness, Handle, Rights};
use gnoma_router::pool::Scope;

use crate::{
    Notices,
    observers::{ObservedSession, SessionObservers},
    tasks::SessionTaskFiles,
};

/// An opener of sessions: turns settings, stores and models into an engine.
pub trait Opener: Send + Sync + 'static {
    /// Reads what a session needs from this machine. What needs a network or a lock is left to
    /// [`PreparedSession::opening`].
    fn open(
        &self,
        wanted: SessionOpening,
    ) -> BoxFuture<'static, Result<PreparedSession, RequestError>>;

    /// The stored session that a spec continues with, where it continues with one itself and not with a copy.
    /// Takes nothing in hand: it may live in this process already.
    fn goes_on(&self, spec: SessionSpec) -> BoxFuture<'static, Result<SessionId, RequestError>> {
        let id = match spec.start {
            Start::Stored { id, .. } => Ok(SessionId::new(id)),
            Start::New | Start::Newest { .. } => Err(RequestError::new(
                RequestErrorKind::NotFound,
                "there is no session to continue",
            )),
        };
        Box::pin(std::future::ready(id))
    }

    /// The stored sessions of the project of a spec's folder, at most `max`, the newest first.
    fn stored_sessions(
        &self,
        _spec: SessionSpec,
        _max: usize,
    ) -> BoxFuture<'static, Result<Vec<SessionFacts>, RequestError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Deletes a stored session, which is open nowhere, of the project of a spec's folder.
    fn delete_session(
        &self,
        _spec: SessionSpec,
        id: SessionId,
    ) -> BoxFuture<'static, Result<(), RequestError>> {
        let error = RequestError::new(RequestErrorKind::NotFound, format!("no session `{id}`"));
        Box::pin(std::future::ready(Err(error)))
    }

    /// The process ends: sends what waits to be sent, within a second.
    fn finish(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the time in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// An id that no session has.
    fn new_id(&self) -> SessionId;
}

/// A session that is to be opened.
pub struct SessionOpening {
    /// The options that the client wants.
    pub spec: SessionSpec,
    /// The session that continues under its id, if it was in this process before.
    pub session: Option<SessionId>,
    /// The session's conversation, if it is not stored.
    pub carried: Vec<Arc<Message>>,
    /// The destination of notices.
    pub notices: Notices,
    /// Starts sessions for its tools.
    pub spawner: Arc<dyn Spawner>,
}

/// A session that another one starts.
pub struct ChildOpening {
    /// The id of the new session.
    pub id: SessionId,
    /// The task that the tool asked for, without later messages to the session.
    pub task: ChildTask,
    /// Whose money it spends, its own and that of those above it.
    pub scope: Scope,
    /// The rights of the session above this one.
    pub rights: Rights,
    /// The destination of notices.
    pub notices: Notices,
    /// Starts sessions for its tools.
    pub spawner: Arc<dyn Spawner>,
}

/// A session that is about to open.
pub struct PreparedSession {
    /// The id of the session.
    pub id: SessionId,
    /// The facts about the session that front ends show.
    pub info: SessionInfo,
    /// The conversation that continues.
    pub messages: Vec<Arc<Message>>,
    /// The stored notes on the conversation beside its messages.
    pub notes: Vec<HistoryNote>,
    /// The rest of its making.
    pub opening: BoxFuture<'static, Result<OpenedSession, RequestError>>,
    /// The services that answer requests that the engine does not.
    pub services: Arc<dyn Services>,
}

/// A session that is open.
pub struct OpenedSession {
    /// The engine of the session.
    pub engine: Handle,
    /// The service beside the session, such as the search for local models; ends with the session.
    pub beside: Box<dyn BackgroundService>,
    /// The models that can be chosen, as far as they are known now.
    pub models: Box<dyn Fn() -> Vec<Choice> + Send>,
    /// Counts the commands that the session's tools run in the background now.
    pub jobs: JobCounter,
}

/// A service beside a session that may rest while the session is not in use.
pub trait BackgroundService: Send {
    /// Tells the service whether a client sees the session, or the session works or waits for a user. Called when
    /// that may have changed.
    fn set_used(&self, is_used: bool);
}

/// No service beside a session.
impl BackgroundService for () {
    fn set_used(&self, _is_used: bool) {}
}

/// Counts the commands that a session's tools run in the background.
pub type JobCounter = Arc<dyn Fn() -> usize + Send + Sync>;

/// The services that a session's project offers besides the conversation. None of this runs on the session's loop.
pub trait Services: Send + Sync {
    /// Answers a request that changes nothing in the engine.
    fn answer_request(&self, request: Request) -> BoxFuture<'static, Result<Reply, RequestError>>;

    /// Checks that a change can be done, as far as that is known while the engine is open: closing the engine ends
    /// its background jobs, which a change that cannot be done should not cost.
    fn check_change(&self, _change: Change) -> BoxFuture<'static, Result<(), RequestError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Does what a request wants of the stored conversation and the files while no engine is open, and
    /// says what the session continues with.
    fn apply_change(
        &self,
        change: Change,
    ) -> BoxFuture<'static, Result<SessionChangeResult, RequestError>>;

    /// Returns the observers of the session: a debug log, telemetry. Must be called within a runtime.
    fn observers(&self, _session: ObservedSession) -> SessionObservers {
        SessionObservers::default()
    }

    /// Prepares a session that this one starts, and says what it is opened with: it works in the folders
    /// of this one, with its environment and settings, and may never do more than this one.
    fn prepare_child(
        &self,
        wanted: ChildOpening,
    ) -> BoxFuture<'static, Result<(SessionSpec, PreparedSession), RequestError>>;

    /// The tasks of the session's project; `None` if it has none.
    fn task_files(&self) -> Option<SessionTaskFiles> {
        None
    }

    /// Waits until no other session merges into the project of the session's copy, if it works in one, and keeps others
    /// from it until the copy is merged. Safe to drop.
    fn merge_next(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns the signal that the files of the session's copy of the project are there, if the session did not
    /// wait for them.
    fn files_ready(&self) -> Option<CheckpointReadiness> {
        None
    }

    /// Makes the copy what a merge would make of the project; `None` without a copy.
    fn bring_up(&self) -> BoxFuture<'static, Option<Result<MergePreview, CopyMergeError>>> {
        Box::pin(std::future::ready(None))
    }

    /// The session has ended: merges what it changed in its copy of the project, where it worked in one,
    /// unless there is a reason not to.
    fn merge_changes(&self, _why_not: Option<String>) -> BoxFuture<'static, Option<ChildMerge>> {
        Box::pin(std::future::ready(None))
    }

    /// Reports whether the session's conversation is saved.
    fn is_saved(&self) -> bool {
        false
    }

    /// The spec with which the session continues unchanged, given the spec with which it was opened.
    fn unchanged_spec(&self, spec: SessionSpec) -> SessionSpec;

    /// Removes stored data that is too old, after the engine has ended. Takes only a short time.
    fn remove_old_data(&self) -> BoxFuture<'static, ()>;
}

/// The relation between a session's copy of the project and the result of merging it with the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergePreview {
    /// There is nothing to merge, or it is at odds.
    Nothing,
    /// The copy equals the result of the merge.
    Same,
    /// The same from now on: the project has changed since the copy was made.
    BroughtUp,
}

/// The reason why nothing of a session's copy of the project can be merged.
#[derive(thiserror::Error)]
pub enum CopyMergeError {
    /// The copy is gone, or another folder is in its place.
    #[error("its copy of the project was deleted")]
    Deleted,
    /// The files were not copied in time.
    #[error("its copy of the project took too long to make")]
    TooSlow,
    /// The files could not be copied, for this reason.
    #[error("{0}")]
    Incomplete(String),
    /// The copy cannot be compared with the project.
    #[error(transparent)]
    Checkpoint(#[from] gnoma_store::checkpoint::Error),
}

gnoma_core::debug_as_display!(CopyMergeError);

/// A change for which a session is opened again.
#[derive(Clone)]
pub struct Change {
    /// The requested change: a switch, a rewind, a redo or a fork.
    pub request: Request,
    /// The options that the session was opened with.
    pub spec: SessionSpec,
}

/// The consequences of a change for a session.
pub struct SessionChangeResult {
    /// The options that the session is opened with from now on.
    pub spec: SessionSpec,
    /// The conversation continues; if it is not stored, as it is in memory.
    pub keeps_messages: bool,
    /// A description of the change for people.
    pub told: String,
}
