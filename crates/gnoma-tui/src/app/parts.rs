//! The parts that the state is made of, by what they are about.

use std::{collections::VecDeque, time::Instant};

use gnoma_core::{message::ModelRef, session::Routing};

use super::completion::Completion;
use crate::{
    composer::Draft,
    desk::{Connection, Found},
    history::History,
    prompt::Question,
    wish::Again,
};

/// A turn that runs.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) since: Instant,
    pub(super) doing: String,
    pub(super) is_stopping: bool,
}

/// Whether the person looks at the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Focus {
    /// The terminal does not tell.
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
}

/// Whether this is the last that is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Leaving {
    #[default]
    No,
    /// Another session follows.
    ForAnother,
    ForGood,
}

/// A key that does something when it is pressed again soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    /// Ctrl+C where nothing is written.
    Interrupt,
    /// Ctrl+D while a turn runs.
    Quit,
}

/// The session that is shown.
#[derive(Debug, Default)]
pub(crate) struct SessionLink {
    /// Its id; empty until it has said so.
    pub(crate) id: String,
    /// It waits for input, as far as it has said.
    pub(super) is_at_rest: bool,
    pub(super) is_closed: bool,
    /// The conversation began in another session.
    pub(super) has_past: bool,
}

/// How models were chosen.
#[derive(Debug, Default)]
pub(crate) struct RouteLog {
    /// Why the model in use was chosen.
    pub(crate) why: Option<String>,
    /// How the turn that runs or ran last was routed.
    pub(crate) last: Option<Box<Routing>>,
    /// The only model that is asked, where a person has said so.
    pub(crate) pinned: Option<ModelRef>,
    /// For `/why`, the oldest first.
    pub(crate) decisions: VecDeque<String>,
}

/// What surrounds the text that is being written.
#[derive(Debug, Default)]
pub(super) struct Writing {
    pub(super) history: History,
    pub(super) completion: Completion,
    /// What an editor of the person's own was started with.
    pub(super) edited: Option<Draft>,
    /// The first key of a line was all that was wanted; the rest of it, up to its Enter, means nothing.
    pub(super) ends_line: bool,
}

/// Questions for permission.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// The first is shown.
    pub(super) open: VecDeque<Question>,
    /// The one that was answered last.
    pub(super) answered: Option<Question>,
    /// The person has confirmed once that nothing is to be asked.
    pub(super) bypass_confirmed: bool,
}

/// A program that has no provider yet.
#[derive(Debug, Default)]
pub(super) struct FirstStart {
    /// What a provider could be made of, where there is none; then no session can open.
    pub(super) found: Option<Found>,
    /// A connection to be tried, once it has been shown that it is.
    pub(super) to_try: Option<Connection>,
}

/// The window of the terminal.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) focus: Focus,
    /// The mark in its title.
    pub(super) mark: Option<&'static str>,
    /// What a screen reader was told last.
    pub(super) spoken: String,
}

/// Points in time that something depends on.
#[derive(Debug, Default)]
pub(super) struct Timers {
    pub(super) typed_at: Option<Instant>,
    /// When a question came that no other was before.
    pub(super) asked_at: Option<Instant>,
    pub(super) hint: Option<Hint>,
    pub(super) armed: Option<(Armed, Instant)>,
    pub(super) save_at: Option<Instant>,
}

/// The end of this session's view.
#[derive(Debug, Default)]
pub(super) struct Exit {
    /// What the next session is made of.
    pub(super) next: Option<Again>,
    pub(super) leaving: Leaving,
}
