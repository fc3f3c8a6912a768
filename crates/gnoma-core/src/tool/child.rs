//! Sessions that tools start: what they are to do, how they are, and what came of them.

use tokio::sync::{mpsc, watch};

use crate::{
    message::{CallId, Content},
    protocol::SessionSpec,
    usage::Usage,
};

/// Wishes that may wait for a session that was started.
pub const MAX_CHILD_MESSAGES: usize = 16;

/// Where a session that a tool starts works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// In the project itself, beside others.
    #[default]
    Shared,
    /// In a copy of the project, whose changes are merged at its end.
    Worktree,
}

/// What a session that a tool starts is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildTask {
    /// The id that it gets; empty where whoever starts it chooses one.
    pub id: String,
    /// What people and the model call it; may be empty.
    pub name: String,
    /// What it is opened with. An empty folder is the parent's; others lie in the folders that the
    /// parent works in. Environment, umask, profile, and whether anything is kept are the parent's: what
    /// is set here and differs is an error. Its mode, and all else that it may do, is held to what the
    /// parent may at the time.
    pub spec: SessionSpec,
    /// What it is told first.
    pub content: Vec<Content>,
    /// What it may spend at most, in micro-dollars, beside all that its parent may.
    pub limit_micro_usd: Option<u64>,
    /// Where it works.
    pub isolation: Isolation,
    /// The tools that it gets, by name or by a rule such as `bash(git *)`; `None`: those that its parent
    /// gets at its beginning.
    pub tools: Option<Vec<String>>,
    /// The tools that it may not use, by name or by a glob of names, whatever else it may.
    pub forbidden: Vec<String>,
    /// The definition that it works as, where it works as one.
    pub agent: Option<String>,
    /// It may start sessions itself.
    pub may_spawn: bool,
    /// A part of the name of the model that it would rather have; where none has it, one is chosen for
    /// its task.
    pub preferred_model: Option<String>,
    /// What stands behind the built-in system prompt.
    pub prompt: String,
    /// The id of a saved session that goes on with what it is told: one that its parent started before.
    pub resume: Option<String>,
    /// The call that had it started, where that is over and another one stands for it.
    pub call: Option<CallId>,
}

/// Where a session that a tool started stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChildState {
    /// It is being opened.
    #[default]
    Starting,
    /// It works.
    Working,
    /// It waits for a person.
    Asking,
    /// Its turn is over.
    Ended,
}

/// How a session that a tool started is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildStatus {
    /// Its id; empty until it has one.
    pub session: String,
    /// Where it stands.
    pub state: ChildState,
    /// Who was called last, as `provider/model`.
    pub model: Option<String>,
    /// What it does, in a few words.
    pub doing: String,
    /// Model calls so far.
    pub rounds: u32,
    /// Tokens so far.
    pub usage: Usage,
    /// Micro-dollars so far, of calls whose price is known; without those of sessions below it.
    pub micro_usd: u64,
    /// Micro-dollars of the sessions below it that have ended, and of those below them.
    pub below_micro_usd: u64,
    /// What was said in it is saved, so that another one can go on with it.
    pub is_saved: bool,
    /// Files that it changed with tools that say so, each once, in the order of their names.
    pub changed: Vec<String>,
    /// Whether what was checked last held, where anything was.
    pub passed: Option<bool>,
}

/// What whoever started a session wants of it while it runs.
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
    /// Where it is told how the session is.
    pub status: watch::Sender<ChildStatus>,
    /// What is wanted of it.
    pub control: mpsc::Receiver<ChildControl>,
}

/// The end of the tie that whoever started the session holds.
#[derive(Clone, Debug)]
pub struct ChildHandle {
    /// How it is.
    pub status: watch::Receiver<ChildStatus>,
    /// Where it is told what is wanted.
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
    pub fn unwatched() -> Self {
        Self::new().0
    }
}

/// How the turn of a session that a tool started ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// Its model finished.
    Completed,
    /// Somebody cancelled it.
    Cancelled,
    /// It was not finished: why.
    Failed(String),
}

/// What became of the changes of a session that worked in a copy of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildMerge {
    /// They are in the project, or there were none.
    pub landed: bool,
    /// What happened, in a line.
    pub told: String,
    /// Both sides of what is at odds, and what was not merged; may be empty.
    pub report: String,
}

/// What came of a session that a tool started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildResult {
    /// Its id.
    pub session: String,
    /// How it ended.
    pub end: ChildEnd,
    /// The text of its last answer, also where it was not finished.
    pub text: String,
    /// How it was at its end: model, tokens, costs, files.
    pub last: ChildStatus,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What became of its changes, where it worked in a copy.
    pub merge: Option<ChildMerge>,
}

/// Why a session could not be started or was not there to its end.
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
