//! The session as it was when the window was attached to it, or fell too far behind: what was missed
//! is read, and the answer under way is shown once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Content, Event, Message, Role, Usage,
    protocol::{Envelope, FoundProviders, Reply, Request, RequestError, SessionView, TextTail},
    session::SessionState,
};

use super::{
    State,
    layer::Layer,
    parts::{BacklogFollowUp, MessageBacklog},
    state::new_transcript,
};
use crate::{
    ask::{Purpose, describe_request_error},
    effect::Effect,
    setup::LOOKED_FOR,
    status::{Counts, StartFacts},
};

/// Messages of the past that are shown; the session's store has all.
const MAX_PAST: u64 = 2_000;
/// Messages that are read at once.
const MAX_PAGE: u32 = 200;
/// Events that wait for the past.
const MAX_LATER: usize = 10_000;
/// The time to wait for the past of the conversation.
const PATIENCE: Duration = Duration::from_secs(5);

impl State {
    pub(super) fn on_envelope(&mut self, envelope: Arc<Envelope>) {
        if let Some(behind) = &mut self.session.behind {
            behind.later.push(envelope);
            if behind.later.len() >= MAX_LATER {
                self.caught_up();
            }
            return;
        }
        if envelope.epoch != self.session.view.epoch || envelope.seq <= self.session.view.seq {
            return;
        }
        self.session.view.apply_envelope(&envelope);
        self.on_event(&envelope.event);
    }

    /// The state of the session, in place of all events up to it.
    pub(super) fn apply_snapshot(&mut self, view: Box<SessionView>) {
        self.caught_up();
        self.session.is_returning = false;
        let before = std::mem::replace(&mut self.session.view, *view);
        if before.seq > 0
            && before.position().epoch == self.session.view.epoch
            && self.is_same(&before)
        {
            return self.fell_behind(before);
        }
        self.begin_life(&before);
    }

    fn is_same(&self, before: &SessionView) -> bool {
        before.session == self.session.view.session
    }

    /// Some events were missed.
    fn fell_behind(&mut self, before: SessionView) {
        self.session.is_closed &= self.session.view.state == SessionState::Closed;
        let is_appended = |event: &Event| matches!(event, Event::Appended(_));
        let missed = self.session.view.recent.iter().filter(|recent| recent.seq > before.seq);
        let known = missed.filter(|recent| is_appended(&recent.event)).count() as u64;
        let until = self.session.view.messages.saturating_sub(known);
        let from = before.messages;
        self.read_past(from, until, BacklogFollowUp::Missed(Box::new(before)));
    }

    /// Another life of the session begins, or another session.
    fn begin_life(&mut self, before: &SessionView) {
        let is_first = before.seq == 0;
        let keeps = std::mem::take(&mut self.session.keeps_conversation);
        let is_shorter = self.session.view.messages < before.messages;
        let goes_on = !is_first && (keeps || (self.is_same(before) && !is_shorter));
        if !is_first {
            self.end_life(goes_on);
        }
        self.session.is_switching = false;
        let profile = self.facts.profile.take();
        self.facts = StartFacts::from_view(&self.session.view);
        if self.facts.profile != profile {
            self.emit(Effect::Profile(self.facts.profile.clone()));
        }
        self.session.is_closed = false;
        let counted = Counts::from_view(&self.session.view);
        if !goes_on {
            self.counts = counted;
        } else if counted.round != Usage::default() {
            // What fills the window is not what it was where turns came back.
            self.counts.round = counted.round;
        }
        self.counts.context = self.session.view.context;
        if let Some(prompt) = self.session.rewound.take() {
            self.write_instead(prompt.as_str().into());
        }
        self.info_changed();
        self.apply_view_facts();
        let is_same_again = !is_first && self.is_same(before);
        let all = self.session.view.messages;
        if is_first {
            self.drop_queue_of_others();
            self.show_greeting();
        }
        self.session.tells_resumed = !goes_on && !is_same_again;
        let from = match (goes_on, is_same_again) {
            (true, _) => before.messages.min(all),
            // What was not taken back stands above.
            (false, true) => all,
            (false, false) => all.saturating_sub(MAX_PAST),
        };
        let is_shown = goes_on && ShownLength::from_view(before).text > 0;
        let broken_off = is_shown.then(|| Box::new(before.clone()));
        self.read_past(from, all, BacklogFollowUp::Begin(broken_off));
    }

