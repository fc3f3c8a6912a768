//! Everything that the view knows, and what its parts do with it in common.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use gnoma_core::{CallId, duration, session::NoticeLevel, store::SessionId};

use super::{
    layer::Layer,
    parts::{
        ArmedKey, EditorState, Exit, FirstStart, Hint, HintSubject, LookUps, Questions, RouteLog,
        SessionLink, Timers, TurnActivity, Window,
    },
    queue::Queue,
};
use crate::{
    composer::{Composer, Draft},
    effect::Effect,
    frame::Size,
    history::History,
    keymap::Keymap,
    remedies,
    status::{Counts, StartFacts},
    text::{Line, Style, TextRole},
    transcript::{self, Transcript},
};

/// The time that a hint stays.
const HINT: Duration = Duration::from_secs(4);
/// The time to wait for a second key that confirms the first.
const CONFIRM: Duration = Duration::from_secs(2);
/// The time after the last change at which what is written is saved to a file.
const SAVE_AFTER: Duration = Duration::from_millis(300);
/// The interval at which what is running is redrawn.
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// Decisions that are remembered for `/why`.
const MAX_DECISIONS: usize = 60;

/// The options with which a view begins.
#[derive(Debug)]
pub struct AppOptions {
    /// The current time, as an instant.
    pub now: Instant,
    /// The time in milliseconds since 1970.
    pub now_ms: i64,
    /// The facts about the session that are known before it says anything.
    pub facts: StartFacts,
    /// The table of keys and their actions.
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
    /// The drafts that were written and not sent when the program ended last, as they were saved.
    pub drafts: Vec<Draft>,
    /// The session is in a server, so it can continue without this window.
    pub is_served: bool,
    /// The file of this process's debug log, if it writes one.
    pub debug_log: Option<String>,
}

/// Everything that the view knows. It outlives a session.
pub struct State {
    pub(crate) facts: StartFacts,
    pub(crate) counts: Counts,
    pub(crate) keymap: Keymap,
    pub(crate) theme: String,
    pub(crate) session: SessionLink,
    pub(crate) routes: RouteLog,
    pub(crate) size: Size,
    pub(crate) transcript: Transcript,
    pub(crate) composer: Composer,
    pub(super) writing: EditorState,
    pub(super) accessible: bool,
    pub(super) layer: Option<Layer>,
    pub(super) questions: Questions,
    pub(super) queue: Queue,
    pub(super) running: Option<TurnActivity>,
    /// The names of the calls of this turn.
    pub(super) calls: HashMap<CallId, String>,
    /// Lines that run in a shell, and since when.
    pub(super) shells: VecDeque<(String, Instant)>,
    /// The number of running shell lines that the person has stopped.
    pub(super) stopped_shells: usize,
    pub(super) setup: FirstStart,
    pub(super) look_ups: LookUps,
    pub(super) window: Window,
    pub(super) now: Instant,
    pub(super) timers: Timers,
    pub(super) exit: Exit,
    pub(super) effects: Vec<Effect>,
}

impl State {
    /// A view of a session without any events yet.
    #[must_use]
    pub fn new(options: AppOptions) -> Self {
        let AppOptions { now, now_ms, facts, keymap, history, theme, vim, accessible, .. } =
            options;
        let AppOptions { drafts, is_served, debug_log, .. } = options;
        let mut composer = Composer::default();
        composer.set_vim(vim);
        let mut drafts = drafts.into_iter();
        if !accessible {
            composer.restore_draft(drafts.next().unwrap_or_default());
        }
        let mut state = Self {
            counts: Counts::from_here(&facts),
            facts,
            keymap,
            theme,
            session: SessionLink {
                is_at_rest: true,
                is_served,
                debug_log,
                ..SessionLink::default()
            },
            routes: RouteLog::default(),
            size: Size::default(),
            transcript: new_transcript(accessible),
            composer,
            writing: EditorState { history, ..EditorState::default() },
            accessible,
            layer: None,
            questions: Questions::default(),
            queue: Queue::from_drafts(drafts),
            running: None,
            calls: HashMap::new(),
            shells: VecDeque::new(),
            stopped_shells: 0,
            setup: FirstStart::default(),
            look_ups: LookUps::default(),
            window: Window::default(),
            now,
            timers: Timers { clock: Some((now, now_ms)), ..Timers::default() },
            exit: Exit::default(),
            effects: Vec::new(),
        };
        state.tell_waiting();
        state
    }

    /// Says something of the program's own in the conversation.
    pub fn append_note(&mut self, text: &str) {
        self.transcript.add_notice(NoticeLevel::Info, text);
    }

    /// Says in the conversation that something is not as it should be.
    pub fn show_warning(&mut self, text: &str) {
        self.transcript.add_notice(NoticeLevel::Warning, text);
    }

    /// The session that is shown, once there is one.
    #[must_use]
    pub fn session_id(&self) -> Option<&SessionId> {
        let view = &self.session.view;
        // Who comes back comes back to the session that an elf works for.
        (view.seq > 0).then_some(view.parent.as_ref().unwrap_or(&view.session))
    }

    /// The session that can be continued from the store, if anything of it was stored.
    #[must_use]
    pub fn stored_session(&self) -> Option<&SessionId> {
        let view = &self.session.view;
        self.session_id().filter(|_| view.info.is_kept && view.messages > 0)
    }

