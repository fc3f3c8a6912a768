//! The port to what survives a restart: sessions as trees of entries.
//!
//! Entries are only ever added. Each names the one before it, so branches share their past and a
//! fork costs nothing. Plain data and one object-safe trait: the first backend is a file, the next
//! may be a server. Whoever calls brings the time. The ids of entries are the store's; the id of a
//! session may be chosen by whoever begins it.

mod error;
mod holder;

use std::{fmt, sync::Arc};

pub use error::{StoreError, StoreErrorKind};
pub use holder::Holder;

use serde::{Deserialize, Serialize};

use crate::{
    message::{CallId, Message, ModelRef, ToolResult},
    tool::BoxFuture,
    usage::Usage,
};

/// Names a session, for people too: `YYYYMMDD-HHMMSS-` and six hexadecimal digits, or a UUID if a
/// program drives it. Unique within a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Wraps an id; whether there is such a session is the store's to say.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names an entry within its store. Later entries have greater ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct EntryId(pub i64);

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an entry records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A message of the conversation.
    Message(Arc<Message>),
    /// A model was chosen for a call.
    Routed {
        /// Who was called.
        arm: ModelRef,
        /// Why this one, in one line.
        why: String,
    },
    /// A person was asked whether a call may run; a [`Judged`](Self::Judged) after it is the answer.
    Asked {
        /// The call, or the question of a call that runs.
        call: CallId,
    },
    /// A call was allowed or refused.
    Judged {
        /// The call.
        call: CallId,
        /// It could run.
        allowed: bool,
        /// Which rule, mode or person decided, in one line.
        reason: String,
    },
    /// The result of a call that ended before others of the same answer; a message with all results follows.
    ToolEnded(ToolResult),
    /// Tokens of one model call.
    Used(Usage),
    /// What a model call cost, where its price was known.
    Paid {
        /// Who was called.
        arm: ModelRef,
        /// Micro-dollars.
        micro_usd: u64,
    },
    /// The work of a turn was checked before it was delivered.
    Checked {
        /// Whose work.
        arm: ModelRef,
        /// Who or what checked.
        by: String,
        /// It passed.
        passed: bool,
        /// What was found.
        evidence: String,
    },
    /// A summary of the conversation up to an entry; requests start with it instead.
    Summary {
        /// The words.
        text: String,
        /// The last entry it stands for.
        up_to: EntryId,
    },
    /// The state of the workspace was saved.
    Checkpoint {
        /// Name of the saved state.
        id: String,
    },
    /// The session was given a title.
    Title {
        /// The title.
        text: String,
    },
    /// The program had ended while calls were running; the results before this entry replace
    /// theirs.
    Interrupted {
        /// The calls without a result.
        calls: Vec<CallId>,
    },
    /// The conversation was rewound to the entry that this one follows.
    Rewound {
        /// Where it was before.
        from: EntryId,
    },
    /// An entry is no longer shown, found or sent; a call and its results go together.
    Tombstone {
        /// The hidden entry.
        of: EntryId,
    },
}

impl Record {
    /// Reads a record as it is stored. The reader is compiled here, once, and not in each crate that calls it.
    ///
    /// # Errors
    /// The text is not JSON, or something else.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        crate::json::from_str(text)
    }
}

/// One node of a session's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Its name.
    pub id: EntryId,
    /// The entry before it; `None` at the start.
    pub parent: Option<EntryId>,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: i64,
    /// What it records.
    pub record: Record,
}

/// Where a new entry goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parent {
    /// After the session's latest entry.
    #[default]
    Tip,
    /// Nothing before it: a new beginning.
    Start,
    /// After this entry, which thereby may get a second branch.
    After(EntryId),
}

/// What a stored entry must survive before the store answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The death of the process.
    #[default]
    Process,
    /// The loss of power; costs a flush of the disk.
    Disk,
}

/// A session to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// The id it gets, in the form that [`SessionId`] describes; `None` lets the store choose one.
    pub id: Option<SessionId>,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// Title, if there is one already.
    pub title: Option<String>,
    /// The session that starts it, and its name there, if another session does.
    pub parent: Option<(SessionId, String)>,
}

