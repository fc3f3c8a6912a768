//! Random walks of a call alone, and the facts for it that the walks of the turn use as well.

use gnoma_core::{ErrorKind, Message, ModelRef, StopReason, StreamEvent};

use super::*;
use crate::{
    compaction::{self, CompactionInput},
    dice::{Dice, walks},
    effect::Timer,
    limits::Limits,
};

/// Facts of a walk.
const STEPS: u64 = 48;

pub(crate) fn arm(model: &str) -> ModelRef {
    ModelRef { provider: "p".into(), model: model.into() }
}

pub(crate) fn failure(kind: ErrorKind) -> ProviderError {
    ProviderError::new(kind, "p", "why")
}

/// There is room for a call of this arm.
pub(crate) fn held(is_lean: bool) -> CallInput {
    CallInput::Reserved(Room::Held(CallArm { name: arm("m"), is_lean, is_agent: false }))
}

/// Any event of a model's answer, or its failure. `calls` counts those that were begun.
pub(crate) fn stream_event(dice: &mut Dice, calls: &mut u32) -> Result<StreamEvent, ProviderError> {
    let slot = *calls;
    Ok(match dice.below(10) {
        0 => StreamEvent::TextDelta { slot: 1_000, text: "t".into() },
        1..=3 => {
            *calls += 1;
            let id = format!("c{}", if dice.one_in(6) { 1 } else { *calls });
            let name = dice.pick(&["read", "edit", "bash", "nonsense"]).to_owned();
            StreamEvent::ToolCallStart { slot: *calls, id, name }
        }
        4 => StreamEvent::ToolCallDelta { slot, fragment: "{".into() },
        5 if dice.one_in(2) => StreamEvent::ToolCallDone { slot },
        5 => StreamEvent::ToolCallDelta { slot, fragment: "}".into() },
        6 => StreamEvent::Stop(StopReason::EndTurn),
        7 | 8 => StreamEvent::Stop(StopReason::ToolUse),
        _ if dice.one_in(3) => StreamEvent::Stop(StopReason::Other),
        _ if dice.one_in(2) => StreamEvent::Stop(StopReason::MaxTokens),
        _ => {
            let kinds = [
                ErrorKind::Network,
                ErrorKind::Protocol,
                ErrorKind::RateLimited,
                ErrorKind::BadRequest,
                ErrorKind::ContextTooLong,
            ];
            return Err(failure(dice.pick(&kinds)));
        }
    })
}

/// Any answer to an effect that the call waits for.
pub(crate) fn reply(dice: &mut Dice, wish: &CallEffect) -> CallInput {
    match (wish, dice.below(4)) {
        (CallEffect::Choose, 0) => CallInput::Chosen(Err(failure(ErrorKind::NotFound))),
        (CallEffect::Choose, 1) => CallInput::Chosen(Ok(Delivery::Conferred)),
        (CallEffect::Choose, 2) => CallInput::Chosen(Ok(Delivery::Checked)),
        (CallEffect::Choose, _) => CallInput::Chosen(Ok(Delivery::Direct)),
        (CallEffect::Reserve { may_compact: true }, 0) => CallInput::Reserved(Room::Filled),
        (CallEffect::Reserve { .. }, 1) if dice.one_in(2) => {
            CallInput::Reserved(Room::Denied(failure(ErrorKind::Quota)))
        }
        (CallEffect::Reserve { .. }, 1) => {
            CallInput::Reserved(Room::Refused(failure(ErrorKind::RateLimited)))
        }
        (CallEffect::FailOver { .. }, 0) => {
            CallInput::Moved { from: arm("a"), to: arm("b"), why: "w".into() }
        }
        (CallEffect::FailOver { error, .. }, _) => CallInput::Stayed(error.clone()),
        (_, _) => held(dice.one_in(4)),
    }
}

/// Whether the fact is an answer to the effect.
pub(crate) fn answers(input: &CallInput, wish: &CallEffect) -> bool {
    match wish {
        CallEffect::Choose => matches!(input, CallInput::Chosen(_)),
        CallEffect::Reserve { .. } => matches!(input, CallInput::Reserved(_)),
        _ => matches!(input, CallInput::Moved { .. } | CallInput::Stayed(_)),
    }
}

/// What the driver does for a call, and what it owes.
#[derive(Debug, Default, PartialEq)]
struct Owed {
    wish: Option<Effect>,
    streams: bool,
    is_settled: bool,
    waits: bool,
    appended: usize,
}

