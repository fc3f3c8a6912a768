//! What tests feed to a turn, and what they look for in its wishes.

use gnoma_core::{
    ErrorKind, ProviderError, RawJson, Role, StopReason, StreamEvent, ToolOutcome,
    tool::{Access, Tier, ToolKind, TouchedResource},
};

pub(in crate::turn) use crate::call::laws::held;
use crate::{
    effect::{CallEffect, Effect},
    turn::*,
};

pub(in crate::turn) fn spec(name: &str, access: Access) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: RawJson::empty_object(),
        access,
        touches: (access == Access::Edit)
            .then(|| TouchedResource::path("path"))
            .into_iter()
            .collect(),
        kind: ToolKind::Other,
        tier: Tier::Full,
    })
}

pub(in crate::turn) fn turn(limits: Limits) -> Turn {
    let tools =
        [spec("read", Access::Read), spec("edit", Access::Edit), spec("bash", Access::Execute)];
    Turn::new(vec![], &tools, limits)
}

pub(in crate::turn) fn text(text: &str) -> Input {
    stream(Ok(StreamEvent::TextDelta { slot: 0, text: text.into() }))
}

pub(in crate::turn) fn stop(stop: StopReason) -> Input {
    stream(Ok(StreamEvent::Stop(stop)))
}

pub(in crate::turn) fn call(slot: u32, id: &str, name: &str, arguments: &str) -> Vec<Input> {
    let start = StreamEvent::ToolCallStart { slot, id: id.into(), name: name.into() };
    let delta = StreamEvent::ToolCallDelta { slot, fragment: arguments.into() };
    vec![stream(Ok(start)), stream(Ok(delta))]
}

pub(in crate::turn) fn allow(id: &str) -> Input {
    Input::Judged(CallId::new(id), Verdict::Allow { reason: "test".into() }, Box::default())
}

pub(in crate::turn) fn done(id: &str, output: &str) -> Input {
    ended(CallId::new(id), ToolOutcome::success_text(output))
}

pub(in crate::turn) fn ended(call: CallId, outcome: ToolOutcome) -> Input {
    Input::ToolEnded { call, outcome, duration_ms: 1, sandbox_denial: None, stop_after: None }
}

/// The wait before another attempt is over.
pub(in crate::turn) fn retry() -> Input {
    CallInput::BackoffOver.into()
}

pub(in crate::turn) fn stream(event: Result<StreamEvent, ProviderError>) -> Input {
    CallInput::Stream(event).into()
}

/// Whether a model is called in this round, for this time.
pub(in crate::turn) fn opens(fx: &Effects, round: u32, attempt: u32) -> bool {
    fx.contains(&CallEffect::OpenStream { round, attempt }.into())
}

pub(in crate::turn) fn closes(fx: &Effects) -> bool {
    fx.contains(&CallEffect::CloseStream.into())
}

pub(in crate::turn) fn error(kind: ErrorKind) -> Input {
    stream(Err(ProviderError::new(kind, "p", "why")))
}

/// Feeds `inputs` to a machine with one arm, which is always there and has room, and gives the wishes
/// that follow from the last one.
pub(in crate::turn) fn feed(
    turn: &mut Turn,
    inputs: impl IntoIterator<Item = impl Into<Input>>,
) -> Effects {
    feed_with(turn, (Delivery::Direct, false), inputs)
}

/// The same, where the work is delivered in this way and the arm may have the lean tool set.
pub(in crate::turn) fn feed_with(
    turn: &mut Turn,
    (delivery, is_lean): (Delivery, bool),
    inputs: impl IntoIterator<Item = impl Into<Input>>,
) -> Effects {
    let mut all = Vec::new();
    for input in inputs {
        all.clear();
        let mut next = Some(input.into());
        while let Some(input) = next.take() {
            let mut fx = Vec::new();
            turn.handle_input(input, &mut fx);
            for effect in &fx {
                next = next.or(match effect {
                    Effect::Call(CallEffect::Choose) => {
                        Some(CallInput::Chosen(Ok(delivery)).into())
                    }
                    Effect::Call(CallEffect::Reserve { .. }) => Some(held(is_lean).into()),
                    Effect::Call(CallEffect::FailOver { error, .. }) => {
                        Some(CallInput::Stayed(error.clone()).into())
                    }
                    _ => None,
                });
            }
            all.append(&mut fx);
        }
    }
    all
}

pub(in crate::turn) fn started(limits: Limits) -> Turn {
    delivering(limits, Delivery::Direct)
}

pub(in crate::turn) fn delivering(limits: Limits, delivery: Delivery) -> Turn {
    let mut turn = turn(limits);
    feed_with(&mut turn, (delivery, false), [Input::Say(Message::user_text("do it"))]);
    turn
}

pub(in crate::turn) fn outcome(fx: &Effects) -> Option<&Outcome> {
    fx.iter().find_map(|effect| match effect {
        Effect::Emit(Event::TurnEnded { outcome, .. }) => Some(outcome),
        _ => None,
    })
}

pub(in crate::turn) fn runs(fx: &Effects) -> Vec<&str> {
    let mut ids = Vec::new();
    for effect in fx {
        if let Effect::RunTool(call) = effect {
            ids.push(call.id.as_str());
        }
    }
    ids
}

pub(in crate::turn) fn judges(fx: &Effects) -> usize {
    fx.iter().filter(|effect| matches!(effect, Effect::Judge(_))).count()
}

/// What providers demand: every call is answered once, in order, in the message right after.
pub(in crate::turn) fn assert_paired(history: &[Arc<Message>], open_allowed: bool) {
    for (at, message) in history.iter().enumerate() {
        let calls: Vec<_> = message.tool_calls().map(|call| call.id.clone()).collect();
        let answers = match history.get(at + 1) {
            Some(next) => next.tool_results().map(|result| result.call_id.clone()).collect(),
            None if open_allowed => continue,
            None => Vec::new(),
        };
        assert_eq!(calls, answers, "message {at} of {history:#?}");
    }
    if let Some(first) = history.first() {
        assert_ne!(first.role(), Role::Tool);
    }
}

pub(in crate::turn) fn notices(fx: &Effects) -> Vec<String> {
    let notice = |effect: &Effect| match effect {
        Effect::Emit(Event::Notice { text, .. }) => Some(text.clone()),
        _ => None,
    };
    fx.iter().filter_map(notice).collect()
}
