//! What a running tool may ask of the session that it runs in, and of whoever can start others.

use std::{fmt, pin::Pin, sync::Arc};

use crate::{
    message::{CallId, Content},
    protocol::SessionSpec,
    session::{Inquiry, NoticeLevel, PermissionAnswer},
};

/// A boxed future, so that ports stay object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A question to a person in the middle of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// What is asked, in one line.
    pub text: String,
    /// What a yes would change, as a unified diff.
    pub preview: Option<String>,
    /// The answer may hold for later calls, too: by the rules that would have let this one run.
    pub may_be_always: bool,
    /// Words are wanted, and a yes is no answer.
    pub inquiry: Option<Inquiry>,
    /// What [`PermissionAnswer::Part`] may choose from; empty where all or nothing is meant.
    pub parts: Vec<String>,
}

/// What a running call tells people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEvent {
    /// New output.
    Progress(String),
    /// Something to know that is no output.
    Notice {
        /// How loud it is.
        level: NoticeLevel,
        /// The words.
        text: String,
    },
}

/// What may still be spent, in micro-dollars, as it stood when the call began. `None`: nothing is
/// known to limit it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// In the turn.
    pub turn_micro_usd: Option<u64>,
    /// In the session.
    pub session_micro_usd: Option<u64>,
}

/// A session as its running tools see it.
pub trait ToolSession: Send + Sync + fmt::Debug {
    /// Asks a person on behalf of a call. Where nobody can answer, or the turn is stopped first, the
    /// answer is [`PermissionAnswer::Deny`].
    fn ask(&self, call: CallId, question: Question) -> BoxFuture<'static, PermissionAnswer>;

    /// Tells people something. Never waits; where too much is told at once, some of it is lost.
    fn emit(&self, call: CallId, event: ToolEvent);

    /// Starts a session on behalf of a call, and waits for its end.
    fn spawn(
        &self,
        call: CallId,
        child: ChildTask,
    ) -> BoxFuture<'static, Result<ChildResult, SpawnError>>;
}

/// What a session that a tool starts is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildTask {
    /// What it is opened with. An empty folder is the parent's; others lie in the folders that the
    /// parent works in. Environment, umask, profile, and whether anything is kept are the parent's: what
    /// is set here and differs is an error. Its mode, and all else that it may do, is held to what the
    /// parent may at the time.
    pub spec: SessionSpec,
    /// What it is told first.
    pub content: Vec<Content>,
    /// What it may spend at most, in micro-dollars, beside all that its parent may.
    pub limit_micro_usd: Option<u64>,
}

/// The session, turn and call that start another session.
#[derive(Clone, Debug)]
pub struct Parent {
    /// The session's id, as its spending is counted.
    pub session: String,
    /// The turn's id, as its spending is counted.
    pub turn: String,
    /// The call.
    pub call: CallId,
    /// The session as its tools see it: what the other one asks a person is put there.
    pub port: Arc<dyn ToolSession>,
}

/// How a session that a tool started ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildResult {
    /// Its id.
    pub session: String,
    /// The text of its last answer.
    pub text: String,
}

/// Why a session could not be started or did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// Nobody here can start sessions.
    #[error("no sessions can be started here")]
    Unavailable,
    /// Sessions would start sessions too deep, or too many at once.
    #[error("{0}")]
    TooMany(String),
    /// The call was stopped, and with it the session that it started.
    #[error("it was stopped")]
    Stopped,
    /// It failed; why.
    #[error("{0}")]
    Failed(String),
}

/// Starts sessions for the tools of others. A host may give one to a session.
pub trait Spawner: Send + Sync {
    /// Starts a session and waits for its end. Dropping the future stops the session.
    fn spawn(
        &self,
        parent: Parent,
        child: ChildTask,
    ) -> BoxFuture<'static, Result<ChildResult, SpawnError>>;
}
