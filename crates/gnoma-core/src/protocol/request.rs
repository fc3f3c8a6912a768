//! Requests of a client to the host, and the one reply to each.

use std::{path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    Connection, HistoryNote, MemoryRequest, Position, SessionSpec, Status, TaskReport, TaskRequest,
    Topic, WindowUse,
};
use crate::{
    info::Choice,
    message::{CallId, Content, Message, ModelRef},
    session::{PermissionAnswer, PermissionMode, Scope},
    store::{Hit, ResultId, SessionFacts, SessionId},
    thinking::ThinkingMode,
    usage::Usage,
};

/// Identifies a request among those of its client. A request repeated under the same id has no
/// second effect: it gets its first reply again, or, if it only reads, reads again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// A client's message to a host: a request, and the session that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientMessage {
    /// Names the request; unused by this client before.
    pub id: RequestId,
    /// The session; `None` for requests to the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What is asked.
    pub request: Request,
}

impl ClientMessage {
    /// Reads a message. The reader is compiled here, once, and not in each crate that calls it.
    ///
    /// # Errors
    /// The text is not JSON, or something else.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        crate::json::from_str(text)
    }
}

/// What can be asked of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Open a session. To the process. Reply: [`Reply::Opened`].
    Open(Box<SessionSpec>),
    /// List the sessions of the process. To the process. Reply: [`Reply::Live`].
    List,
    /// List the stored sessions of the project that the spec's folder belongs to, the newest first. To the
    /// process. Reply: [`Reply::Stored`].
    StoredIn {
        /// What one of them would be opened with.
        spec: Box<SessionSpec>,
        /// Most sessions to list.
        max: usize,
    },
    /// Delete a stored session of the project that the spec's folder belongs to. One that is open in the
    /// process is closed first. To the process.
    Delete {
        /// What it would be opened with.
        spec: Box<SessionSpec>,
        /// Its whole id.
        id: SessionId,
    },
    /// Tell this client what happens to any session of the process. To the process.
    Watch,
    /// End the process once everything is stored. To the process.
    Shutdown,
    /// Receive what happens in the session, after that position or from a snapshot on.
    Attach {
        /// The last event that the client knows; `None` at first.
        from: Option<Position>,
    },
    /// Leave the session and receive no more. The last client to leave ends it, unless it is set to
    /// continue. A broken connection does not count as leaving.
    Detach,
    /// Set what happens to the session when its last subscriber has left.
    KeepRunning {
        /// It continues; otherwise it ends.
        keep: bool,
    },
    /// How the session is. Reply: [`Reply::Status`].
    Status,
    /// Wait until no turn runs and none is about to, or until the session asks a person, but no longer than two
    /// minutes. Reply: [`Reply::Status`], which says which of them it is.
    Wait {
        /// The longest wait in seconds; two minutes if it is absent or longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_seconds: Option<u32>,
    },
    /// Say something. While a turn runs it is delivered at the next safe boundary.
    Send {
        /// Text and images; not empty.
        content: Vec<Content>,
    },
    /// Replace the messages that were sent and not delivered yet. If some were delivered or added
    /// meanwhile, nothing changes, and a notice and the current queue are sent.
    EditQueue {
        /// The messages as the event `Queued` last reported them.
        was: Vec<Vec<Content>>,
        /// The messages, the next first; empty to remove all.
        queue: Vec<Vec<Content>>,
    },
    /// Answer a question. The second answer to a question is an error.
    Answer {
        /// The call that was asked about.
        call: CallId,
        /// The answer.
        answer: PermissionAnswer,
    },
    /// Stop the running turn and keep its work, and all elfs of the session.
    Cancel,
    /// Stop one elf of the session, or one below it, and keep its work. Reply: [`Reply::Text`].
    CancelElf {
        /// Its name.
        name: String,
    },
    /// Which session an elf of the session is, or one beside or below it; with an empty name: the session that
    /// the person opened. Reply: [`Reply::Opened`] with its id, to attach to.
    WatchElf {
        /// Its name.
        name: String,
    },
    /// End the session; a running turn is cancelled first.
    Close,
    /// Change the permission mode.
    SetMode {
        /// The new mode.
        mode: PermissionMode,
    },
    /// Change how much models think, from the next call on; `None` leaves it to the settings of each.
    SetThinking {
        /// How much.
        thinking: Option<ThinkingMode>,
    },
    /// Save a rule that allows. Reply: [`Reply::Text`] says where.
    KeepRule {
        /// The rule, such as `bash(cargo test *)`.
        rule: String,
        /// How long and where it applies.
        scope: Scope,
        /// Only say where it would be saved, and whether it can be.
        dry_run: bool,
    },
    /// Trust the project's settings.
    Trust,
    /// Use only this arm from the next turn on; `None` lets the router choose.
    Pin {
        /// The arm.
        arm: Option<ModelRef>,
    },
    /// Say whether the last turn's work was right.
    Rate {
        /// The work was right.
        good: bool,
    },
    /// Replace the conversation so far with a summary. Only between turns.
    Compact {
        /// What the summary should focus on; may be empty.
        focus: String,
    },
    /// Replace the summary with another text. Only between turns.
    EditSummary {
        /// The words.
        summary: String,
    },
    /// Undo the last compaction. Only between turns.
    UndoCompaction,
    /// Rewind the last turns. Only between turns. Reply: [`Reply::Text`].
    Rewind {
        /// How many turns.
        turns: usize,
        /// Rewind the files.
        files: bool,
        /// Rewind the conversation.
        conversation: bool,
    },
    /// Rewind only what an elf changed in its copy of the project. Only between turns. Reply:
    /// [`Reply::Text`].
    RewindElf {
        /// The elf.
        name: String,
    },
    /// Undo the last rewind. Only between turns. Reply: [`Reply::Text`].
    Redo,
    /// The points that the session can be rewound to. Reply: [`Reply::Points`].
    Points,
    /// What the last turn that changed files changed. Reply: [`Reply::Text`], a unified diff.
    Changes,
    /// What changed in files since the session's first turn that changed some. Reply: [`Reply::Text`], a unified diff.
    SessionChanges,
    /// What differs in files from the last commit. Reply: [`Reply::Text`], a unified diff.
    CommitChanges,
    /// Revert one file, or one hunk of it, to what it was then. What is there is saved first: [`Self::Redo`] restores
    /// it. Only between turns. Reply: [`Reply::Text`].
    RevertFile {
        /// The changes that it belongs to.
        since: ChangesSince,
        /// The file as its diff names it, below the project's folder.
        path: String,
        /// The hunk as the diff has it, from its `@@` on; `None` for the whole file. Nothing is reverted if the file does
        /// not contain it any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hunk: Option<String>,
    },
    /// The names of the project's files, at most so many. Reply: [`Reply::Text`], a path a line.
    Files {
        /// The most paths.
        max: usize,
    },
    /// Write the conversation to a file. Reply: [`Reply::Text`] says where.
    Export {
        /// The file; its extension chooses the format (`md`, `html`, `jsonl`). Empty leaves the
        /// choice open.
        path: PathBuf,
    },
    /// Open a copy of the session. Reply: [`Reply::Opened`].
    Fork,
    /// Give the session a title.
    Rename {
        /// The title.
        title: String,
    },
    /// Search everything that is stored for the project. Reply: [`Reply::Hits`].
    Search {
        /// The words; all of them must occur.
        words: String,
        /// Most places to find.
        max: usize,
    },
    /// List the stored sessions of the project, the newest first. Reply: [`Reply::Stored`].
    Stored {
        /// Most sessions to list.
        max: usize,
    },
    /// Messages of the conversation. Reply: [`Reply::History`].
    History {
        /// Number of the first message that is no longer wanted; `None` for the end.
        before: Option<u64>,
        /// Most messages.
        max: u32,
    },
    /// A part of a large tool result that was stored. Reply: [`Reply::Output`].
    Output {
        /// The result.
        result: ResultId,
        /// Where the part begins, in bytes.
        from: u64,
        /// Most bytes.
        max_bytes: u32,
    },
    /// The models to choose from. Reply: [`Reply::Choices`].
    Models {
        /// Also ask the providers for theirs, which takes a moment.
        ask: bool,
    },
    /// Providers that are configured. Reply: [`Reply::Choices`].
    Providers,
    /// Profiles of the settings. Reply: [`Reply::Choices`].
    Profiles,
    /// Continue with another model, provider or profile, or in incognito. Only between turns; a new
    /// epoch begins.
    Switch(Switch),
    /// Try a connection to a provider. Reply: [`Reply::Text`].
    TryProvider(Connection),
    /// Store a connection, its key included. Reply: [`Reply::Text`] says where.
    AddProvider(Connection),
    /// Remove a provider from the person's own settings. Reply: [`Reply::Text`] says what was removed.
    RemoveProvider {
        /// Its name.
        provider: String,
    },
    /// All settings. Reply: [`Reply::Settings`].
    Settings,
    /// Store a setting. Reply: [`Reply::Text`] says where.
    SetSetting {
        /// Its name.
        key: String,
        /// Its value, as TOML or as plain text.
        value: String,
    },
    /// Tokens and money of the session. Reply: [`Reply::Usage`].
    Usage,
    /// Lines about something that only the host knows. Reply: [`Reply::Text`], or [`Reply::Window`] for
    /// [`Topic::Context`].
    Explain(Topic),
    /// List, show, run and save tasks. The replies are at each [`TaskRequest`].
    Task(TaskRequest),
    /// Show and change what is remembered for later sessions. Reply: [`Reply::Text`].
    Memory(MemoryRequest),
}

