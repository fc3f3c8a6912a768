//! One call to a model, with all that it takes until there is an answer: choosing an arm, making room, several
//! attempts, other arms, waits. Pure: facts in, effects out, as for the turn that starts it.
//!
//! ```text
//! Choosing ── Chosen ──► Reserving ── Held ──► Streaming ── the answer ends ──► Answered
//!                         ▲ ▲ ▲ │ Filled │ Refused    │ it fails
//!                         │ │ │ ▼        ▼            ▼
//!                         │ │ Compacting ◄───── FailingOver ── Moved ──► Reserving
//!                         │ │   too long, and no other arm  │ Stayed
//!                         │ └── another format              ▼
//!                         └───────── BackoffOver ──────── Backoff, or Failed
//! ```
//!
//! What happens on HTTP 429: the attempt fails with an error of kind `RateLimited`; another arm takes over, or
//! [`retry`] says how long to wait for the same one.
//!
//! The laws, whatever the facts and their order:
//!
//! - A call ends once, and wants nothing any more then.
//! - It waits for one thing at a time: the driver, a stream or a timer.
//! - Every attempt that [`CallEffect::OpenStream`] begins is settled once.
//! - It appends nothing to the conversation but the beginning of an answer that has filled the window, and the
//!   note to continue it.

mod attempts;
mod draft;
mod protocol;
mod retry;
mod streaming;

use std::{
    mem,
    ops::ControlFlow::{self, Break, Continue},
    time::Duration,
};

use gnoma_core::{Event, ProviderError, Response};

use self::draft::AnswerDraft;
pub(crate) use self::protocol::{CallArm, CallEnd, CallInput, Delivery, Room};
use crate::{
    compaction::Compaction,
    detect::Repetition,
    effect::{CallEffect, Effect},
    turn_context::TurnContext,
};

/// Signs of a loop in a call's arguments before it counts as one: files may repeat themselves.
const ARGUMENT_LOOPS: u32 = 3;

/// The parameters of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallRequest {
    /// Number of the round, from 1.
    pub(crate) round: u32,
    /// The number of times that the answer was continued after the output limit cut it off.
    pub(crate) continuations: u32,
    /// An empty answer is meant as one: tools have run.
    pub(crate) accepts_empty: bool,
}

/// A call that is under way.
#[derive(Debug, Default)]
pub(crate) struct Call {
    phase: Phase,
    request: CallRequest,
    /// Number of the attempt of the arm, from 1.
    attempt: u32,
    /// A model was called for this attempt, which is not settled yet.
    is_open: bool,
    /// The part of the answer that has come.
    draft: AnswerDraft,
    /// The time that the attempts of the arm have waited.
    waited: Duration,
    /// The arm that answers, once there was room for it.
    pub(crate) arm: Option<CallArm>,
    /// The steps of delivering the work, if the call has chosen the arm of the turn.
    pub(crate) delivery: Option<Delivery>,
    /// Another arm has taken over.
    pub(crate) has_moved: bool,
    /// The conversation was compacted for this call.
    has_compacted: bool,
    repetition: Repetition,
    /// Signs of a loop in the arguments of this answer.
    argument_loops: u32,
}

#[derive(Debug, Default)]
enum Phase {
    /// The call is over.
    #[default]
    Over,
    /// An arm is chosen for the turn.
    Choosing,
    /// Room is made for an attempt.
    Reserving,
    /// The conversation is compacted before the attempt, or because the provider has refused its length with this error.
    Compacting(Compaction, Option<ProviderError>),
    /// The model is being called and answers.
    Streaming,
    /// The attempt failed; whether another arm continues is being decided.
    FailingOver,
    /// The attempt failed; the next one follows after a wait.
    Backoff,
}

/// The next phase, or the end.
type CallStep = ControlFlow<CallEnd, Phase>;

impl Call {
    /// Begins the first call of a turn, for which an arm must be chosen.
    pub(crate) fn choose_arm(request: CallRequest, cx: &mut TurnContext) -> Self {
        cx.push(CallEffect::Choose);
        Self::new(request)
    }

