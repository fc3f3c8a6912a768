//! The port of a running tool to its session: questions, progress, child sessions.

use std::{fmt, pin::Pin, sync::Arc};

use super::child::{ChildLink, ChildResult, ChildTask, SpawnError};
use crate::{
    message::CallId,
    session::{Inquiry, NotableChange, NoticeLevel, PermissionAnswer},
};

/// A boxed future, so that ports stay object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A question to a person in the middle of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The text of the question, in one line.
    pub text: String,
    /// The changes that a yes would make, as a unified diff.
    pub preview: Option<String>,
    /// The answer may hold for later calls, too: by the rules that would have let this one run.
    pub may_be_always: bool,
    /// Words are wanted, and a yes is no answer.
    pub inquiry: Option<Inquiry>,
    /// The parts that [`PermissionAnswer::Part`] may choose from; empty if only all or nothing can be approved.
    pub parts: Vec<String>,
    /// Of these what must be seen by name, the most important first.
    pub notable: Vec<NotableChange>,
    /// The parts of the text that say what is lost, what leaves the machine, and what is not what it seems.
    pub dangers: Vec<String>,
    /// With a yes the call runs outside the sandbox. It is not asked of a call that was handed a secret.
    pub leaves_sandbox: bool,
    /// The name of the session that asks, where a session that the call started does. Then it is put
    /// to the person even when the call is over.
    pub from: Option<String>,
}

/// A report of a running call to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEvent {
    /// New output of the call.
    Progress(String),
    /// A note to people that is not output.
    Notice {
        /// The importance of the note.
        level: NoticeLevel,
        /// The text of the note.
        text: String,
    },
}

/// The money that may still be spent, in micro-dollars, at the time when the call began. `None`: no known limit
/// applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The rest for the turn.
    pub turn_micro_usd: Option<u64>,
    /// The rest for the session.
    pub session_micro_usd: Option<u64>,
}

/// A session as its running tools see it.
pub trait ToolSession: Send + Sync {
    /// Asks a person on behalf of a call. Where nobody can answer, or the turn is stopped first, the
    /// answer is [`PermissionAnswer::Deny`].
    fn ask_user(&self, call: CallId, question: Question) -> BoxFuture<'static, PermissionAnswer>;

    /// Tells people something. Never waits; where too much is told at once, some of it is lost.
    fn emit_event(&self, call: CallId, event: ToolEvent);

    /// Tells the model something once it is asked next: in the turn that runs, or with what the person
    /// says next. Nobody is woken for it.
    fn deliver_to_model(&self, news: String) -> BoxFuture<'static, ()>;

    /// Starts a session on behalf of a call, and waits for its end. The future may outlive the call,
    /// but not the session.
    fn spawn_child(
        &self,
        call: CallId,
        child: ChildTask,
        link: ChildLink,
    ) -> BoxFuture<'static, Result<ChildResult, SpawnError>>;
}

impl fmt::Debug for dyn ToolSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolSession")
    }
}

/// The session, turn and call that start another session.
#[derive(Clone, Debug)]
pub struct Parent {
    /// The session's id, as its spending is counted.
    pub session: String,
    /// The turn's id, as its spending is counted.
    pub turn: String,
    /// The id of the call.
    pub call: CallId,
    /// The session as its tools see it: what the other one asks a person is put there.
    pub port: Arc<dyn ToolSession>,
}

/// Starts sessions for the tools of others. A host may give one to a session.
pub trait Spawner: Send + Sync {
    /// An id for a session that is about to be started; empty where none is given before.
    fn new_id(&self) -> String {
        String::new()
    }

    /// Starts a session and waits for its end. Dropping the future stops the session.
    fn spawn_child(
        &self,
        parent: Parent,
        child: ChildTask,
        link: ChildLink,
    ) -> BoxFuture<'static, Result<ChildResult, SpawnError>>;
}

/// Knows the spans of calls, where there is telemetry.
pub trait CallSpans: Send + Sync {
    /// Returns the span of a call of a session, as W3C Trace Context writes it.
    fn traceparent(&self, session: &str, call: &CallId) -> Option<String>;
}
