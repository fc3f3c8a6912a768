//! The attempts at a call: room is made, the stream is opened; and what follows a failure.

use std::{
    ops::ControlFlow::{Break, Continue},
    time::Duration,
};

use gnoma_core::{
    ErrorKind, Event, Message, ModelRef, ProviderError, duration, error::MAX_RETRY_AFTER,
};

use super::{Call, CallEnd, CallStep, Phase, Room, retry};
use crate::{
    compaction::{Compaction, CompactionCause, CompactionEnd, CompactionInput},
    detect::Repetition,
    effect::{CallEffect, Effect, Timer},
    prompt,
    routing::OWN,
    turn_context::TurnContext,
};

impl Call {
    /// Makes room for the first attempt of an arm.
    pub(super) fn reserve_first(&mut self, cx: &mut TurnContext) -> Phase {
        (self.attempt, self.waited) = (1, Duration::ZERO);
        self.reserve(cx)
    }

    pub(super) fn reserve_next(&mut self, cx: &mut TurnContext) -> Phase {
        self.attempt += 1;
        self.reserve(cx)
    }

    fn reserve(&self, cx: &mut TurnContext) -> Phase {
        reserve_with(self.may_compact(cx), cx)
    }

    /// Reports whether compaction may start by itself: once for each call.
    fn may_compact(&self, cx: &TurnContext) -> bool {
        !self.has_compacted && Compaction::may_start(cx)
    }

    pub(super) fn on_reservation(&mut self, room: Room, cx: &mut TurnContext) -> CallStep {
        Continue(match room {
            Room::Held(arm) => {
                self.set_arm(arm);
                self.is_open = true;
                (self.repetition, self.argument_loops) = (Repetition::default(), 0);
                let (round, attempt) = (self.request.round, self.attempt);
                cx.push(CallEffect::OpenStream { round, attempt });
                Phase::Streaming
            }
            Room::Filled if self.may_compact(cx) => start_compaction(None, cx),
            Room::Filled => reserve_with(false, cx),
            Room::Refused(error) => self.fail_over(error, cx),
            Room::Denied(error) => return self.retry_or_fail(error, cx),
        })
    }

    pub(super) fn fail_over(&mut self, error: ProviderError, cx: &mut TurnContext) -> Phase {
        let (was_called, has_content) = (self.is_open, self.draft.has_content());
        if was_called && !has_content && asks_otherwise(&error, cx) {
            self.settle_refusal(cx);
            return self.reserve_next(cx);
        }
        let attempt = self.attempt;
        cx.push(CallEffect::FailOver { error, attempt, has_content, was_called });
        Phase::FailingOver
    }

    /// Another arm answers in place of the one that failed. What was received of its answer is retracted: few wires
    /// let a model continue from a given beginning, a model that is asked to do so repeats or contradicts it, and
    /// what the first had in mind cannot be handed over. Its tokens count all the same.
    pub(super) fn on_failover(
        &mut self,
        from: ModelRef,
        to: ModelRef,
        why: String,
        cx: &mut TurnContext,
    ) -> Phase {
        let retracted = self.draft.has_content();
        self.has_moved = true;
        if let Some(form) = &mut cx.answer_form {
            form.on_failover();
        }
        self.settle(cx);
        cx.emit(Event::ArmChanged { from, to, why, retracted });
        self.reserve_first(cx)
    }

    /// No other arm takes over.
    pub(super) fn on_failover_exhausted(
        &mut self,
        error: ProviderError,
        cx: &mut TurnContext,
    ) -> CallStep {
        let is_too_long = error.kind == ErrorKind::ContextTooLong;
        if !(self.is_open && is_too_long && self.may_compact(cx)) {
            return self.retry_or_fail(error, cx);
        }
        if self.draft.has_words() {
            self.keep_beginning(cx);
        } else {
            self.settle_refusal(cx);
        }
        Continue(start_compaction(Some(error), cx))
    }

    /// What was written before the window was full stays, and the model continues it.
    fn keep_beginning(&mut self, cx: &mut TurnContext) {
        let origin = self.arm.as_ref().map(|arm| arm.name.clone());
        let response = self.settle(cx);
        if response.and_then(|response| cx.append_answer(response, origin)).is_some() {
            cx.append(Message::user_text(prompt::system_note(prompt::CONTINUE)));
        }
    }

    pub(super) fn on_compaction(
        &mut self,
        mut compaction: Compaction,
        refusal: Option<ProviderError>,
        input: CompactionInput,
        cx: &mut TurnContext,
    ) -> CallStep {
        let end = compaction.handle_input(input, cx);
        self.has_compacted |= compaction.is_begun();
        Continue(match (end, refusal) {
            (None, refusal) => Phase::Compacting(compaction, refusal),
            (Some(CompactionEnd::NotPossible), None) => reserve_with(false, cx),
            (Some(_), None) => self.reserve(cx),
            (Some(CompactionEnd::Shortened), Some(_)) => self.reserve_next(cx),
            (Some(CompactionEnd::NotShortened), Some(error)) if error.hint.is_none() => {
                let hint = "Use /compact, switch to a model with a larger window, or start over with /clear.";
                return self.retry_or_fail(error.with_hint(hint), cx);
            }
            (Some(_), Some(error)) => return self.retry_or_fail(error, cx),
        })
    }

    /// The call is retried after a wait, or ends. What was received of a broken answer is retracted first,
    /// as if another arm continued; what tools have done stays.
    pub(super) fn retry_or_fail(
        &mut self,
        mut error: ProviderError,
        cx: &mut TurnContext,
    ) -> CallStep {
        let retracted = self.draft.has_content();
        let wait = retry::next_wait(cx, self.attempt, self.waited, &error, retracted);
        let partial = self.settle(cx);
        if let Some(wait) = wait {
            self.waited += wait;
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let limit = Some(retry::attempt_limit(&cx.limits, self.waited, &error, retracted));
            let attempt = self.attempt + 1;
            cx.emit(Event::Retrying { error, attempt, wait_ms, retracted, limit });
            cx.push(Effect::SetTimer(Some((Timer::Backoff, wait))));
            return Continue(Phase::Backoff);
        }
        // Of a wait that is not believed, the message says how long it is.
        let believed = error.retry_after.filter(|asked| *asked < MAX_RETRY_AFTER);
        // A limit of the person's own settings says by itself when there is room, and no provider asked for it.
        let is_asked = error.kind.is_transient() && error.provider != OWN;
        if let Some(asked) = believed.filter(|_| is_asked) {
            let wait = duration::format_duration(asked);
            error.message = format!("{} (the provider asks to wait {wait})", error.message);
        }
        Break(CallEnd::Failed { error, partial })
    }
}

fn reserve_with(may_compact: bool, cx: &mut TurnContext) -> Phase {
    cx.push(CallEffect::Reserve { may_compact });
    Phase::Reserving
}

fn start_compaction(refusal: Option<ProviderError>, cx: &mut TurnContext) -> Phase {
    let cause = if refusal.is_some() { CompactionCause::Refused } else { CompactionCause::Filled };
    Phase::Compacting(Compaction::start(cause, String::new(), cx), refusal)
}

/// The server has refused the call, perhaps for the form that it asked for: whether there is another
/// way to ask.
fn asks_otherwise(error: &ProviderError, cx: &mut TurnContext) -> bool {
    let Some(form) = cx.answer_form.as_mut().filter(|_| error.kind == ErrorKind::BadRequest) else {
        return false;
    };
    let is_refused = form.refuse_stage();
    if is_refused {
        cx.inform(format!("{error}; asking for the answer's format in another way"));
    }
    is_refused
}
