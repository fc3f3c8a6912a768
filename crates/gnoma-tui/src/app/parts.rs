//! The parts that the state is made of, by what they are about.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use gnoma_core::{
    message::{CallId, Message, ModelRef},
    protocol::{Envelope, FoundProviders, Request, SessionInfo, SessionView},
    session::Routing,
};

use super::completion::Completion;
use crate::{
    composer::Draft, history::History, keymap::Key, own_themes::ThemeSet,
    prompt::PermissionQuestion, status::SpendingParts, text::Line,
};

/// A turn that runs.
#[derive(Clone, Debug)]
pub(super) struct TurnActivity {
    pub(super) since: Instant,
    pub(super) doing: String,
    pub(super) is_stopping: bool,
    /// The wait of the turn, where it takes long.
    pub(super) wait: Option<Wait>,
}

/// A wait of a turn that has an end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// The model is asked again then.
    Again { at: Instant, attempt: u32 },
    /// No part of the answer has arrived; the call is abandoned at `until`.
    Silent { since: Instant, until: Instant },
}

/// The attention of the person: whether they look at the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Focus {
    /// The terminal does not report it.
    #[default]
    Unknown,
    Here,
    Away,
}

/// A hint at the bottom.
#[derive(Clone, Debug)]
pub(super) struct Hint {
    pub(super) text: String,
    pub(super) until: Instant,
    pub(super) about: HintSubject,
}

/// The subject of a hint, which goes when that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HintSubject {
    /// An action that was done.
    Past,
    /// The turn that runs.
    Turn,
    /// A shell line that runs.
    Shell,
    /// The compaction that was asked for.
    Compaction,
}

/// A key that does something when it is pressed again soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArmedKey {
    /// Ctrl+C where nothing is written.
    Interrupt,
    /// Ctrl+D while a turn runs.
    Quit,
}

/// The session that is shown.
#[derive(Debug, Default)]
pub(crate) struct SessionLink {
    /// The session as its events tell it.
    pub(crate) view: SessionView,
    /// The latest information about the session.
    pub(super) info: Option<SessionInfo>,
    /// The messages that have to be read before what continues is shown.
    pub(super) behind: Option<Box<MessageBacklog>>,
    /// `true` if the session lives in a server.
    pub(super) is_served: bool,
    /// The file of this process's debug log.
    pub(super) debug_log: Option<String>,
    /// `true` if the session continues in another way soon, or another one takes its place.
    pub(super) is_switching: bool,
    /// The requests to make once the turn that runs is over, the oldest first.
    pub(super) later: VecDeque<Request>,
    /// The next session continues with the conversation on the screen.
    pub(super) keeps_conversation: bool,
    /// The prompt to write again when a rewind has taken it back.
    pub(super) rewound: Option<String>,
    /// `true` if the session waits for input, as far as it has said.
    pub(super) is_at_rest: bool,
    pub(super) is_closed: bool,
    /// The connection to its server is made again: what is sent now goes once it is there.
    pub(super) is_returning: bool,
    /// The conversation began in another session.
    pub(super) has_past: bool,
    /// `true` if the session has just become the one that is shown, so that what it continues is still to be said.
    pub(super) tells_resumed: bool,
}

/// The record of how models were chosen.
#[derive(Debug, Default)]
pub(crate) struct RouteLog {
    /// The reason why the model in use was chosen.
    pub(crate) why: Option<String>,
    /// The routing of the turn that runs or ran last.
    pub(crate) last: Option<Box<Routing>>,
    /// The only model that is asked, where a person has said so.
    pub(crate) pinned: Option<ModelRef>,
    /// For `/why`, the oldest first.
    pub(crate) decisions: VecDeque<String>,
}

/// The state around the text that is being written.
#[derive(Debug, Default)]
pub(super) struct EditorState {
    pub(super) history: History,
    pub(super) completion: Completion,
    /// The draft with which an editor of the person's own was started.
    pub(super) edited: Option<Draft>,
    /// The first key of a line was all that was wanted; the rest of it, up to its Enter, means nothing.
    pub(super) ends_line: bool,
}

/// The questions for permission in this window.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// The first is shown.
    pub(super) open: VecDeque<PermissionQuestion>,
    /// The one that was answered last.
    pub(super) answered: Option<PermissionQuestion>,
    /// The call whose rule needs a place, while that place is being looked up.
    pub(super) placing: Option<CallId>,
    /// The keys that were pressed during that look-up.
    pub(super) keys: VecDeque<Key>,
    /// The person has confirmed once that nothing is to be asked.
    pub(super) bypass_confirmed: bool,
}

/// A program that has no provider yet.
#[derive(Debug, Default)]
pub(super) struct FirstStart {
    /// The findings of which a provider could be made, if there is none; then no message can be answered.
    pub(super) found: Option<FoundProviders>,
    /// The model that was chosen and whose provider is being set up.
    pub(super) wanted_model: Option<String>,
    /// The model that the session was asked to continue with.
    pub(super) asked_model: Option<String>,
}

