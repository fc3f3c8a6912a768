//! The rounds of a turn: what begins them, and what is appended to the conversation before them.

use std::mem;

use gnoma_core::{
    Content, Event, Message, Usage,
    session::{Outcome, SessionState},
};

use super::{Phase, Turn, watch::TurnDetectors};
use crate::{
    call::{Call, CallRequest, Delivery},
    prompt,
};

impl Turn {
    /// Starts a turn with a message, or keeps it until the turn that runs can take it.
    pub(super) fn on_message(&mut self, phase: Phase, message: Message) -> Phase {
        if matches!(phase, Phase::Idle) {
            return self.start_with_message(message);
        }
        self.queued.push(message);
        self.tell_queue();
        phase
    }

    pub(super) fn start_with_message(&mut self, message: Message) -> Phase {
        self.begin_turn();
        self.prepare_messages(Vec::new(), [message].into(), true)
    }

    /// Forgets the last turn and becomes active.
    pub(super) fn begin_turn(&mut self) {
        self.turns += 1;
        self.rounds = 1;
        self.most_rounds = self.cx.limits.rounds;
        self.delivery = Delivery::Direct;
        self.continuations = 0;
        if let Some(form) = &mut self.cx.answer_form {
            form.begin_attempt();
        }
        self.checks = 0;
        self.cx.usage = Usage::default();
        self.watch = TurnDetectors::default();
        self.notes.clear();
        self.stuck = None;
        self.added.stop_after = None;
        self.added.is_kept_going = false;
        self.added.kept_going = 0;
        self.enter_state(SessionState::Active);
    }

    /// The next round, as far as there is one.
    pub(super) fn call_model(&mut self) -> Phase {
        if !self.has_rounds() {
            return self.deliver_or_check(Outcome::RoundLimit { rounds: self.rounds });
        }
        if self.queued.iter().any(|message| self.is_prepared_first(message)) {
            let said = mem::take(&mut self.queued);
            return self.prepare_messages(Vec::new(), said.into(), false);
        }
        let said = mem::take(&mut self.queued);
        self.next_round(said)
    }

    /// The next round, which begins with corrections and with what people said meanwhile.
    pub(super) fn next_round(&mut self, said: Vec<Message>) -> Phase {
        self.rounds += 1;
        self.tell_news();
        if let Some(form) = &mut self.cx.answer_form {
            form.goes_on();
        }
        if !self.notes.is_empty() {
            let notes = mem::take(&mut self.notes);
            self.cx.append(Message::user_text(prompt::system_note(&notes.join("\n"))));
        }
        let is_heard = !said.is_empty();
        for message in said {
            self.cx.append(message);
        }
        if is_heard {
            self.tell_queue();
        }
        let request = self.call_request();
        Phase::Calling(Box::new(Call::begin(request, &mut self.cx)))
    }

    /// Adds to the conversation what came up beside it.
    pub(super) fn tell_news(&mut self) {
        let news = mem::take(&mut self.added.news);
        if !news.is_empty() {
            self.cx.append(Message::user_text(prompt::system_note(&news.join("\n"))));
        }
    }

    /// Replaces what waits. A message that was delivered before its edit came is not said again.
    pub(super) fn edit_queue(&mut self, was: &[Vec<Content>], now: Vec<Message>, is_idle: bool) {
        let queued = self.queued.iter().map(Message::content);
        if !queued.eq(was.iter().map(Vec::as_slice)) {
            self.cx.warn("the queued messages changed meanwhile, so your edit was not applied");
        } else if !is_idle {
            self.queued = now;
        }
        self.tell_queue();
    }

    /// Tells which messages wait for the next safe boundary.
    pub(super) fn tell_queue(&mut self) {
        let queue = self.queued.iter().map(|message| message.content().to_vec()).collect();
        self.cx.emit(Event::Queued { queue });
    }

    /// Returns the parameters of the call that begins.
    pub(super) fn call_request(&self) -> CallRequest {
        CallRequest {
            round: self.rounds,
            continuations: self.continuations,
            accepts_empty: self.watch.has_run_tools(),
        }
    }
}