    /// The window was detached and the session continues.
    #[must_use]
    pub fn is_detached(&self) -> bool {
        self.exit.is_detached
    }

    /// Everything that is written and not sent: first what is in the editor.
    #[must_use]
    pub fn unsent_drafts(&self) -> Vec<Draft> {
        let mut drafts = vec![self.composer.draft()];
        let session = self.session_id().map(ToString::to_string).filter(|id| !id.is_empty());
        let queued = self.queue.drafts().cloned();
        drafts.extend(queued.map(|draft| Draft { session: session.clone(), ..draft }));
        drafts.extend(self.writing.history.unsaved_drafts().cloned());
        drafts.extend(self.layer.as_ref().and_then(Layer::unsent_draft));
        drafts
    }

    pub(crate) fn emit(&mut self, effect: Effect) {
        let is_kept = !matches!(effect, Effect::Save(_) | Effect::Remember(_));
        if is_kept || !self.facts.incognito {
            self.effects.push(effect);
        }
    }

    pub(crate) fn show_lines(&mut self, lines: Vec<Line>) {
        self.transcript.add_lines(lines);
    }

    /// Says lines below a heading; nothing if there are none.
    pub(crate) fn say_titled(&mut self, title: &str, lines: Vec<Line>) {
        if !lines.is_empty() {
            let heading = Line::new(title.to_owned(), Style::with_ink(TextRole::Accent).bold());
            self.show_lines(std::iter::once(heading).chain(lines).collect());
        }
    }

    /// Shows a text of several lines.
    pub(crate) fn show_multiline(&mut self, text: &str) {
        let line = |line: &str| Line::new(format!("  {line}"), Style::default());
        self.show_lines(text.lines().map(line).collect());
    }

    /// Describes in a few words how long ago that was.
    pub(crate) fn describe_age(&self, at_ms: i64) -> String {
        let (then, then_ms) = self.timers.clock.unwrap_or((self.now, 0));
        let since = self.now.saturating_duration_since(then).as_millis();
        let now_ms = then_ms.saturating_add(i64::try_from(since).unwrap_or(i64::MAX));
        duration::format_age(now_ms.saturating_sub(at_ms))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.session.is_closed
    }

    pub(crate) fn show_hint(&mut self, text: impl Into<String>) {
        let text = remedies::in_window(&text.into()).into_owned();
        if self.accessible {
            return self.append_note(&text);
        }
        let (about, until) = (HintSubject::Past, self.now + HINT);
        self.timers.hint = Some(Hint { text, until, about });
    }

    /// A hint that goes when what it is about is over.
    pub(super) fn hint_about(&mut self, about: HintSubject, text: impl Into<String>) {
        self.show_hint(text);
        if let Some(hint) = &mut self.timers.hint {
            hint.about = about;
        }
    }

    /// Removes the hint on a subject that is over.
    pub(super) fn end_hints(&mut self, about: HintSubject) {
        self.timers.hint.take_if(|hint| hint.about == about);
    }

    pub(crate) fn quit(&mut self) {
        self.exit.is_leaving = true;
        self.timers.save_at = None;
        self.emit(Effect::Save(self.unsent_drafts()));
        self.emit(Effect::Quit);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Reports whether no turn runs, as far as the session has said: it says so a moment after the turn's end.
    pub(super) fn is_between_turns(&self) -> bool {
        self.running.is_none() && (self.session.is_at_rest || self.session.is_closed)
    }

    /// Reports whether a key is the second of two, and remembers it as the first otherwise.
    pub(super) fn is_second_press(&mut self, armed: ArmedKey) -> bool {
        let now = self.now;
        let is_second =
            matches!(self.timers.armed, Some((first, until)) if first == armed && now <= until);
        self.timers.armed = (!is_second).then(|| (armed, now + CONFIRM));
        is_second
    }

    /// Plans a save, because typed text has changed. Text that is gone from the editor is gone from the file at
    /// once: nothing older may come back in its place.
    pub(super) fn schedule_save(&mut self) {
        let wait = if self.composer.is_empty() { Duration::ZERO } else { SAVE_AFTER };
        let at = self.now + wait;
        self.timers.save_at = Some(self.timers.save_at.map_or(at, |before| before.min(at)));
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.transcript.tick(self.now);
        self.timers.hint.take_if(|hint| hint.until <= now);
        self.wait_no_longer();
    }

    /// Forgets everything about a turn.
    pub(super) fn forget_turn(&mut self) {
        self.running = None;
        // A switch that was asked for here leads to where the rest of the queue belongs.
        if !self.session.is_switching {
            self.drop_later();
        }
        self.questions.open.clear();
        self.questions.placing = None;
        self.calls.clear();
        self.queue.sent_returns();
        self.rescue_reason();
    }

    pub(super) fn record_decision(&mut self, decision: String) {
        if self.routes.decisions.len() == MAX_DECISIONS {
            self.routes.decisions.pop_front();
        }
        self.routes.decisions.push_back(decision);
    }
}

pub(super) fn new_transcript(accessible: bool) -> Transcript {
    Transcript::new(transcript::TranscriptOptions {
        accessible,
        ..transcript::TranscriptOptions::default()
    })
}
