//! Child sessions that tools start (elfs): their task, status and result.

use tokio::sync::{mpsc, watch};

use crate::{
    message::{CallId, Content},
    protocol::SessionSpec,
    usage::Usage,
};

/// Wishes that may wait for a session that was started.
pub const MAX_CHILD_MESSAGES: usize = 16;

/// The place where a session that a tool starts works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// In the project itself, beside others.
    #[default]
    Shared,
    /// In a copy of the project, whose changes are merged at its end.
    Worktree,
}

/// The task of a session that a tool starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildTask {
    /// The id that it gets; empty where whoever starts it chooses one.
    pub id: String,
    /// The name of the session for people and the model; may be empty.
    pub name: String,
    /// The specification with which the session is opened. An empty folder is the parent's; others lie in the
    /// folders that the parent works in. Environment, umask, profile and the privacy of the session are the
    /// parent's: a value here that differs is an error. Its mode, and all else that it may do, is limited to what
    /// the parent may do at the time.
    pub spec: SessionSpec,
    /// The first message to the session.
    pub content: Vec<Content>,
    /// The most that the session may spend, in micro-dollars, in addition to the limits of its parent.
    pub limit_micro_usd: Option<u64>,
    /// The place where the session works.
    pub isolation: Isolation,
    /// The tools that it gets, by name or by a rule such as `bash(git *)`; `None`: those that its parent
    /// gets at its beginning.
    pub tools: Option<Vec<String>>,
    /// The tools that it may not use, by name or by a glob of names, whatever else it may.
    pub forbidden: Vec<String>,
    /// The definition that it works as, where it works as one.
    pub agent: Option<String>,
    /// True if the session may start sessions itself.
    pub may_spawn: bool,
    /// A part of the name of the model that it would rather have; where none has it, one is chosen for
    /// its task.
    pub preferred_model: Option<String>,
    /// The step of a saved task that it does, such as `release/Look`, for what the router learns; empty if it does none.
    pub step: String,
    /// The text that follows the built-in system prompt.
    pub prompt: String,
    /// The id of a saved session that goes on with what it is told: one that its parent started before.
    pub resume: Option<String>,
    /// The call that had it started, where that is over and another one stands for it.
    pub call: Option<CallId>,
}

/// The progress of a session that a tool started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChildState {
    /// The session is being opened.
    #[default]
    Starting,
    /// The session works on its task.
    Working,
    /// The session waits for a person.
    Asking,
    /// The session's turn is over.
    Ended,
}

/// The status of a session that a tool started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildStatus {
    /// The id of the session; empty until it has one.
    pub session: String,
    /// The progress of the session.
    pub state: ChildState,
    /// The model that was called last, as `provider/model`.
    pub model: Option<String>,
    /// The activity of the session, in a few words.
    pub doing: String,
    /// Model calls so far.
    pub rounds: u32,
    /// The tokens counted so far.
    pub usage: Usage,
    /// Micro-dollars so far, of calls whose price is known; without those of sessions below it.
    pub micro_usd: u64,
    /// Micro-dollars of the sessions below it that have ended, and of those below them.
    pub below_micro_usd: u64,
    /// True if the conversation is saved, so that another session can continue it.
    pub is_saved: bool,
    /// Files that it changed with tools that say so, each once, in the order of their names.
    pub changed: Vec<String>,
    /// The result of the last check, if anything was checked: true if it passed.
    pub passed: Option<bool>,
    /// The reason why a call was denied because nobody could be asked, if one was.
    pub unattended_denial: Option<String>,
}

/// A command to a running session from the code that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildControl {
    /// Tell it something at the next safe boundary.
    Say(String),
    /// Stop it and keep its work.
    Cancel,
}

/// The end of a tie to a running session that whoever runs it holds.
#[derive(Debug)]
pub struct ChildLink {
    /// The sender that reports the status of the session.
    pub status: watch::Sender<ChildStatus>,
    /// The receiver of commands to the session.
    pub control: mpsc::Receiver<ChildControl>,
}

/// The end of the tie that whoever started the session holds.
#[derive(Clone, Debug)]
pub struct ChildHandle {
    /// The receiver of the session's status.
    pub status: watch::Receiver<ChildStatus>,
    /// The sender of commands to the session.
    pub control: mpsc::Sender<ChildControl>,
}

impl ChildLink {
    /// Both ends of a tie.
    #[must_use]
    pub fn new() -> (Self, ChildHandle) {
        let (control, wishes) = mpsc::channel(MAX_CHILD_MESSAGES);
        let (told, status) = watch::channel(ChildStatus::default());
        (Self { status: told, control: wishes }, ChildHandle { status, control })
    }

    /// A tie that nobody holds the other end of.
    #[must_use]
    pub fn without_watcher() -> Self {
        Self::new().0
    }
}

/// The end of a turn in a session that a tool started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// The model finished its answer.
    Completed,
    /// The turn was cancelled.
    Cancelled,
    /// The turn was not finished, for this reason.
    Failed(String),
}

/// The result of merging the changes of a session that worked in a copy of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildMerge {
    /// They are in the project, or there were none.
    pub landed: bool,
    /// A description of the result, in a line.
    pub told: String,
    /// Both sides of what is at odds, and what was not merged; may be empty.
    pub report: String,
}

/// The result of a session that a tool started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildResult {
    /// The id of the session.
    pub session: String,
    /// The end of the session's turn.
    pub end: ChildEnd,
    /// The text of its last answer, also where it was not finished.
    pub text: String,
    /// The last status of the session: model, tokens, costs, files.
    pub last: ChildStatus,
    /// The duration of the session, in milliseconds.
    pub duration_ms: u64,
    /// The result of merging its changes, if the session worked in a copy.
    pub merge: Option<ChildMerge>,
}

/// The reason why a session could not be started or did not run to its end.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// No sessions can be started here.
    #[error("no sessions can be started here")]
    Unavailable,
    /// Sessions would start sessions too deep, or too many at once.
    #[error("{0}")]
    TooMany(String),
    /// The call was stopped, and with it the session that it started.
    #[error("it was stopped")]
    Stopped,
    /// The session failed, for this reason.
    #[error("{0}")]
    Failed(String),
}

crate::debug_as_display!(SpawnError);
