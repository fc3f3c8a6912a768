//! What a host of sessions needs: who opens them, and what answers what their engines do not.

use std::sync::Arc;

use gnoma_core::{
    Message,
    info::{Choice, SessionInfo},
    protocol::{Reply, Request, RequestError, RequestErrorKind, SessionSpec, Start},
    store::{SessionFacts, SessionId},
    tool::{BoxFuture, ChildMerge, ChildTask, Spawner},
};
use gnoma_engine::{FilesReady, Handle, Rights};
use gnoma_router::pool::Scope;

use crate::{
    Notices,
    observers::{ObservedSession, SessionObservers},
    tasks::SessionTaskFiles,
};

/// What opens sessions: settings, stores and models become an engine.
pub trait Opener: Send + Sync + 'static {
    /// Reads what a session needs from this machine. What needs a network or a lock is left to
    /// [`Prepared::opening`].
    fn open(&self, wanted: Opening) -> BoxFuture<'static, Result<Prepared, RequestError>>;

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
    fn stored(
        &self,
        _spec: SessionSpec,
        _max: usize,
    ) -> BoxFuture<'static, Result<Vec<SessionFacts>, RequestError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Deletes a stored session, which is open nowhere, of the project of a spec's folder.
    fn delete(
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

    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// An id that no session has.
    fn new_id(&self) -> SessionId;
}

/// What is to be opened.
pub struct Opening {
    /// What the client wants.
    pub spec: SessionSpec,
    /// The session that continues under its id, if it was in this process before.
    pub session: Option<SessionId>,
    /// Its conversation, if it is not stored.
    pub carried: Vec<Arc<Message>>,
    /// Where notices go.
    pub notices: Notices,
    /// Starts sessions for its tools.
    pub spawner: Arc<dyn Spawner>,
}

/// A session that another one starts.
pub struct ChildOpening {
    /// Its id.
    pub id: SessionId,
    /// What the tool asked for, without later messages to it.
    pub task: ChildTask,
    /// Whose money it spends, its own and that of those above it.
    pub scope: Scope,
    /// What the session above it may do.
    pub rights: Rights,
    /// Where notices go.
    pub notices: Notices,
    /// Starts sessions for its tools.
    pub spawner: Arc<dyn Spawner>,
}

/// A session that is about to open.
pub struct Prepared {
    /// Its id.
    pub id: SessionId,
    /// What front ends show of it.
    pub info: SessionInfo,
    /// The conversation that continues.
    pub messages: Vec<Arc<Message>>,
    /// The rest of its making.
    pub opening: BoxFuture<'static, Result<Opened, RequestError>>,
    /// What answers requests that the engine does not.
    pub services: Arc<dyn Services>,
}

/// A session that is open.
pub struct Opened {
    /// Its engine.
    pub engine: Handle,
    /// What works beside it, such as the search for local models; ends with it.
    pub beside: Box<dyn Beside>,
    /// The models that can be chosen, as far as they are known now.
    pub models: Box<dyn Fn() -> Vec<Choice> + Send>,
    /// How many commands its tools run in the background now.
    pub jobs: CountJobs,
}

/// What works beside a session, and may rest while nobody uses it.
pub trait Beside: Send {
    /// Whether somebody sees the session, or it works or waits for a person. Is told when that may have
    /// changed.
    fn used(&self, is_used: bool);
}

/// Nothing.
impl Beside for () {
    fn used(&self, _is_used: bool) {}
}

/// Counts the commands that a session's tools run in the background.
pub type CountJobs = Arc<dyn Fn() -> usize + Send + Sync>;

/// What a session's project can do besides the conversation. Nothing here runs on the session's loop.
pub trait Services: Send + Sync {
    /// Answers a request that changes nothing in the engine.
    fn answer(&self, request: Request) -> BoxFuture<'static, Result<Reply, RequestError>>;

    /// Whether a change can be done, as far as that is known while the engine is open: closing it ends
    /// its background jobs, which a change that cannot be done should not cost.
    fn check(&self, _change: Change) -> BoxFuture<'static, Result<(), RequestError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Does what a request wants of the stored conversation and the files while no engine is open, and
    /// says what the session continues with.
    fn change(&self, change: Change) -> BoxFuture<'static, Result<Changed, RequestError>>;

    /// What watches the session: a debug log, telemetry. Must be called within a runtime.
    fn observers(&self, _session: ObservedSession) -> SessionObservers {
        SessionObservers::default()
    }

    /// Prepares a session that this one starts, and says what it is opened with: it works in the folders
    /// of this one, with its environment and settings, and may never do more than this one.
    fn child(
        &self,
        wanted: ChildOpening,
    ) -> BoxFuture<'static, Result<(SessionSpec, Prepared), RequestError>>;

    /// The tasks of the session's project; `None` if it has none.
    fn tasks(&self) -> Option<SessionTaskFiles> {
        None
    }

    /// Waits until nobody else merges into the project of the session's copy, where it works in one, and
    /// holds that until it has landed. Safe to drop.
    fn merge_next(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Whether the files of its copy of the project are there, where it did not wait for them.
    fn copied(&self) -> Option<FilesReady> {
        None
    }

    /// Makes the copy what a merge would make of the project. An error is why nothing can land.
    fn bring_up(&self) -> BoxFuture<'static, Option<Result<Landing, String>>> {
        Box::pin(std::future::ready(None))
    }

    /// The session has ended: merges what it changed in its copy of the project, where it worked in one,
    /// unless there is a reason not to.
    fn land(&self, _why_not: Option<String>) -> BoxFuture<'static, Option<ChildMerge>> {
        Box::pin(std::future::ready(None))
    }

    /// Whether the session's conversation is saved.
    fn is_saved(&self) -> bool {
        false
    }

    /// The spec with which the session continues unchanged, given the spec with which it was opened.
    fn unchanged(&self, spec: SessionSpec) -> SessionSpec;

    /// The engine has ended: forgets what is too old. Nobody waits for it long.
    fn tidy(&self) -> BoxFuture<'static, ()>;
}

/// What a session's copy of the project is beside what a merge would make of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// There is nothing to merge, or it is at odds.
    Nothing,
    /// The same.
    Same,
    /// The same from now on: the project has changed since the copy was made.
    BroughtUp,
}

/// A change for which a session is opened again.
#[derive(Clone)]
pub struct Change {
    /// What is asked: a switch, a rewind, a redo or a fork.
    pub request: Request,
    /// What the session was opened with.
    pub spec: SessionSpec,
}

/// What a change leads to.
pub struct Changed {
    /// What the session is opened with from now on.
    pub spec: SessionSpec,
    /// The conversation continues; if it is not stored, as it is in memory.
    pub keeps_messages: bool,
    /// For people.
    pub told: String,
}