/// The owner of a session that another one has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChildFacts {
    /// The session that started it.
    pub parent: SessionId,
    /// Its name there; may be empty.
    pub name: String,
    /// It has not ended: it is at work, or its process died first.
    pub is_open: bool,
}

/// An entry to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// The session that writes.
    pub session: SessionId,
    /// Where it goes.
    pub parent: Parent,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: i64,
    /// What it records.
    pub record: Record,
    /// What it must survive.
    pub durability: Durability,
}

/// Which part of a path to read: from `tip` backwards until a limit is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The last entry wanted; `None` is the session's latest.
    pub tip: Option<EntryId>,
    /// Most entries to read.
    pub max_entries: usize,
    /// Most bytes to read, as stored; at least one entry comes whatever its size.
    pub max_bytes: usize,
}

/// A slice of the path from the start to a tip. Hidden entries are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The entries, oldest first.
    pub entries: Vec<Entry>,
    /// The tip of the slice before this one; `None` when the start was reached.
    pub earlier: Option<EntryId>,
}

/// What is known of a session without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionFacts {
    /// Its id.
    pub id: SessionId,
    /// The folder it is about.
    pub project: String,
    /// Its title, or else the beginning of its first message.
    pub title: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was last added to, in milliseconds since 1970.
    pub changed_ms: i64,
    /// Messages it has added.
    pub messages: u64,
    /// Size of what it has added, in bytes.
    pub bytes: u64,
    /// Tokens it has used.
    pub usage: Usage,
    /// Where it branched off another session, if it did.
    pub forked_from: Option<(SessionId, EntryId)>,
    /// Who writes it now.
    pub held_by: Option<Holder>,
    /// Its owner, if another session has started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildFacts>,
}

/// What opening a session for writing found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldReport {
    /// Calls that had no result and got one that says they were interrupted: they may have run.
    pub interrupted: Vec<CallId>,
    /// Calls that waited for a person's approval and got a result that says they did not run.
    pub unapproved: Vec<CallId>,
    /// The dead process that had not released it.
    pub left_by: Option<Holder>,
    /// Sessions that this one had started, and whose process died before they had ended. The conversation
    /// says so.
    pub cut_off: Vec<SessionFacts>,
}

/// One match of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hit {
    /// The session that wrote it.
    pub session: SessionId,
    /// That session's title.
    pub title: String,
    /// The entry.
    pub entry: EntryId,
    /// When it was made, in milliseconds since 1970.
    pub at_ms: i64,
    /// The words around the match, on one line.
    pub snippet: String,
}

/// What a port to stored things answers with: a future of the value, or of a [`StoreError`].
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A place where sessions are stored. Answers come once the work is as durable as requested.
///
/// Every method fails with a [`StoreError`] whose kind says why: [`StoreErrorKind::NotFound`] if
/// the session or entry does not exist, [`StoreErrorKind::Held`] if another process writes the
/// session,
/// and the kinds of a disk's failures. A method that fails has changed nothing.
pub trait SessionStore: Send + Sync {
    /// Begins a session and answers with its id: the one in `new`, or one that the store chooses.
    /// Fails with [`StoreErrorKind::Exists`] when the store has a session of this id, and with
    /// [`StoreErrorKind::InvalidId`] when the id is not of the form that [`SessionId`] describes.
    fn begin(&self, new: NewSession) -> StoreFuture<'_, SessionId>;

    /// Adds an entry; it becomes the session's tip. Refused while another process holds the
    /// session.
    fn append(&self, new: NewEntry) -> StoreFuture<'_, EntryId>;

