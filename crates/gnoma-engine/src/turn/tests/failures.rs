//! Calls that fail, answers that break, and waits between attempts.

use std::time::Duration;

use gnoma_core::{ErrorKind, ProviderError, StopReason, StreamEvent, session::AttemptLimit};

use super::steps::*;
use crate::{
    effect::{CallEffect, Effect},
    turn::*,
};

/// The call that is under way fails, and another arm takes over.
fn moves(turn: &mut Turn) -> Effects {
    let arm = |model: &str| ModelRef { provider: "p".into(), model: model.into() };
    let mut fx = Vec::new();
    turn.handle_input(error(ErrorKind::Overloaded), &mut fx);
    let moved = CallInput::Moved { from: arm("a"), to: arm("b"), why: "overloaded".into() };
    fx.extend(feed(turn, [moved]));
    fx
}

#[test]
fn failover_retracts_the_partial_answer_and_asks_another_model() {
    let mut turn = started(Limits::default());
    feed(&mut turn, [text("half an ans")]);
    let fx = moves(&mut turn);
    let changed = |fx: &Effects| {
        fx.iter().find_map(|effect| match effect {
            Effect::Emit(Event::ArmChanged { retracted, .. }) => Some(*retracted),
            _ => None,
        })
    };
    assert_eq!(changed(&fx), Some(true));
    assert!(closes(&fx));
    assert!(opens(&fx, 1, 1));
    assert_eq!(changed(&moves(&mut turn)), Some(false), "nothing had been shown");
    feed(&mut turn, [text("whole"), stop(StopReason::EndTurn)]);
    let said: Vec<_> = turn.history().iter().map(|message| message.text_content()).collect();
    assert_eq!(said, ["do it", "whole"]);
}

fn retrying(fx: &Effects) -> Option<(u32, u64, bool)> {
    fx.iter().find_map(|effect| match effect {
        Effect::Emit(Event::Retrying { attempt, wait_ms, retracted, .. }) => {
            Some((*attempt, *wait_ms, *retracted))
        }
        _ => None,
    })
}

#[test]
fn broken_stream_is_retracted_and_retried() {
    let mut turn = started(Limits::default());
    for (kind, attempt) in [(ErrorKind::Network, 2), (ErrorKind::Protocol, 3)] {
        let fx = feed(&mut turn, [text("par"), error(kind)]);
        let (next, _, retracted) = retrying(&fx).unwrap();
        assert_eq!((next, retracted), (attempt, true), "{fx:?}");
        let fx = feed(&mut turn, [retry()]);
        assert!(opens(&fx, 1, attempt));
    }
    let fx = feed(&mut turn, [text("whole"), stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert_eq!(turn.history().len(), 2, "nothing of what broke is in the history");
    assert_eq!(turn.history()[1].text_content(), "whole");
}

#[test]
fn tool_results_survive_a_retry_of_a_broken_stream() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "c", "bash", "{}"));
    feed(&mut turn, [stop(StopReason::ToolUse), allow("c"), done("c", "ran")]);
    feed(&mut turn, [text("and"), error(ErrorKind::Network), retry()]);
    let fx = feed(&mut turn, [text("so"), stop(StopReason::EndTurn)]);
    assert!(runs(&fx).is_empty() && turn.history().len() == 4, "{:?}", turn.history());
    assert_eq!(turn.history()[3].text_content(), "so");
}

#[test]
fn retries_end_at_the_attempt_limit_and_keep_the_partial_answer() {
    let mut turn = started(Limits { attempts: 2, ..Limits::default() });
    feed(&mut turn, [text("one"), error(ErrorKind::Network), retry()]);
    let fx = feed(&mut turn, [text("two"), error(ErrorKind::Network)]);
    assert!(matches!(outcome(&fx), Some(Outcome::Failed { kept_partial: true, .. })));
    assert_eq!(turn.history()[1].text_content(), "two");

    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [error(ErrorKind::BadRequest)]);
    assert!(matches!(outcome(&fx), Some(Outcome::Failed { kept_partial: false, .. })));
}

/// Waits between attempts until the turn ends, in milliseconds.
fn waits(kind: ErrorKind) -> Vec<u64> {
    waits_within(Limits::default(), &ProviderError::new(kind, "p", "no"))
}

fn waits_within(limits: Limits, error: &ProviderError) -> Vec<u64> {
    let mut turn = started(limits);
    let mut waits = Vec::new();
    loop {
        let fx = feed(&mut turn, [stream(Err(error.clone()))]);
        match retrying(&fx) {
            Some((_, wait_ms, _)) => waits.push(wait_ms),
            None => return waits,
        }
        feed(&mut turn, [retry()]);
    }
}

