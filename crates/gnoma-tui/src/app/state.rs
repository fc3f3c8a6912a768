//! Everything that the view knows, and what its parts do with it in common.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use gnoma_core::{CallId, Message, session::NoticeLevel};

use super::{
    layer::Layer,
    parts::{
        Armed, Exit, FirstStart, Hint, Leaving, Questions, RouteLog, Running, SessionLink, Timers,
        Window, Writing,
    },
    queue::Queue,
};
use crate::{
    composer::{Composer, Draft},
    desk::{Desk, Found},
    frame::Size,
    history::History,
    keymap::Keymap,
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

/// Everything that the face knows. It outlives a session: see [`State::renew`].
pub struct State {
    pub(crate) facts: Facts,
    pub(crate) counts: Counts,
    pub(crate) desk: Box<dyn Desk>,
    pub(crate) keymap: Keymap,
    pub(crate) theme: String,
    pub(crate) session: SessionLink,
    pub(crate) routes: RouteLog,
    pub(crate) size: Size,
    pub(crate) transcript: Transcript,
    pub(crate) composer: Composer,
    pub(super) writing: Writing,
    pub(super) accessible: bool,
    pub(super) layer: Option<Layer>,
    pub(super) questions: Questions,
    pub(super) queue: Queue,
    pub(super) running: Option<Running>,
    /// The names of the calls of this turn.
    pub(super) calls: HashMap<CallId, String>,
    /// Lines that run in a shell, and since when.
    pub(super) shells: VecDeque<(String, Instant)>,
    pub(super) setup: FirstStart,
    pub(super) window: Window,
    pub(super) now: Instant,
    pub(super) timers: Timers,
    pub(super) exit: Exit,
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
            session: SessionLink { is_at_rest: true, ..SessionLink::default() },
            routes: RouteLog::default(),
            size: Size::default(),
            transcript: new_transcript(accessible),
            composer,
            writing: Writing { history, ..Writing::default() },
            accessible,
            layer: found.as_ref().map(|found| Layer::setup(found, accessible)),
            questions: Questions::default(),
            queue: Queue::of(drafts),
            running: None,
            calls: HashMap::new(),
            shells: VecDeque::new(),
            setup: FirstStart { found, to_try: None },
            window: Window::default(),
            now,
            timers: Timers::default(),
            exit: Exit::default(),
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
        self.session.id.clear();
        self.routes.pinned = None;
        self.layer = found.map(|found| Layer::setup(found, self.accessible));
        self.session.is_at_rest = true;
        self.session.is_closed = false;
        self.setup.found = found.cloned();
        self.exit.leaving = Leaving::No;
        self.window.mark = None;
        self.timers.hint = None;
        if !same_conversation {
            self.transcript = new_transcript(self.accessible);
            self.counts = Counts::from_here(&self.facts);
            self.session.has_past = false;
            self.routes.decisions.clear();
            self.routes.why = None;
            self.routes.last = None;
        }
    }

    /// Shows messages of a stored conversation.
    pub fn past<'a>(&mut self, messages: impl IntoIterator<Item = &'a Message>) {
        for message in messages {
            self.session.has_past = true;
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
        self.exit.leaving = Leaving::No;
        self.exit.next.take()
    }

    /// Everything that is written and not sent: first what is in the editor.
    #[must_use]
    pub fn drafts(&self) -> Vec<Draft> {
        let mut drafts = vec![self.composer.draft()];
        drafts.extend(self.queue.drafts().cloned());
        drafts.extend(self.writing.history.left().cloned());
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
        self.timers.hint = Some(Hint { text, until: self.now + HINT });
    }

    /// Ends this session for one that is made of something else.
    pub(crate) fn again(&mut self, again: Again) {
        if self.running.is_some() {
            return self.hint("a turn is running; Esc stops it first");
        }
        self.exit.next = Some(again);
        self.quit();
    }

    pub(crate) fn quit(&mut self) {
        self.exit.leaving = match &self.exit.next {
            Some(_) => Leaving::ForAnother,
            None => Leaving::ForGood,
        };
        self.timers.save_at = None;
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
            matches!(self.timers.armed, Some((first, until)) if first == armed && now <= until);
        self.timers.armed = (!is_second).then(|| (armed, now + CONFIRM));
        is_second
    }

    /// Something that was typed has changed. What is gone from the editor is gone from the file at
    /// once: nothing older may come back in its place.
    pub(super) fn touched(&mut self) {
        let wait = if self.composer.is_empty() { Duration::ZERO } else { SAVE_AFTER };
        let at = self.now + wait;
        self.timers.save_at = Some(self.timers.save_at.map_or(at, |before| before.min(at)));
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.transcript.tick(self.now);
        self.timers.hint.take_if(|hint| hint.until <= now);
        if let Some(connection) = self.setup.to_try.take() {
            self.try_connection(&connection);
        }
    }

    /// Nothing of a turn is left.
    pub(super) fn forget_turn(&mut self) {
        self.running = None;
        self.questions.open.clear();
        self.calls.clear();
        self.queue.sent_returns();
        self.rescue_reason();
    }

    pub(super) fn decided(&mut self, decision: String) {
        if self.routes.decisions.len() == MAX_DECISIONS {
            self.routes.decisions.pop_front();
        }
        self.routes.decisions.push_back(decision);
    }
}

fn new_transcript(accessible: bool) -> Transcript {
    Transcript::new(transcript::Options { accessible, ..transcript::Options::default() })
}