/// The window of the terminal.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) focus: Focus,
    /// The mark in its title.
    pub(super) mark: Option<&'static str>,
    /// The last text for a screen reader.
    pub(super) spoken: String,
    /// The list that was read out last, by its title, while it is open.
    pub(super) listed: String,
    /// Lines of a conversation that is over, not handed over yet.
    pub(super) leftover: Vec<Line>,
    /// The themes that there are.
    pub(super) themes: Arc<ThemeSet>,
    pub(super) script: ScriptedStatus,
    pub(super) spending: SpendingStatus,
}

/// The spending in the line at the bottom, and when it was read.
#[derive(Debug, Default)]
pub(super) struct SpendingStatus {
    /// The person wants to see it.
    pub(super) is_on: bool,
    pub(super) is_running: bool,
    /// The time of the last look at the ledger.
    pub(super) read_at: Option<Instant>,
    /// The time of the next look.
    pub(super) next_at: Option<Instant>,
    pub(super) parts: SpendingParts,
}

/// The person's script for the line at the bottom, and what it wrote last.
#[derive(Debug, Default)]
pub(super) struct ScriptedStatus {
    /// There is one.
    pub(super) is_on: bool,
    pub(super) is_running: bool,
    /// True if something has changed since the script ran.
    pub(super) is_stale: bool,
    /// The person was told that it failed.
    pub(super) is_told: bool,
    /// The time before which the script does not run.
    pub(super) next_at: Option<Instant>,
    /// The line that the script wrote; `None` shows the usual line.
    pub(super) line: Option<Line>,
}

/// Points in time that something depends on.
#[derive(Debug, Default)]
pub(super) struct Timers {
    pub(super) typed_at: Option<Instant>,
    /// The time at which a question came that no other was before.
    pub(super) asked_at: Option<Instant>,
    pub(super) hint: Option<Hint>,
    pub(super) armed: Option<(ArmedKey, Instant)>,
    pub(super) save_at: Option<Instant>,
    /// A time, and what it is in milliseconds since 1970.
    pub(super) clock: Option<(Instant, i64)>,
}

/// A look-up whose result a person waits to see.
#[derive(Debug)]
pub(super) struct LookUp {
    pub(super) number: u64,
    pub(super) sought: LookUpTarget,
    pub(super) since: Instant,
    /// The argument of the command.
    pub(super) argument: String,
}

/// The subject of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookUpTarget {
    Changes,
    Conversations,
    Explanation,
    Models,
    Points,
    Profiles,
    Providers,
    /// Providers of which one is to be removed.
    Removable,
    /// Providers that are set up, beside which one can be added.
    Connections,
    Settings,
    Summary,
    Tasks,
    /// A task that was made of the session and is not saved.
    TaskDraft,
    /// Words that can follow in a line that runs a task.
    TaskWords,
    Window,
}

impl LookUpTarget {
    /// Reports whether the result is a list to choose from.
    pub(super) fn is_list(self) -> bool {
        match self {
            Self::Conversations
            | Self::Models
            | Self::Points
            | Self::Profiles
            | Self::Providers
            | Self::Removable
            | Self::Connections
            | Self::Settings
            | Self::Tasks
            | Self::TaskWords => true,
            Self::Changes | Self::Explanation | Self::Summary | Self::TaskDraft | Self::Window => {
                false
            }
        }
    }

    /// Returns the name of the subject, in the plural.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::Conversations => "conversations",
            Self::Explanation => "reasons",
            Self::Summary => "the summary",
            Self::Window => "the context window",
            Self::Models => "models",
            Self::Points => "places to go back to",
            Self::Profiles => "profiles",
            Self::Providers | Self::Removable | Self::Connections => "providers",
            Self::Settings => "settings",
            Self::Tasks => "tasks",
            Self::TaskWords => "arguments",
            Self::TaskDraft => "the task",
        }
    }
}

/// The past that has to be read before what continues is shown.
#[derive(Debug)]
pub(super) struct MessageBacklog {
    /// Number of the first message that is wanted.
    pub(super) from: u64,
    /// The pages that were read, the newest first.
    pub(super) pages: Vec<Vec<Arc<Message>>>,
    pub(super) since: Instant,
    /// The events that arrived during the reading.
    pub(super) later: Vec<Arc<Envelope>>,
    pub(super) then: BacklogFollowUp,
}

/// The step that follows the messages that are read.
#[derive(Debug)]
pub(super) enum BacklogFollowUp {
    /// The current state follows, in a conversation that is shown from its past on. Holds the session as it was
    /// when another life of it broke off in an answer that is shown.
    Begin(Option<Box<SessionView>>),
    /// The events between two views of one life of the session follow.
    Missed(Box<SessionView>),
}

/// The look-ups whose results a person wants to see.
#[derive(Debug, Default)]
pub(super) struct LookUps {
    /// The last of them, until it is there.
    pub(super) open: Option<LookUp>,
    /// The number of look-ups so far.
    pub(super) count: u64,
    /// Keys for the list that is about to open.
    pub(super) typed: Vec<Key>,
}

/// The end of the view.
#[derive(Debug, Default)]
pub(super) struct Exit {
    /// This is the last that is seen.
    pub(super) is_leaving: bool,
    /// `true` if the session continues.
    pub(super) is_detached: bool,
}