#[test]
fn overloaded_provider_is_retried_for_minutes_and_other_errors_less() {
    let busy = waits(ErrorKind::Overloaded);
    let all: u64 = busy.iter().sum();
    assert!((240_000..=300_000).contains(&all), "{busy:?}");
    assert!(busy.iter().all(|wait| *wait <= 37_500), "{busy:?}");
    assert_eq!(waits(ErrorKind::Timeout).len(), 1, "each attempt took minutes");
    assert_eq!(waits(ErrorKind::Protocol).len(), 2, "a wrong address stays one");
    assert_eq!(waits(ErrorKind::Garbled).len(), 2, "a server that answers nothing does it again");
    assert!(waits(ErrorKind::Unreachable).iter().sum::<u64>() < 10_000);
    assert!(waits(ErrorKind::Quota).is_empty());
}

#[test]
fn retry_event_has_the_attempt_limit_or_the_remaining_wait() {
    let limit = |kind| {
        let fx = feed(&mut started(Limits::default()), [error(kind)]);
        fx.iter().find_map(|effect| match effect {
            Effect::Emit(Event::Retrying { limit, .. }) => *limit,
            _ => None,
        })
    };
    assert_eq!(limit(ErrorKind::ServerError), Some(AttemptLimit::Attempts(8)));
    assert_eq!(limit(ErrorKind::Garbled), Some(AttemptLimit::Attempts(3)));
    let Some(AttemptLimit::WaitMs(left)) = limit(ErrorKind::Overloaded) else { panic!() };
    assert!((297_000..300_000).contains(&left), "{left}");
}

#[test]
fn http_504_or_a_short_timeout_is_retried_more_than_a_long_silence() {
    let silent = ProviderError::new(ErrorKind::Timeout, "p", "no answer");
    let told = ProviderError { status: Some(504), ..silent.clone() };
    assert_eq!(waits_within(Limits::default(), &told).len(), 7);
    let short = Duration::from_secs(30);
    let limits = Limits { first_byte: short, silence: short, ..Limits::default() };
    assert_eq!(waits_within(limits, &silent).len(), 2);
}

#[test]
fn retry_after_is_respected_up_to_a_maximum() {
    let limited = |seconds| {
        let mut error = ProviderError::new(ErrorKind::RateLimited, "p", "busy");
        error.retry_after = Some(Duration::from_secs(seconds));
        stream(Err(error))
    };
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [limited(90)]);
    assert_eq!(retrying(&fx), Some((2, 90_000, false)));
    feed(&mut turn, [retry()]);
    let fx = feed(&mut turn, [limited(0)]);
    assert!(retrying(&fx).unwrap().1 >= 500, "no storm of requests");
    feed(&mut turn, [retry()]);
    let fx = feed(&mut turn, [limited(3_600)]);
    assert!(matches!(outcome(&fx), Some(Outcome::Failed { .. })), "{fx:?}");
}

#[test]
fn complete_tool_call_runs_despite_an_unknown_stop_reason() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "c", "bash", "{}"));
    let done = stream(Ok(StreamEvent::ToolCallDone { slot: 0 }));
    let fx = feed(&mut turn, [done, stop(StopReason::Other)]);
    assert_eq!(judges(&fx), 1, "{fx:?}");
}

#[test]
fn empty_answer_with_unknown_stop_reason_is_retried() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [stop(StopReason::Other)]);
    assert!(retrying(&fx).is_some(), "{fx:?}");
}

#[test]
fn partial_answer_with_unknown_stop_reason_is_kept_and_fails_the_turn() {
    let mut turn = started(Limits::default());
    let word = StreamEvent::UnknownStop { word: "OTHER".into() };
    let fx = feed(&mut turn, [text("part"), stream(Ok(word)), stop(StopReason::Other)]);
    let Some(Outcome::Failed { error, kept_partial: true }) = outcome(&fx) else {
        panic!("{fx:?}")
    };
    assert!(error.message.contains("`OTHER`"), "{error:?}");
    assert_eq!(turn.history()[1].text_content(), "part");
    // Without a word nothing says that something is missing.
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [text("all"), stop(StopReason::Other)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::Other }));
}

#[test]
fn truncated_tool_call_with_unknown_stop_reason_is_retried() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "c", "bash", r#"{"comm"#));
    let word = StreamEvent::UnknownStop { word: "odd".into() };
    let fx = feed(&mut turn, [stream(Ok(word)), stop(StopReason::Other)]);
    let failed = fx.iter().find_map(|effect| match effect {
        Effect::Emit(Event::Retrying { error, .. }) => Some(error.message.clone()),
        _ => None,
    });
    assert_eq!(failed.unwrap(), "the answer ended in the middle of a call (`odd`)");
}

