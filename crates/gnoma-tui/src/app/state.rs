//! Everything that the view knows, and what its parts do with it in common.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Message,
    message::ModelRef,
    session::{NoticeLevel, Routing},
};

use super::{completion::Completion, layer::Layer, queue::Queue};
use crate::{
    composer::{Composer, Draft},
    desk::{Connection, Desk, Found},
    frame::Size,
    history::History,
    keymap::Keymap,
    prompt::Question,
    status::{Counts, Facts},
    text::{Line, Style},
    transcript::{self, Transcript},
    wish::{Again, Wish},
};

/// How long a hint stays.
const HINT: Duration = Duration::from_secs(4);
/// How long a second key is waited for that confirms the first.
const CONFIRM: Duration = Duration::from_secs(2);
/// How long after the last change what is written is kept in a file.
const SAVE_AFTER: Duration = Duration::from_millis(300);
/// How often what is running is drawn anew.
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// Decisions that are remembered for `/why`.
const MAX_DECISIONS: usize = 60;

/// What a face begins with.
#[derive(Debug)]
pub struct Options {
    /// The time.
    pub now: Instant,
    /// What is known about the session.
    pub facts: Facts,
    /// Which key does what.
    pub keymap: Keymap,
    /// Prompts that were sent before.
    pub history: History,
    /// The name of the theme in use.
    pub theme: String,
    /// The editor has vim's keys.
    pub vim: bool,
    /// For screen readers and terminals that cannot redraw: what matters comes as finished lines, and
    /// keys come by the line, which the terminal itself shows.
    pub accessible: bool,
    /// What was written and not sent when the program ended last: as it was saved.
    pub drafts: Vec<Draft>,
    /// No provider is configured; this is what one could be made of.
    pub found: Option<Found>,
}

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

/// Everything that the face knows. It outlives a session: see [`State::renew`].
pub struct State {
    pub(crate) facts: Facts,
    pub(crate) counts: Counts,
    pub(crate) desk: Box<dyn Desk>,
    pub(crate) keymap: Keymap,
    pub(crate) theme: String,
    pub(crate) session: String,
    pub(crate) why: Option<String>,
    /// How the turn that runs or ran last was routed.
    pub(crate) routing: Option<Box<Routing>>,
    /// The only model that is asked, where a person has said so.
    pub(crate) pinned: Option<ModelRef>,
    pub(crate) decisions: VecDeque<String>,
    pub(crate) size: Size,
    pub(crate) transcript: Transcript,
    pub(crate) composer: Composer,
    pub(super) accessible: bool,
    /// The first key of a line was all that was wanted; the rest of it, up to its Enter, means nothing.
    pub(super) ends_line: bool,
    pub(super) history: History,
    pub(super) completion: Completion,
    pub(super) layer: Option<Layer>,
    pub(super) asks: VecDeque<Question>,
    /// The question that was answered last.
    pub(super) answered: Option<Question>,
    pub(super) queue: Queue,
    pub(super) running: Option<Running>,
    /// The session waits for input, as far as it has said.
    pub(super) is_at_rest: bool,
    pub(super) is_closed: bool,
    /// What a provider could be made of, where there is none; then no session can open.
    pub(super) found: Option<Found>,
    /// The names of the calls of this turn.
    pub(super) calls: HashMap<CallId, String>,
    /// Lines that run in a shell, and since when.
    pub(super) shells: VecDeque<(String, Instant)>,
    pub(super) bypass_confirmed: bool,
    pub(super) focus: Focus,
    pub(super) now: Instant,
    pub(super) typed_at: Option<Instant>,
    /// When a question came that no other was before.
    pub(super) asked_at: Option<Instant>,
    pub(super) hint: Option<Hint>,
    pub(super) armed: Option<(Armed, Instant)>,
    pub(super) save_at: Option<Instant>,
    /// The conversation began in another session.
    pub(super) has_past: bool,
    /// A connection to be tried, once it has been shown that it is.
    pub(super) to_try: Option<Connection>,
    pub(super) edited: Option<Draft>,
    /// The mark in the title of the window.
    pub(super) marked: Option<&'static str>,
    pub(super) again: Option<Again>,
    pub(super) leaving: Leaving,
    pub(super) spoken: String,
    pub(super) wishes: Vec<Wish>,
}

impl State {
    /// A face for a session that has not said anything yet.
    #[must_use]
    pub fn new(options: Options, desk: Box<dyn Desk>) -> Self {
        let Options { now, facts, keymap, history, theme, vim, accessible, drafts, found } =
            options;
        let mut composer = Composer::default();
        composer.set_vim(vim);
        let mut drafts = drafts.into_iter();
        if !accessible {
            composer.restore(drafts.next().unwrap_or_default());
        }
        let mut state = Self {
            counts: Counts::from_here(&facts),
            facts,
            desk,
            keymap,
            theme,
            session: String::new(),
            why: None,
            routing: None,
            pinned: None,
            decisions: VecDeque::new(),
            size: Size::default(),
            transcript: new_transcript(accessible),
            composer,
            accessible,
            ends_line: false,
            history,
            completion: Completion::default(),
            layer: found.as_ref().map(|found| Layer::setup(found, accessible)),
            asks: VecDeque::new(),
            answered: None,
            queue: Queue::of(drafts),
            running: None,
            is_at_rest: true,
            is_closed: false,
            found,
            calls: HashMap::new(),
            shells: VecDeque::new(),
            bypass_confirmed: false,
            focus: Focus::default(),
            now,
            typed_at: None,
            asked_at: None,
            hint: None,
            armed: None,
            save_at: None,
            has_past: false,
            to_try: None,
            edited: None,
            marked: None,
            again: None,
            leaving: Leaving::No,
            spoken: String::new(),
            wishes: Vec::new(),
        };
        state.tell_waiting();
        state
    }