    /// Clears everything of the session's earlier life but what is written, queued and set.
    fn end_life(&mut self, goes_on: bool) {
        self.forget_turn();
        (self.routes.pinned, self.layer, self.timers.hint, self.look_ups.open) =
            (None, None, None, None);
        (self.session.is_at_rest, self.window.mark, self.setup.found) = (true, None, None);
        self.type_again();
        if goes_on {
            return;
        }
        let mut leftover = self.take_finished(self.size.width);
        self.transcript = new_transcript(self.accessible);
        self.window.leftover.append(&mut leftover);
        self.session.has_past = false;
        self.routes.decisions.clear();
        (self.routes.why, self.routes.last) = (None, None);
    }

    fn read_past(&mut self, from: u64, until: u64, then: BacklogFollowUp) {
        let (since, later) = (self.now, Vec::new());
        self.session.behind =
            Some(Box::new(MessageBacklog { from, pages: Vec::new(), since, later, then }));
        if from < until {
            self.ask_past(from, until);
        } else {
            self.caught_up();
        }
    }

    fn ask_past(&mut self, from: u64, before: u64) {
        let max = u32::try_from(before - from).unwrap_or(MAX_PAGE).min(MAX_PAGE);
        self.send_request(Request::History { before: Some(before), max }, Purpose::Past);
    }

    pub(super) fn past_read(&mut self, result: Result<Reply, RequestError>) {
        let Some(behind) = &mut self.session.behind else { return };
        match result {
            Ok(Reply::History { first, messages, .. }) => {
                let is_all = first <= behind.from || messages.is_empty();
                let excess = usize::try_from(behind.from.saturating_sub(first)).unwrap_or(0);
                behind.pages.push(messages.into_iter().skip(excess).collect());
                let from = behind.from;
                if is_all { self.caught_up() } else { self.ask_past(from, first) }
            }
            Ok(_) => self.caught_up(),
            Err(error) => {
                self.caught_up();
                self.show_warning(&format!(
                    "Could not load the whole conversation: {}",
                    describe_request_error(&error)
                ));
            }
        }
    }

    /// The past is waited for no longer.
    pub(super) fn wait_no_longer(&mut self) {
        if self.session.behind.as_ref().is_some_and(|behind| behind.since + PATIENCE <= self.now) {
            self.caught_up();
        }
    }

    /// Returns the time at which something that is waited for is late.
    pub(super) fn waits_until(&self) -> Option<Instant> {
        let past = self.session.behind.as_ref().map(|behind| behind.since + PATIENCE);
        [past, self.look_up_shows_at()].into_iter().flatten().min()
    }

    /// Shows what was read, what follows it, and what has happened meanwhile.
    fn caught_up(&mut self) {
        let Some(behind) = self.session.behind.take() else { return };
        let MessageBacklog { pages, later, then, .. } = *behind;
        let messages: Vec<Arc<Message>> = pages.into_iter().rev().flatten().collect();
        match then {
            BacklogFollowUp::Begin(broken_off) => self.show_life(&messages, broken_off.as_deref()),
            BacklogFollowUp::Missed(before) => self.show_missed(&before, &messages),
        }
        for envelope in later {
            self.on_envelope(envelope);
        }
    }

    /// Shows what was said in the past, and what continues.
    fn show_life(&mut self, messages: &[Arc<Message>], mut broken_off: Option<&SessionView>) {
        for message in messages {
            self.session.has_past = true;
            let before = broken_off.take_if(|_| message.role() == Role::Assistant);
            match before {
                None => self.transcript.replay_message(message),
                Some(before) => {
                    if let Some(message) = unseen_part(message, before) {
                        self.transcript.replay_message(&message);
                    }
                }
            }
        }
        if let Some(name) = self.session.view.info.child.as_ref().map(|child| child.name.clone()) {
            self.append_note(&format!(
                "Watching the elf `{name}`. What you type goes to it, Esc stops it, and `/elfs back` returns to your session"
            ));
        }
        self.tell_resumed(messages.len());
        let is_broken_off = messages.last().is_some_and(|last| match last.role() {
            Role::User | Role::Tool => true,
            Role::Assistant => last.tool_calls().next().is_some(),
        });
        if is_broken_off && self.session.view.turn.is_none() {
            self.append_note("The last turn did not finish. Your next message continues from here");
        }
        self.repeat_closing_notices();
        for event in self.session.view.current_events() {
            self.on_event(&event);
        }
    }