#[test]
fn malformed_function_call_stop_reason_is_retried() {
    for word in ["MALFORMED_FUNCTION_CALL", "unexpected_tool_use"] {
        let mut turn = started(Limits::default());
        let word = StreamEvent::UnknownStop { word: word.into() };
        let fx = feed(&mut turn, [text("so"), stream(Ok(word)), stop(StopReason::Other)]);
        assert!(retrying(&fx).is_some(), "{fx:?}");
    }
}

/// Gemini ends like this now and then. A third time it is taken as meant.
#[test]
fn empty_answer_is_retried_twice() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [stop(StopReason::EndTurn)]);
    assert!(retrying(&fx).is_some(), "{fx:?}");
    let fx = feed(&mut turn, [retry(), stop(StopReason::EndTurn)]);
    assert!(retrying(&fx).is_some(), "{fx:?}");
    let fx = feed(&mut turn, [retry(), stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert!(notices(&fx)[0].contains("returned an empty answer"), "{fx:?}");
}

#[test]
fn answer_of_only_thinking_warns_of_an_empty_answer() {
    let mut turn = started(Limits::default());
    let thought = StreamEvent::ThinkingDelta { slot: 0, text: "hm".into() };
    let fx = feed(&mut turn, [stream(Ok(thought)), stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert!(notices(&fx)[0].contains("thought, but gave no answer"), "{fx:?}");
}

#[test]
fn answer_of_only_white_space_warns_of_an_empty_answer() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [text(" \n"), stop(StopReason::EndTurn)]);
    assert!(notices(&fx)[0].contains("only white space"), "{fx:?}");
}

fn compacts(fx: &Effects) -> bool {
    fx.iter().any(|effect| matches!(effect, Effect::Summarize(_)))
}

/// Servers that cut a prompt at the end of the window, or answer nothing there.
#[test]
fn max_tokens_stop_without_output_compacts_the_conversation() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [stop(StopReason::MaxTokens)]);
    let Some(Effect::Call(CallEffect::FailOver { error, .. })) =
        fx.iter().find(|effect| matches!(effect, Effect::Call(CallEffect::FailOver { .. })))
    else {
        panic!("{fx:?}")
    };
    assert_eq!(error.kind, ErrorKind::ContextTooLong);
    assert!(compacts(&fx), "{fx:?}");
}

#[test]
fn max_tokens_stop_with_only_white_space_compacts_the_conversation() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [text(" "), stop(StopReason::MaxTokens)]);
    assert!(compacts(&fx), "{fx:?}");
}

#[test]
fn max_tokens_stop_after_hidden_reasoning_does_not_compact() {
    let mut turn = started(Limits::default());
    let usage = Usage { input: 9, output: 500, ..Usage::default() };
    let fx = feed(&mut turn, [stream(Ok(StreamEvent::Usage(usage))), stop(StopReason::MaxTokens)]);
    assert!(!compacts(&fx), "{fx:?}");
}

#[test]
fn context_overflow_in_the_middle_of_an_answer_keeps_its_beginning_and_compacts() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [text("the beginning"), error(ErrorKind::ContextTooLong)]);
    assert!(compacts(&fx), "{fx:?}");
    assert_eq!(turn.history()[1].text_content(), "the beginning");
}

#[test]
fn long_retry_after_is_shown_in_hours() {
    let mut limited = ProviderError::new(ErrorKind::RateLimited, "p", "slow down");
    limited.retry_after = Some(Duration::from_hours(23));
    let fx = feed(&mut started(Limits::default()), [stream(Err(limited))]);
    let Some(Outcome::Failed { error, .. }) = outcome(&fx) else { panic!("{fx:?}") };
    assert_eq!(error.message, "slow down (the provider asks to wait 23h)");
}

#[test]
fn truncated_answer_emits_a_continuation_event() {
    let mut turn = started(Limits { continuations: 1, ..Limits::default() });
    let continuing = |fx: &Effects| {
        fx.iter().find_map(|effect| match effect {
            Effect::Emit(Event::Continuing { time, most, joins }) => Some((*time, *most, *joins)),
            _ => None,
        })
    };
    let fx = feed(&mut turn, [text("half"), stop(StopReason::MaxTokens)]);
    assert_eq!(continuing(&fx), Some((1, 1, true)));
    let fx = feed(&mut turn, [text("more"), stop(StopReason::MaxTokens)]);
    assert_eq!(continuing(&fx), None, "that was the last");
}
