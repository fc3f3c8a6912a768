//! Before an answer: an arm is chosen, room is made, the call is begun; and what follows its failure.

use std::{mem, time::Duration};

use gnoma_core::{
    Content, ErrorKind, Event, Message, ModelRef, ProviderError, Usage, duration,
    error::MAX_RETRY_AFTER,
    session::{NoticeLevel, Outcome, SessionState},
};

use super::{
    Effects, MAX_AGENT_ROUNDS, Turn,
    answer::AnswerDraft,
    phase::{Cause, Phase},
    protocol::{Delivery, Effect, Room, Timer},
    watch::TurnDetectors,
};
use crate::{
    prompt,
    routing::{OWN, signals::ToolHandling},
};

impl Turn {
    pub(super) fn start_with_message(&mut self, message: Message, fx: &mut Effects) -> Phase {
        self.begin_turn(fx);
        self.prepare_messages(Vec::new(), [message].into(), true, fx)
    }

    /// Forgets the last turn and becomes active.
    pub(super) fn begin_turn(&mut self, fx: &mut Effects) {
        self.turns += 1;
        self.rounds = 1;
        self.most_rounds = self.limits.rounds;
        self.delivery = Delivery::Direct;
        self.answers.continuations = 0;
        if let Some(shaping) = &mut self.answers.shaping {
            shaping.begin_attempt();
        }
        self.checks = 0;
        self.has_compacted = false;
        self.usage = Usage::default();
        self.watch = TurnDetectors::default();
        self.notes.clear();
        self.stuck = None;
        self.added.stop_after = None;
        self.added.is_kept_going = false;
        self.added.kept_going = 0;
        self.enter_state(SessionState::Active, fx);
    }

    pub(super) fn on_route(
        &mut self,
        routed: Result<Delivery, ProviderError>,
        fx: &mut Effects,
    ) -> Phase {
        match routed {
            Ok(delivery) => {
                self.delivery = delivery;
                self.reserve_call(1, fx)
            }
            Err(error) => self.on_call_failed(1, None, error, fx),
        }
    }

    /// The next round, as far as there is one.
    pub(super) fn call_model(&mut self, fx: &mut Effects) -> Phase {
        if !self.has_rounds() {
            return self.deliver_or_check(Outcome::RoundLimit { rounds: self.rounds }, fx);
        }
        if self.queued.iter().any(|message| self.is_prepared_first(message)) {
            let said = mem::take(&mut self.queued);
            return self.prepare_messages(Vec::new(), said.into(), false, fx);
        }
        let said = mem::take(&mut self.queued);
        self.next_round(said, fx)
    }

    /// The next round, which begins with corrections and with what people said meanwhile.
    pub(super) fn next_round(&mut self, said: Vec<Message>, fx: &mut Effects) -> Phase {
        self.rounds += 1;
        self.has_compacted = false;
        self.tell_news(fx);
        if let Some(shaping) = &mut self.answers.shaping {
            shaping.goes_on();
        }
        if !self.notes.is_empty() {
            let notes = mem::take(&mut self.notes);
            self.append_message(Message::user_text(prompt::system_note(&notes.join("\n"))), fx);
        }
        let is_heard = !said.is_empty();
        for message in said {
            self.append_message(message, fx);
        }
        if is_heard {
            self.tell_queue(fx);
        }
        self.reserve_call(1, fx)
    }

    /// Adds to the conversation what came up beside it.
    pub(super) fn tell_news(&mut self, fx: &mut Effects) {
        let news = mem::take(&mut self.added.news);
        if !news.is_empty() {
            self.append_message(Message::user_text(prompt::system_note(&news.join("\n"))), fx);
        }
    }

    /// Replaces what waits. A message that was delivered before its edit came is not said again.
    pub(super) fn edit_queue(
        &mut self,
        was: &[Vec<Content>],
        now: Vec<Message>,
        is_idle: bool,
        fx: &mut Effects,
    ) {
        let queued = self.queued.iter().map(Message::content);
        if !queued.eq(was.iter().map(Vec::as_slice)) {
            let text = "the queued messages changed meanwhile, so your edit was not applied";
            let (level, text) = (NoticeLevel::Warning, text.to_owned());
            fx.push(Effect::Emit(Event::Notice { level, text }));
        } else if !is_idle {
            self.queued = now;
        }
        self.tell_queue(fx);
    }

    /// Tells which messages wait for the next safe boundary.
    pub(super) fn tell_queue(&self, fx: &mut Effects) {
        let queue = self.queued.iter().map(|message| message.content().to_vec()).collect();
        fx.push(Effect::Emit(Event::Queued { queue }));
    }

    pub(super) fn reserve_call(&mut self, attempt: u32, fx: &mut Effects) -> Phase {
        if attempt == 1 {
            self.waited = Duration::ZERO;
        }
        self.reserve_with(attempt, self.may_compact(), fx)
    }

    pub(super) fn reserve_with(
        &mut self,
        attempt: u32,
        may_compact: bool,
        fx: &mut Effects,
    ) -> Phase {
        fx.push(Effect::Reserve { may_compact });
        Phase::Reserving { attempt }
    }