    /// Shows what a session said before it closed: it can be closed before the window attaches to it.
    fn repeat_closing_notices(&mut self) {
        if self.session.view.state != SessionState::Closed {
            return;
        }
        let events = self.session.view.recent.iter().map(|recent| &recent.event);
        let notices: Vec<Event> =
            events.filter(|event| matches!(event, Event::Notice { .. })).cloned().collect();
        notices.iter().for_each(|notice| self.on_event(notice));
    }

    /// Shows what happened between two views of one life of the session.
    fn show_missed(&mut self, before: &SessionView, messages: &[Arc<Message>]) {
        let mut shown = ShownLength::from_view(before);
        for message in messages {
            self.show_appended(message, &mut shown);
            if message.role() == Role::Tool {
                self.transcript.replay_message(message);
            }
        }
        let recent = self.session.view.recent.iter().filter(|recent| recent.seq > before.seq);
        let events: Vec<Event> = recent.map(|recent| recent.event.clone()).collect();
        for event in events {
            match &event {
                Event::Appended(message) => self.show_appended(message, &mut shown),
                Event::RoundStarted { .. } | Event::Routed(_) => {
                    self.on_state_changed(SessionState::Active);
                    shown = ShownLength::default();
                    self.on_event(&event);
                }
                Event::ArmChanged { .. } | Event::Retrying { .. } => {
                    shown = ShownLength::default();
                    self.on_event(&event);
                }
                _ => self.on_event(&event),
            }
        }
        if !is_same_answer(before, &self.session.view) {
            shown = ShownLength::default();
        }
        self.show_current(before, &shown);
        self.apply_view_facts();
    }

    /// A message that was added unseen, without what was seen of it while it was written.
    fn show_appended(&mut self, message: &Arc<Message>, shown: &mut ShownLength) {
        if message.role() == Role::Assistant {
            let seen = std::mem::take(shown);
            for part in message.content() {
                if let Content::Thinking(thinking) = part
                    && seen.thinking == 0
                {
                    self.on_event(&Event::Thinking { text: thinking.text.clone() });
                }
            }
            let text = message.text_content();
            let rest = usize::try_from(seen.text).ok().and_then(|seen| text.get(seen..));
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                self.on_event(&Event::Text { text: rest.to_owned() });
            }
        }
        self.on_event(&Event::Appended(Arc::clone(message)));
    }

    /// Shows what continues, without what is on the screen already.
    fn show_current(&mut self, before: &SessionView, shown: &ShownLength) {
        let is_asked = |view: &SessionView, call: &_| {
            view.questions().any(|question| question.call.id == *call)
        };
        let gone: Vec<_> =
            self.questions.open.iter().map(|question| question.call.id.clone()).collect();
        for call in gone {
            if !is_asked(&self.session.view, &call) {
                self.withdraw_question(&call);
            }
        }
        let is_same_answer = shown.text > 0 || shown.thinking > 0;
        let turn = self.session.view.turn.clone().unwrap_or_default();
        for event in self.session.view.current_events() {
            match event {
                Event::RoundStarted { .. } if is_same_answer => (),
                Event::Thinking { .. } if shown.text > 0 => (),
                Event::Thinking { text } => {
                    let text = turn.thinking.text_after(shown.thinking).map_or(text, str::to_owned);
                    self.show_text(text, |text| Event::Thinking { text });
                }
                Event::Text { text } => {
                    let text = turn.text.text_after(shown.text).map_or(text, str::to_owned);
                    self.show_text(text, |text| Event::Text { text });
                }
                Event::ToolStarted { call } if is_running(before, &call.id) => (),
                Event::ToolProgress { call, text } => {
                    let known = output_of(before, &call).map_or(0, TextTail::total_bytes);
                    let tail = output_of(&self.session.view, &call)
                        .and_then(|tail| tail.text_after(known));
                    let text = tail.map_or(text, str::to_owned);
                    self.show_text(text, |text| Event::ToolProgress { call: call.clone(), text });
                }
                event => self.on_event(&event),
            }
        }
    }

    fn show_text(&mut self, text: String, event: impl FnOnce(String) -> Event) {
        if !text.is_empty() {
            self.on_event(&event(text));
        }
    }

    /// Facts about the session have changed.
    pub(super) fn info_changed(&mut self) {
        let info = self.session.view.info.clone();
        let before = self.session.info.replace(info.clone()).unwrap_or_default();
        self.facts = StartFacts {
            model: self.facts.model.take(),
            ..StartFacts::from_view(&self.session.view)
        };
        if self.facts.model.is_none() {
            self.facts.model = info.model;
        }
        self.look_up_window();
        if !info.theme.is_empty() && info.theme != before.theme && info.theme != self.theme {
            self.theme.clone_from(&info.theme);
            self.emit(Effect::Theme(info.theme));
        }
        if info.vim != before.vim {
            self.composer.set_vim(info.vim);
        }
        if info.is_kept != before.is_kept || before.version.is_empty() {
            self.emit(Effect::CrashNote(crash_note(info.is_kept).to_owned()));
        }
        self.providers_found(info.found);
    }

    fn providers_found(&mut self, found: Option<FoundProviders>) {
        if found == self.setup.found {
            return;
        }
        self.setup.found = found;
        match &self.setup.found {
            Some(found) => {
                self.layer = Some(Layer::setup(found, self.accessible));
                if found.keys.is_empty() && found.servers.is_empty() {
                    self.append_note(LOOKED_FOR);
                }
            }
            None => {
                self.layer.take_if(|layer| matches!(layer, Layer::Setup(_)));
            }
        }
    }

    /// Takes over the parts of the view that are no events of a running turn.
    fn apply_view_facts(&mut self) {
        self.facts.mode = self.session.view.mode;
        if let Some(arm) = &self.session.view.arm {
            self.facts.model = Some(arm.to_string());
        }
        self.look_up_window();
        if let Some(turn) = self.session.view.turn.as_ref().filter(|turn| !turn.why.is_empty()) {
            self.routes.why = Some(turn.why.clone());
        }
    }
}