impl Request {
    /// Whether it changes nothing, so that asking again does no harm.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(
            self,
            Self::List
                | Self::StoredIn { .. }
                | Self::Watch
                | Self::Attach { .. }
                | Self::Detach
                | Self::Status
                | Self::Wait { .. }
                | Self::Points
                | Self::Changes
                | Self::SessionChanges
                | Self::CommitChanges
                | Self::Files { .. }
                | Self::Search { .. }
                | Self::Stored { .. }
                | Self::History { .. }
                | Self::Output { .. }
                | Self::Models { .. }
                | Self::Providers
                | Self::Profiles
                | Self::Settings
                | Self::Usage
                | Self::Explain(_)
                | Self::Task(
                    TaskRequest::List
                        | TaskRequest::Schedules
                        | TaskRequest::Complete { .. }
                        | TaskRequest::Show { .. }
                        | TaskRequest::History { .. }
                )
                | Self::Memory(MemoryRequest::Show)
        )
    }
}

/// The earlier state that files are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangesSince {
    /// Before the last turn that changed files.
    Turn,
    /// Before the session's first change.
    Start,
    /// The last commit.
    Commit,
}

/// What a session continues with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// Another model, after its provider and a slash if the provider changes.
    Model(String),
    /// Another provider.
    Provider(String),
    /// The settings of another profile, in a new conversation.
    Profile(String),
    /// Whether nothing is saved from here on.
    Incognito(bool),
    /// One more folder to work in, from the session's folder on.
    Folder(PathBuf),
    /// A new conversation.
    New,
    /// A stored conversation; without an id the newest.
    Stored(Option<String>),
    /// A copy of a stored conversation, such as of one that is open elsewhere; without an id of the
    /// newest.
    Copy(Option<String>),
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It is done, or on its way; what follows comes as events.
    Done,
    /// A session was opened.
    Opened {
        /// Its id.
        session: SessionId,
    },
    /// The sessions of the process.
    Live(Vec<LiveSession>),
    /// How the session is.
    Status(Box<Status>),
    /// Words for people: a place, a diff, an explanation.
    Text(String),
    /// Points that the session can be rewound to, the newest first.
    Points(Vec<RewindPoint>),
    /// Matches of a search.
    Hits(Vec<Hit>),
    /// Stored sessions.
    Stored(Vec<SessionFacts>),
    /// A part of the conversation.
    History {
        /// Number of the first of the messages, from 0.
        first: u64,
        /// The messages, oldest first.
        messages: Vec<Arc<Message>>,
        /// What is known of them beside their words, as long as there is room for it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<HistoryNote>,
    },
    /// A part of a stored tool result.
    Output {
        /// The text.
        text: String,
        /// Where the next part begins, in bytes; `None` at the end.
        next: Option<u64>,
        /// Size of the whole in bytes.
        total_bytes: u64,
    },
    /// Things to choose from by name.
    Choices(Vec<Choice>),
    /// All settings.
    Settings(Vec<Setting>),
    /// What fills the context window.
    Window {
        /// Its parts.
        used: WindowUse,
        /// Where the instructions come from, a line each.
        sources: String,
    },
    /// What the session used.
    Usage {
        /// Tokens of all calls.
        usage: Usage,
        /// Micro-dollars of all calls whose price is known.
        micro_usd: u64,
        /// The price of some calls is not known, so that they cost more.
        #[serde(default)]
        is_cost_partial: bool,
    },
    /// A run of a task has ended.
    Task(Box<TaskReport>),
}

/// A session of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveSession {
    /// How it is.
    pub status: Status,
    /// The session that started this one, if it is a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// Its working folder.
    pub folder: PathBuf,
    /// Its title or its first words.
    pub title: String,
    /// Clients that are attached.
    pub subscribers: usize,
    /// Commands that it runs in the background.
    #[serde(default)]
    pub jobs: usize,
    /// When something last happened, in milliseconds since 1970.
    pub changed_ms: i64,
}

/// A point that the conversation can be rewound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RewindPoint {
    /// How many turns are rewound.
    pub turns: usize,
    /// The prompt that begins the first of them.
    pub prompt: String,
    /// When that was, in milliseconds since 1970.
    pub at_ms: i64,
    /// How many files have changed since; `None` if that is not known.
    pub files: Option<usize>,
}

/// A setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Where the value comes from.
    pub origin: String,
    /// The values that it can have, if there are few.
    pub choices: Vec<String>,
}