    /// Goes on with another session. What is written, queued and set is kept, the history too; the
    /// conversation is not, unless the session goes on with it.
    pub fn renew(&mut self, facts: Facts, found: Option<&Found>, same_conversation: bool) {
        self.forget_turn();
        self.facts = facts;
        self.session.clear();
        self.pinned = None;
        self.layer = found.map(|found| Layer::setup(found, self.accessible));
        self.is_at_rest = true;
        self.is_closed = false;
        self.found = found.cloned();
        self.leaving = Leaving::No;
        self.marked = None;
        self.hint = None;
        if !same_conversation {
            self.transcript = new_transcript(self.accessible);
            self.counts = Counts::from_here(&self.facts);
            self.has_past = false;
            self.decisions.clear();
            self.why = None;
            self.routing = None;
        }
    }

    /// Shows messages of a stored conversation.
    pub fn past<'a>(&mut self, messages: impl IntoIterator<Item = &'a Message>) {
        for message in messages {
            self.has_past = true;
            self.transcript.past(message);
        }
    }

    /// Says something of the program's own in the conversation.
    pub fn note(&mut self, text: &str) {
        self.transcript.notice(NoticeLevel::Info, text);
    }

    /// Says in the conversation that something is not as it should be.
    pub fn warn(&mut self, text: &str) {
        self.transcript.notice(NoticeLevel::Warning, text);
    }

    /// What the next session is made of, where the loop was left for one.
    pub fn take_again(&mut self) -> Option<Again> {
        self.leaving = Leaving::No;
        self.again.take()
    }

    /// Everything that is written and not sent: first what is in the editor.
    #[must_use]
    pub fn drafts(&self) -> Vec<Draft> {
        let mut drafts = vec![self.composer.draft()];
        drafts.extend(self.queue.drafts().cloned());
        drafts.extend(self.history.left().cloned());
        drafts.extend(self.layer.as_ref().and_then(Layer::reason));
        drafts
    }

    pub(crate) fn wish(&mut self, wish: Wish) {
        self.wishes.push(wish);
    }

    pub(crate) fn say(&mut self, lines: Vec<Line>) {
        self.transcript.lines(lines);
    }

    /// Tells what became of something.
    pub(crate) fn report(&mut self, outcome: Result<String, String>) {
        match outcome {
            Ok(text) => self.note(&text),
            Err(text) => self.warn(&text),
        }
    }

    /// Shows a text of several lines.
    pub(crate) fn tell(&mut self, outcome: Result<String, String>) {
        match outcome {
            Ok(text) => {
                let line = |line: &str| Line::new(format!("  {line}"), Style::default());
                self.say(text.lines().map(line).collect());
            }
            Err(why) => self.warn(&why),
        }
    }

    pub(crate) fn hint(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.accessible {
            return self.note(&text);
        }
        self.hint = Some(Hint { text, until: self.now + HINT });
    }

    /// Ends this session for one that is made of something else.
    pub(crate) fn again(&mut self, again: Again) {
        if self.running.is_some() {
            return self.hint("a turn is running; Esc stops it first");
        }
        self.again = Some(again);
        self.quit();
    }

    pub(crate) fn quit(&mut self) {
        self.leaving = match &self.again {
            Some(_) => Leaving::ForAnother,
            None => Leaving::ForGood,
        };
        self.save_at = None;
        self.wish(Wish::Save(self.drafts()));
        self.wish(Wish::Quit);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Whether a key is the second of two, and remembers it as the first otherwise.
    pub(super) fn confirms(&mut self, armed: Armed) -> bool {
        let now = self.now;
        let is_second =
            matches!(self.armed, Some((first, until)) if first == armed && now <= until);
        self.armed = (!is_second).then(|| (armed, now + CONFIRM));
        is_second
    }

    /// Something that was typed has changed. What is gone from the editor is gone from the file at
    /// once: nothing older may come back in its place.
    pub(super) fn touched(&mut self) {
        let wait = if self.composer.is_empty() { Duration::ZERO } else { SAVE_AFTER };
        let at = self.now + wait;
        self.save_at = Some(self.save_at.map_or(at, |before| before.min(at)));
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.transcript.tick(self.now);
        self.hint.take_if(|hint| hint.until <= now);
        if let Some(connection) = self.to_try.take() {
            self.try_connection(&connection);
        }
    }

    /// Nothing of a turn is left.
    pub(super) fn forget_turn(&mut self) {
        self.running = None;
        self.asks.clear();
        self.calls.clear();
        self.queue.sent_returns();
        self.rescue_reason();
    }

    pub(super) fn decided(&mut self, decision: String) {
        if self.decisions.len() == MAX_DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(decision);
    }
}

fn new_transcript(accessible: bool) -> Transcript {
    Transcript::new(transcript::Options { accessible, ..transcript::Options::default() })
}