    /// Adds entries of one session at once: the first where it says, each other one after the one before it.
    /// A store may take only the first ones; answers with the ids of those that it took, at least one of them.
    fn append_all(&self, new: Vec<NewEntry>) -> StoreFuture<'_, Vec<EntryId>> {
        Box::pin(async move {
            match new.into_iter().next() {
                Some(new) => Ok(vec![self.append(new).await?]),
                None => Ok(Vec::new()),
            }
        })
    }

    /// Reads the end of the path from the start to a tip, up to the limits of `page`. The pages before
    /// it are read by asking for [`Page::earlier`] as the tip.
    fn load(&self, session: SessionId, page: PageRequest) -> StoreFuture<'_, Page>;

    /// What is known of one session without reading it.
    fn session_facts(&self, session: SessionId) -> StoreFuture<'_, SessionFacts>;

    /// What is known of at most `max` sessions that people opened, the latest changed first.
    fn list(&self, max: usize) -> StoreFuture<'_, Vec<SessionFacts>>;

    /// What is known of the sessions that one has started, in the order it did.
    fn children(&self, _session: SessionId) -> StoreFuture<'_, Vec<SessionFacts>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// At most `max` places where all words of `query` occur, the latest first. If the last word
    /// occurs nowhere as a whole and is not too short, it counts as a prefix; there is no syntax.
    fn search(&self, query: String, max: usize) -> StoreFuture<'_, Vec<Hit>>;

    /// Begins a session that shares the past of `session` up to and with the entry `at`. `at_ms` is the
    /// time of the fork in milliseconds since 1970.
    fn fork(&self, session: SessionId, at: EntryId, at_ms: i64) -> StoreFuture<'_, SessionId>;

    /// Gives a session a title, which replaces an earlier one.
    fn rename(&self, session: SessionId, title: String, at_ms: i64) -> StoreFuture<'_, ()>;

    /// Deletes a session and those below it. What forks share of its past stays. Refused while a
    /// process writes one of them.
    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()>;

    /// Opens a session for writing, and closes calls that a dead process left open: one that waited
    /// for approval is refused, any other may have run. The conversation mentions, once, the
    /// sessions that it had started and that died with that process.
    fn hold_session(&self, session: SessionId, at_ms: i64) -> StoreFuture<'_, HoldReport>;

    /// Ends what [`hold_session`](Self::hold_session) began: others may write the session again. One that another session
    /// had started has ended with that.
    fn release_session(&self, session: SessionId) -> StoreFuture<'_, ()>;
}

/// Names a large tool result within its session, short enough for a model to repeat: `r1`, `r2`, …
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ResultId(Arc<str>);

impl ResultId {
    /// Wraps a handle; whether there is such a result is the result store's to say.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The handle's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part of a stored result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultSlice {
    /// Whole lines, or part of one line longer than what was asked for.
    pub text: String,
    /// Where the next slice begins, in bytes; `None` at the end.
    pub next: Option<u64>,
    /// Size of the whole result in bytes.
    pub total_bytes: u64,
}

/// Where a session stores tool results that are too large to be sent with every request. They are
/// deleted with the session; nothing outside it can be named. Callers remove secrets from a text
/// before they store it: positions count in the text as it was given.
pub trait ResultStore: Send + Sync {
    /// Stores a result and returns the id by which it is read back.
    ///
    /// # Errors
    /// When the store is full or cannot be written.
    fn save_result(&self, text: String) -> StoreFuture<'_, ResultId>;

    /// Reads a stored result from byte `from`, at most `max_bytes` of it.
    ///
    /// # Errors
    /// [`StoreErrorKind::NotFound`] if the session has no such result, and failures of the disk.
    fn read_slice(&self, id: ResultId, from: u64, max_bytes: usize)
    -> StoreFuture<'_, ResultSlice>;
}

/// Saves the files of a workspace, so that what a turn does to them can be undone. Callers remove
/// secrets from a label before they pass it.
pub trait Checkpoints: Send + Sync {
    /// Begins to read the workspace in the background, so that the first [`save_checkpoint`](Self::save_checkpoint) need
    /// not. Returns at once; a second call does nothing.
    fn preload_workspace(&self);

    /// Saves the files as they are now and returns the state's name. A state that equals the one
    /// saved before may get that one's name.
    ///
    /// # Errors
    /// When the workspace cannot be read or the store cannot be written.
    fn save_checkpoint(&self, label: String) -> StoreFuture<'_, String>;
}