    pub(super) fn on_reservation(&mut self, attempt: u32, room: Room, fx: &mut Effects) -> Phase {
        match room {
            Room::Held(arm) => {
                if arm.is_agent {
                    self.most_rounds = self.most_rounds.max(MAX_AGENT_ROUNDS);
                }
                (self.origin, self.watch.is_lean) = (Some(arm.name), arm.is_lean);
                fx.push(Effect::CallModel { round: self.rounds, attempt });
                self.watch.new_answer();
                Phase::Calling { attempt, answer: AnswerDraft::default() }
            }
            Room::Filled if self.may_compact() => {
                self.start_compaction(Cause::Filled { attempt }, String::new(), fx)
            }
            Room::Filled => self.reserve_with(attempt, false, fx),
            Room::Refused(error) => self.fail_over(attempt, None, error, fx),
            Room::Denied(error) => self.on_call_failed(attempt, None, error, fx),
        }
    }

    pub(super) fn fail_over(
        &mut self,
        attempt: u32,
        answer: Option<AnswerDraft>,
        error: ProviderError,
        fx: &mut Effects,
    ) -> Phase {
        let was_called = answer.is_some();
        let has_content = answer.as_ref().is_some_and(AnswerDraft::has_content);
        if was_called && !has_content && self.asks_otherwise(&error, fx) {
            fx.push(Effect::Settle(None));
            return self.reserve_call(attempt + 1, fx);
        }
        fx.push(Effect::FailOver { error, attempt, has_content, was_called });
        Phase::FailingOver { attempt, answer }
    }

    /// Another arm answers in place of the one that failed. What was received of its answer is retracted: few wires
    /// let a model continue from a given beginning, a model that is asked to do so repeats or contradicts it, and
    /// what the first had in mind cannot be handed over. Its tokens count all the same.
    pub(super) fn on_failover(
        &mut self,
        answer: Option<AnswerDraft>,
        (from, to): (ModelRef, ModelRef),
        why: String,
        fx: &mut Effects,
    ) -> Phase {
        let retracted = answer.as_ref().is_some_and(AnswerDraft::has_content);
        // Who replaces one that only looked works alone.
        if self.delivery == Delivery::Conferred {
            self.delivery = Delivery::Direct;
        }
        // What the first could not handle is not the other's fault.
        self.watch.handling = ToolHandling::default();
        if let Some(shaping) = &mut self.answers.shaping {
            shaping.on_failover();
        }
        self.settle_draft(answer, fx);
        fx.push(Effect::Emit(Event::ArmChanged { from, to, why, retracted }));
        self.reserve_call(1, fx)
    }

    /// No other arm takes over.
    pub(super) fn on_failover_exhausted(
        &mut self,
        attempt: u32,
        answer: Option<AnswerDraft>,
        error: ProviderError,
        fx: &mut Effects,
    ) -> Phase {
        match answer {
            Some(answer) if error.kind == ErrorKind::ContextTooLong && self.may_compact() => {
                // What was written before the window was full stays, and the model continues it.
                if !answer.has_words() {
                    fx.push(Effect::Settle(None));
                } else if self.append_answer(answer, fx).is_some() {
                    let note = prompt::system_note(prompt::CONTINUE);
                    self.append_message(Message::user_text(note), fx);
                }
                self.start_compaction(Cause::Refused { attempt, error }, String::new(), fx)
            }
            answer => self.on_call_failed(attempt, answer, error, fx),
        }
    }

    /// Settles a call whose answer is dropped: its tokens were used all the same.
    fn settle_draft(&mut self, answer: Option<AnswerDraft>, fx: &mut Effects) {
        if let Some(answer) = answer {
            self.settle_call(answer.finish().usage, fx);
        }
    }

    /// The call is retried after a wait, or the turn ends. What was received of a broken answer is retracted first,
    /// as if another arm continued; what tools have done stays.
    pub(super) fn on_call_failed(
        &mut self,
        attempt: u32,
        answer: Option<AnswerDraft>,
        mut error: ProviderError,
        fx: &mut Effects,
    ) -> Phase {
        let retracted = answer.as_ref().is_some_and(AnswerDraft::has_content);
        if let Some(wait) = self.limits.retry_wait(attempt, self.waited, &error, retracted) {
            self.waited += wait;
            self.settle_draft(answer, fx);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let limit = Some(self.limits.attempt_limit(&error, retracted, self.waited));
            fx.push(Effect::Emit(Event::Retrying {
                error,
                attempt: attempt + 1,
                wait_ms,
                retracted,
                limit,
            }));
            fx.push(Effect::SetTimer(Some((Timer::Backoff, wait))));
            return Phase::Backoff { attempt };
        }
        // Of a wait that is not believed, the message says how long it is.
        let believed = error.retry_after.filter(|asked| *asked < MAX_RETRY_AFTER);
        // A limit of the person's own settings says by itself when there is room, and no provider asked for it.
        let is_asked = error.kind.is_transient() && error.provider != OWN;
        if let Some(asked) = believed.filter(|_| is_asked) {
            error.message = format!(
                "{} (the provider asks to wait {})",
                error.message,
                duration::format_duration(asked)
            );
        }
        let kept_partial = answer.and_then(|answer| self.append_answer(answer, fx)).is_some();
        self.finish(Outcome::Failed { error, kept_partial }, fx)
    }
}