    /// Begins a call of the arm that is in charge of the turn.
    pub(crate) fn begin(request: CallRequest, cx: &mut TurnContext) -> Self {
        let mut call = Self::new(request);
        call.phase = call.reserve_first(cx);
        call
    }

    fn new(request: CallRequest) -> Self {
        Self { phase: Phase::Choosing, request, attempt: 1, ..Self::default() }
    }

    /// Reports whether the call waits for a compaction.
    pub(crate) fn is_compacting(&self) -> bool {
        matches!(self.phase, Phase::Compacting(..))
    }

    /// Takes one fact; returns the end of the call with the last one. Facts that come too late are nothing.
    pub(crate) fn handle_input(
        &mut self,
        input: CallInput,
        cx: &mut TurnContext,
    ) -> Option<CallEnd> {
        let phase = mem::take(&mut self.phase);
        match self.step(phase, input, cx) {
            Continue(phase) => {
                self.phase = phase;
                None
            }
            Break(end) => Some(end),
        }
    }

    fn step(&mut self, phase: Phase, input: CallInput, cx: &mut TurnContext) -> CallStep {
        Continue(match (phase, input) {
            (Phase::Choosing, CallInput::Chosen(Ok(delivery))) => {
                self.delivery = Some(delivery);
                self.reserve_first(cx)
            }
            (Phase::Choosing, CallInput::Chosen(Err(error))) => {
                return self.retry_or_fail(error, cx);
            }
            (Phase::Reserving, CallInput::Reserved(room)) => return self.on_reservation(room, cx),
            (Phase::Streaming, CallInput::Stream(Ok(event))) => {
                return self.on_stream_event(event, cx);
            }
            (Phase::Streaming, CallInput::Stream(Err(error))) => {
                cx.push(CallEffect::CloseStream);
                self.fail_over(error, cx)
            }
            (Phase::Streaming, CallInput::Authored(name)) => {
                self.set_arm(CallArm { name, is_lean: false, is_agent: false });
                Phase::Streaming
            }
            (Phase::FailingOver, CallInput::Moved { from, to, why }) => {
                self.on_failover(from, to, why, cx)
            }
            (Phase::FailingOver, CallInput::Stayed(error)) => {
                return self.on_failover_exhausted(error, cx);
            }
            (Phase::Compacting(compaction, refusal), CallInput::Compaction(input)) => {
                return self.on_compaction(compaction, refusal, input, cx);
            }
            (Phase::Backoff, CallInput::BackoffOver) => self.reserve_next(cx),
            // Too late: its source was dropped.
            (same, _late) => same,
        })
    }

    /// Ends the call at once; returns what had come of an answer.
    pub(crate) fn cancel(&mut self, cx: &mut TurnContext) -> Option<Response> {
        cx.push(match mem::take(&mut self.phase) {
            Phase::Over => return None,
            Phase::Streaming => Effect::Call(CallEffect::CloseStream),
            Phase::Backoff => Effect::SetTimer(None),
            Phase::Choosing | Phase::Reserving | Phase::Compacting(..) | Phase::FailingOver => {
                Effect::StopWaiting
            }
        });
        self.settle(cx)
    }

    /// This arm answers. If one before it was an agent, the turn keeps its rounds.
    fn set_arm(&mut self, mut arm: CallArm) {
        arm.is_agent |= self.arm.as_ref().is_some_and(|before| before.is_agent);
        self.arm = Some(arm);
    }

    /// Ends the attempt, if it is not settled yet: its tokens count for the turn, and it is paid. Returns what had come
    /// of the answer.
    fn settle(&mut self, cx: &mut TurnContext) -> Option<Response> {
        if !mem::take(&mut self.is_open) {
            return None;
        }
        let response = mem::take(&mut self.draft).finish();
        if let Some(round) = response.usage {
            cx.usage += round;
            cx.emit(Event::Usage { round, turn: cx.usage });
        }
        cx.push(CallEffect::Settle(response.usage));
        Some(response)
    }

    /// Ends an attempt that has shown nothing: gnoma's own count is enough.
    fn settle_refusal(&mut self, cx: &mut TurnContext) {
        (self.is_open, self.draft) = (false, AnswerDraft::default());
        cx.push(CallEffect::Settle(None));
    }
}

#[cfg(test)]
pub(crate) mod laws;