/// The amount of the answer being written that was shown.
#[derive(Default)]
struct ShownLength {
    text: u64,
    thinking: u64,
}

impl ShownLength {
    fn from_view(view: &SessionView) -> Self {
        let turn = view.turn.as_ref();
        turn.map_or_else(Self::default, |turn| Self {
            text: turn.text.total_bytes(),
            thinking: turn.thinking.total_bytes(),
        })
    }
}

/// Returns the part of an answer that was not shown yet while it was written; `None` where all was.
fn unseen_part(message: &Arc<Message>, before: &SessionView) -> Option<Arc<Message>> {
    let text = message.text_content();
    let tail = before.turn.as_ref().map(|turn| &turn.text)?;
    let seen = usize::try_from(tail.total_bytes()).ok()?;
    match text.split_at_checked(seen) {
        Some((shown, rest)) if shown.ends_with(&tail.text) => {
            let calls = message.tool_calls().cloned().map(Content::ToolCall);
            let rest = (!rest.is_empty()).then(|| Content::from_text(rest));
            let content = rest.into_iter().chain(calls).collect();
            let origin = message.origin().cloned();
            Message::assistant(content, origin, message.stop_reason()).ok().map(Arc::new)
        }
        _ => Some(Arc::clone(message)),
    }
}

/// Reports whether the answer that is being written can be the one that was.
fn is_same_answer(before: &SessionView, now: &SessionView) -> bool {
    match (&before.turn, &now.turn) {
        (Some(before), Some(now)) => {
            before.started_ms == now.started_ms && before.round == now.round
        }
        _ => false,
    }
}

fn is_running(view: &SessionView, call: &CallId) -> bool {
    output_of(view, call).is_some()
}

fn output_of<'a>(view: &'a SessionView, call: &CallId) -> Option<&'a TextTail> {
    let mut calls = view.turn.iter().flat_map(|turn| &turn.calls);
    calls.find(|running| running.call.id == *call).map(|running| &running.output)
}

fn crash_note(is_kept: bool) -> &'static str {
    if is_kept {
        "gnoma crashed. Run `gnoma --continue` to resume the session"
    } else {
        "gnoma crashed. The session was not saved"
    }
}