impl Owed {
    fn nothing(appended: usize) -> Self {
        Self { is_settled: true, appended, ..Self::default() }
    }

    fn input(&self, dice: &mut Dice, calls: &mut u32) -> CallInput {
        let any = [
            CallEffect::Choose,
            CallEffect::Reserve { may_compact: true },
            CallEffect::FailOver {
                error: failure(ErrorKind::Network),
                attempt: 1,
                has_content: false,
                was_called: true,
            },
        ];
        match &self.wish {
            _ if dice.one_in(6) => {
                let wish = dice.pick(&any);
                reply(dice, &wish)
            }
            Some(Effect::Call(wish)) => reply(dice, wish),
            Some(_) => CallInput::Compaction(compaction::laws::reply(dice)),
            None if self.streams => CallInput::Stream(stream_event(dice, calls)),
            None => CallInput::BackoffOver,
        }
    }

    /// What the driver does before it feeds a fact.
    fn note(&mut self, input: &CallInput) {
        let is_answered = match (&self.wish, input) {
            (Some(Effect::Call(wish)), input) => answers(input, wish),
            (Some(Effect::Summarize(_)), CallInput::Compaction(input)) => {
                matches!(input, CompactionInput::Ended(_))
            }
            _ => false,
        };
        if is_answered {
            self.wish = None;
        }
        self.waits &= !matches!(input, CallInput::BackoffOver);
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Call(CallEffect::OpenStream { attempt, .. }) => {
                assert!(attempt < 100, "attempts without end");
                assert!(std::mem::take(&mut self.is_settled), "an attempt was not settled");
                self.streams = true;
            }
            Effect::Call(CallEffect::CloseStream) => self.streams = false,
            Effect::Call(CallEffect::Settle(_)) => {
                assert!(!self.streams && !std::mem::replace(&mut self.is_settled, true));
            }
            Effect::StopWaiting => self.wish = None,
            Effect::SetTimer(timer) => {
                assert!(timer.is_none_or(|(timer, _)| timer == Timer::Backoff));
                self.waits = timer.is_some();
            }
            Effect::Emit(Event::Appended(_)) => self.appended += 1,
            Effect::Emit(_) => (),
            wish @ (Effect::Call(_) | Effect::Summarize(_)) => {
                assert_eq!(self.wish.replace(wish), None, "one wait at a time");
            }
            other => panic!("{other:?} is no effect of a call"),
        }
        let all = [self.wish.is_some(), self.streams, self.waits];
        assert!(all.iter().filter(|it| **it).count() <= 1, "{self:?}");
    }
}

#[test]
fn a_call_ends_once_and_every_attempt_is_settled_whatever_happens() {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let (mut ended, mut overflowed) = (0, 0);
    for _ in 0..walks() {
        let history = vec![Message::user_text("do it").into()];
        let mut cx = TurnContext::new(history, Limits::default());
        let (continuations, accepts_empty) = (u32::from(dice.one_in(2)), dice.one_in(2));
        let request = CallRequest { round: 1, continuations, accepts_empty };
        let (mut owed, mut calls) = (Owed::nothing(0), 0);
        let mut call = if dice.one_in(2) {
            Call::choose_arm(request, &mut cx)
        } else {
            Call::begin(request, &mut cx)
        };
        let mut end = None;
        for _ in 0..STEPS {
            cx.effects.drain(..).for_each(|effect| owed.perform(effect));
            let input = owed.input(&mut dice, &mut calls);
            owed.note(&input);
            end = call.handle_input(input, &mut cx);
            if end.is_some() {
                break;
            }
        }
        ended += u64::from(end.is_some());
        if end.is_none() {
            call.cancel(&mut cx);
        }
        cx.effects.drain(..).for_each(|effect| owed.perform(effect));
        // The beginning of an answer that has filled the window, and the note that it is to be continued.
        assert!(matches!(owed.appended, 0 | 2), "{owed:?}");
        overflowed += owed.appended / 2;
        assert_eq!(owed, Owed::nothing(owed.appended));
        let late = Owed::nothing(0).input(&mut dice, &mut calls);
        assert!(call.handle_input(late, &mut cx).is_none() && cx.effects.is_empty(), "{cx:?}");
    }
    assert!(ended > walks() / 2 && overflowed > 10, "{ended} ended, {overflowed} overflowed");
}
