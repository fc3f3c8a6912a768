use gnoma_core::{
    ErrorKind, ProviderError, RawJson, Role, StopReason, StreamEvent, ToolOutcome,
    session::{Outcome, PermissionAnswer as Reply},
    tool::{Access, CommandReport, Tier, ToolKind, ToolOutput, Touches},
};

use super::*;
use crate::compact::Cut;

pub(super) fn spec(name: &str, access: Access) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: RawJson::empty_object(),
        access,
        touches: (access == Access::Edit).then(|| Touches::path("path")).into_iter().collect(),
        kind: ToolKind::Other,
        tier: Tier::Full,
    })
}

pub(super) fn turn(limits: Limits) -> Turn {
    let tools =
        [spec("read", Access::Read), spec("edit", Access::Edit), spec("bash", Access::Execute)];
    Turn::new(vec![], &tools, limits)
}

fn text(text: &str) -> Input {
    Input::Model(Ok(StreamEvent::TextDelta { slot: 0, text: text.into() }))
}

fn stop(stop: StopReason) -> Input {
    Input::Model(Ok(StreamEvent::Stop(stop)))
}

fn call(slot: u32, id: &str, name: &str, arguments: &str) -> Vec<Input> {
    let start = StreamEvent::ToolCallStart { slot, id: id.into(), name: name.into() };
    let delta = StreamEvent::ToolCallDelta { slot, fragment: arguments.into() };
    vec![Input::Model(Ok(start)), Input::Model(Ok(delta))]
}

fn allow(id: &str) -> Input {
    Input::Judged(CallId::new(id), Verdict::Allow { reason: "test".into() })
}

fn done(id: &str, output: &str) -> Input {
    Input::ToolDone(CallId::new(id), ToolOutcome::done(output), 1)
}

fn error(kind: ErrorKind) -> Input {
    Input::Model(Err(ProviderError::new(kind, "p", "why")))
}

/// The call that is under way fails, and another arm takes over.
fn moves(turn: &mut Turn) -> Effects {
    let arm = |model: &str| ModelRef { provider: "p".into(), model: model.into() };
    let mut fx = Vec::new();
    turn.on(error(ErrorKind::Overloaded), &mut fx);
    let moved = Input::Moved { from: arm("a"), to: arm("b"), why: "overloaded".into() };
    fx.extend(feed(turn, [moved]));
    fx
}

/// Feeds `inputs` to a machine with one arm, which is always there and has room, and gives the wishes
/// that follow from the last one.
fn feed(turn: &mut Turn, inputs: impl IntoIterator<Item = Input>) -> Effects {
    feed_delivering(turn, Delivery::Direct, inputs)
}

fn feed_delivering(
    turn: &mut Turn,
    delivery: Delivery,
    inputs: impl IntoIterator<Item = Input>,
) -> Effects {
    let mut all = Vec::new();
    for input in inputs {
        all.clear();
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let mut fx = Vec::new();
            turn.on(input, &mut fx);
            for effect in &fx {
                next = next.or(match effect {
                    Effect::Route => Some(Input::Routed(Ok(delivery))),
                    Effect::Reserve { .. } => Some(Input::Reserved(Room::Held)),
                    Effect::FailOver { error, .. } => Some(Input::Stayed(error.clone())),
                    _ => None,
                });
            }
            all.append(&mut fx);
        }
    }
    all
}

fn started(limits: Limits) -> Turn {
    delivering(limits, Delivery::Direct)
}

fn delivering(limits: Limits, delivery: Delivery) -> Turn {
    let mut turn = turn(limits);
    feed_delivering(&mut turn, delivery, [Input::Say(Message::user_text("do it"))]);
    turn
}

fn outcome(fx: &Effects) -> Option<&Outcome> {
    fx.iter().find_map(|effect| match effect {
        Effect::Emit(Event::TurnEnded { outcome, .. }) => Some(outcome),
        _ => None,
    })
}

fn runs(fx: &Effects) -> Vec<&str> {
    let mut ids = Vec::new();
    for effect in fx {
        if let Effect::RunTool(call) = effect {
            ids.push(call.id.as_str());
        }
    }
    ids
}

fn judges(fx: &Effects) -> usize {
    fx.iter().filter(|effect| matches!(effect, Effect::Judge(_))).count()
}

/// What providers demand: every call is answered once, in order, in the message right after.
pub(super) fn assert_paired(history: &[Arc<Message>], open_allowed: bool) {
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

#[test]
fn a_turn_with_tools_ends_with_the_answer() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "read", "{}"));
    let fx = feed(&mut turn, [stop(StopReason::ToolUse)]);
    assert_eq!(judges(&fx), 1);
    assert_eq!(runs(&feed(&mut turn, [allow("a")])), ["a"]);
    let fx = feed(&mut turn, [done("a", "out")]);
    assert!(fx.contains(&Effect::CallModel { round: 2, attempt: 1 }));
    let fx = feed(&mut turn, [text("fine"), stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert_paired(turn.history(), false);
}

#[test]
fn another_arm_answers_anew() {
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
    assert!(fx.contains(&Effect::DropStream));
    assert!(fx.contains(&Effect::CallModel { round: 1, attempt: 1 }));
    assert_eq!(changed(&moves(&mut turn)), Some(false), "nothing had been shown");
    feed(&mut turn, [text("whole"), stop(StopReason::EndTurn)]);
    let said: Vec<_> = turn.history().iter().map(|message| message.text_content()).collect();
    assert_eq!(said, ["do it", "whole"]);
}

#[test]
fn work_that_does_not_hold_goes_on() {
    let mut turn = delivering(Limits { rounds: 2, ..Limits::default() }, Delivery::Checked);
    let complete = Outcome::Complete { stop: StopReason::EndTurn };
    let fx = feed(&mut turn, [text("done"), stop(StopReason::EndTurn)]);
    assert!(fx.contains(&Effect::Check(complete.clone())) && outcome(&fx).is_none());
    let again = Input::Checked(Checked::Again { note: "`cargo test` fails".into() });
    assert!(turn.has_rounds());
    let fx = feed(&mut turn, [again]);
    assert!(fx.contains(&Effect::CallModel { round: 2, attempt: 1 }));
    assert!(!turn.has_rounds(), "the limit is the turn's, not the attempt's");
    assert!(turn.history().last().unwrap().text_content().contains("`cargo test` fails"));
    feed(&mut turn, [text("really done"), stop(StopReason::EndTurn)]);
    let fx = feed(&mut turn, [Input::Checked(Checked::Deliver)]);
    assert_eq!(outcome(&fx), Some(&complete));

    let mut turn = delivering(Limits::default(), Delivery::Checked);
    feed(&mut turn, [text("done"), stop(StopReason::EndTurn)]);
    let fx = feed(&mut turn, [Input::Cancel]);
    assert!(fx.contains(&Effect::StopWaiting) && outcome(&fx) == Some(&Outcome::Cancelled));
}

#[test]
fn reads_run_side_by_side_and_writes_in_order() {
    let mut turn = started(Limits::default());
    for (slot, (id, name)) in
        [("r1", "read"), ("r2", "read"), ("w1", "edit"), ("r3", "read"), ("w2", "bash")]
            .into_iter()
            .enumerate()
    {
        feed(&mut turn, call(u32::try_from(slot).unwrap(), id, name, "{}"));
    }
    let judged = |fx: &Effects| -> Vec<String> {
        let id = |effect: &Effect| match effect {
            Effect::Judge(call) => Some(call.id.to_string()),
            _ => None,
        };
        fx.iter().filter_map(id).collect()
    };
    assert_eq!(judged(&feed(&mut turn, [stop(StopReason::ToolUse)])), ["r1", "r2"]);
    feed(&mut turn, [allow("r1"), allow("r2")]);
    assert!(judged(&feed(&mut turn, [done("r2", "2")])).is_empty());
    assert_eq!(judged(&feed(&mut turn, [done("r1", "1")])), ["w1"]);
    assert_eq!(judged(&feed(&mut turn, [allow("w1"), done("w1", "w")])), ["r3"]);
    assert_eq!(judged(&feed(&mut turn, [allow("r3"), done("r3", "3")])), ["w2"]);
    feed(&mut turn, [allow("w2"), done("w2", "b")]);
    assert_paired(turn.history(), false);
}

#[test]
fn calls_of_an_answer_that_was_cut_are_not_run() {
    let mut turn = started(Limits { continuations: 1, ..Limits::default() });
    feed(&mut turn, call(0, "a", "bash", "{\"command\":\"rm -rf /tmp/x"));
    let fx = feed(&mut turn, [stop(StopReason::MaxTokens)]);
    assert_eq!(judges(&fx), 0);
    assert!(fx.contains(&Effect::CallModel { round: 2, attempt: 1 }));
    let fx = feed(&mut turn, [text("more"), stop(StopReason::MaxTokens)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::MaxTokens }));
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
fn a_broken_answer_is_taken_back_and_asked_for_again() {
    let mut turn = started(Limits::default());
    for (kind, attempt) in [(ErrorKind::Network, 2), (ErrorKind::Protocol, 3)] {
        let fx = feed(&mut turn, [text("par"), error(kind)]);
        let (next, _, retracted) = retrying(&fx).unwrap();
        assert_eq!((next, retracted), (attempt, true), "{fx:?}");
        let fx = feed(&mut turn, [Input::Woke]);
        assert!(fx.contains(&Effect::CallModel { round: 1, attempt }));
    }
    let fx = feed(&mut turn, [text("whole"), stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert_eq!(turn.history().len(), 2, "nothing of what broke is in the history");
    assert_eq!(turn.history()[1].text_content(), "whole");
}

#[test]
fn what_tools_have_done_stays_when_an_answer_breaks() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "c", "bash", "{}"));
    feed(&mut turn, [stop(StopReason::ToolUse), allow("c"), done("c", "ran")]);
    feed(&mut turn, [text("and"), error(ErrorKind::Network), Input::Woke]);
    let fx = feed(&mut turn, [text("so"), stop(StopReason::EndTurn)]);
    assert!(runs(&fx).is_empty() && turn.history().len() == 4, "{:?}", turn.history());
    assert_eq!(turn.history()[3].text_content(), "so");
}

#[test]
fn attempts_end_and_the_last_part_is_kept() {
    let mut turn = started(Limits { attempts: 2, ..Limits::default() });
    feed(&mut turn, [text("one"), error(ErrorKind::Network), Input::Woke]);
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
        let fx = feed(&mut turn, [Input::Model(Err(error.clone()))]);
        match retrying(&fx) {
            Some((_, wait_ms, _)) => waits.push(wait_ms),
            None => return waits,
        }
        feed(&mut turn, [Input::Woke]);
    }
}

#[test]
fn a_busy_provider_is_waited_for_for_minutes_and_others_are_not() {
    let busy = waits(ErrorKind::Overloaded);
    let all: u64 = busy.iter().sum();
    assert!((240_000..=300_000).contains(&all), "{busy:?}");
    assert!(busy.iter().all(|wait| *wait <= 37_500), "{busy:?}");
    assert_eq!(waits(ErrorKind::Timeout).len(), 1, "each attempt took minutes");
    assert_eq!(waits(ErrorKind::Protocol).len(), 2, "a wrong address stays one");
    assert!(waits(ErrorKind::Unreachable).iter().sum::<u64>() < 10_000);
    assert!(waits(ErrorKind::Quota).is_empty());
}

#[test]
fn a_time_out_that_is_told_or_comes_soon_is_no_long_silence() {
    let silent = ProviderError::new(ErrorKind::Timeout, "p", "no answer");
    let told = ProviderError { status: Some(504), ..silent.clone() };
    assert_eq!(waits_within(Limits::default(), &told).len(), 7);
    let short = Duration::from_secs(30);
    let limits = Limits { first_byte: short, silence: short, ..Limits::default() };
    assert_eq!(waits_within(limits, &silent).len(), 2);
}

#[test]
fn a_provider_that_asks_for_a_wait_gets_it_within_limits() {
    let limited = |seconds| {
        let mut error = ProviderError::new(ErrorKind::RateLimited, "p", "busy");
        error.retry_after = Some(Duration::from_secs(seconds));
        Input::Model(Err(error))
    };
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [limited(90)]);
    assert_eq!(retrying(&fx), Some((2, 90_000, false)));
    feed(&mut turn, [Input::Woke]);
    let fx = feed(&mut turn, [limited(0)]);
    assert!(retrying(&fx).unwrap().1 >= 500, "no storm of requests");
    feed(&mut turn, [Input::Woke]);
    let fx = feed(&mut turn, [limited(3_600)]);
    assert!(matches!(outcome(&fx), Some(Outcome::Failed { .. })), "{fx:?}");
}

#[test]
fn whole_calls_are_run_though_the_stop_is_unknown() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "c", "bash", "{}"));
    let done = Input::Model(Ok(StreamEvent::ToolCallDone { slot: 0 }));
    let fx = feed(&mut turn, [done, stop(StopReason::Other)]);
    assert_eq!(judges(&fx), 1, "{fx:?}");
}

#[test]
fn an_answer_of_nothing_with_an_unknown_stop_is_asked_for_again() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [stop(StopReason::Other)]);
    assert!(retrying(&fx).is_some(), "{fx:?}");
}

/// Gemini ends like this now and then. A third time it is taken as meant.
#[test]
fn an_answer_of_nothing_is_asked_for_twice_more() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [stop(StopReason::EndTurn)]);
    assert!(retrying(&fx).is_some(), "{fx:?}");
    let fx = feed(&mut turn, [Input::Woke, stop(StopReason::EndTurn)]);
    assert!(retrying(&fx).is_some(), "{fx:?}");
    let fx = feed(&mut turn, [Input::Woke, stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert!(notices(&fx)[0].contains("gave no output"), "{fx:?}");
}

#[test]
fn long_waits_are_said_in_hours() {
    let mut limited = ProviderError::new(ErrorKind::RateLimited, "p", "slow down");
    limited.retry_after = Some(Duration::from_hours(24));
    let fx = feed(&mut started(Limits::default()), [Input::Model(Err(limited))]);
    let Some(Outcome::Failed { error, .. }) = outcome(&fx) else { panic!("{fx:?}") };
    assert_eq!(error.message, "slow down (the provider asks to wait 24 h)");
}

#[test]
fn an_answer_that_is_cut_says_that_it_goes_on() {
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

#[test]
fn cancelling_waits_for_running_tools_and_keeps_what_they_wrote() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "bash", "{}"));
    feed(&mut turn, call(1, "b", "bash", "{}"));
    feed(&mut turn, [stop(StopReason::ToolUse), allow("a")]);
    let fx = feed(&mut turn, [Input::Cancel]);
    assert!(fx.contains(&Effect::StopTools) && !turn.is_idle());
    let cut = ToolOutcome::Interrupted("so far".into());
    let fx = feed(&mut turn, [Input::ToolDone(CallId::new("a"), cut, 5)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Cancelled));
    let results = turn.history().last().unwrap().clone();
    let texts: Vec<_> = results.tool_results().map(gnoma_core::ToolResult::joined_text).collect();
    assert!(texts[0].starts_with("so far"), "{texts:?}");
    assert_paired(turn.history(), false);
}

#[test]
fn what_is_said_meanwhile_lands_between_results_and_the_next_call() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "read", "{}"));
    feed(&mut turn, [stop(StopReason::ToolUse), allow("a")]);
    feed(&mut turn, [Input::Say(Message::user_text("also this")), done("a", "out")]);
    let roles: Vec<_> = turn.history().iter().map(|message| message.role()).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
}

#[test]
fn broken_arguments_are_mended_before_anything_sees_them() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "read", "{\"path\": \"x\",}"));
    feed(&mut turn, [stop(StopReason::ToolUse)]);
    let message = turn.history().last().unwrap();
    let call = message.tool_calls().next().unwrap();
    let arguments: serde_json::Value = call.arguments.read().unwrap();
    assert_eq!((arguments["path"].as_str(), call.broken), (Some("x"), false));
}

#[test]
fn the_same_call_for_ever_ends_in_an_answer_or_in_nothing() {
    for answers in [true, false] {
        let mut turn = started(Limits::default());
        let mut rounds = 0;
        let mut fx = Vec::new();
        while turn.may_use_tools() {
            rounds += 1;
            assert!(rounds < 10, "it never ended");
            let id = format!("c{rounds}");
            feed(&mut turn, call(0, &id, "read", "{\"path\":\"x\"}"));
            feed(&mut turn, [stop(StopReason::ToolUse), allow(&id), done(&id, "same")]);
        }
        if answers {
            fx.extend(feed(&mut turn, [text("It says same."), stop(StopReason::EndTurn)]));
            assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
        } else {
            feed(&mut turn, call(0, "a", "read", "{\"path\":\"x\"}"));
            fx.extend(feed(&mut turn, [stop(StopReason::ToolUse)]));
            assert!(matches!(outcome(&fx), Some(Outcome::Stuck { .. })));
        }
        assert_paired(turn.history(), false);
    }
}

#[test]
fn calls_of_one_conversation_never_share_a_name() {
    let mut turn = started(Limits::default());
    let mut run = Vec::new();
    for n in 0..3 {
        feed(&mut turn, call(0, "call_0", "read", &format!("{{\"n\":{n}}}")));
        let fx = feed(&mut turn, [stop(StopReason::ToolUse)]);
        let judged = fx.iter().find_map(|effect| match effect {
            Effect::Judge(call) => Some(call.id.to_string()),
            _ => None,
        });
        let id = judged.unwrap();
        feed(&mut turn, [allow(&id), done(&id, &n.to_string())]);
        run.push(id);
    }
    assert_eq!(run, ["call_0", "call_0_2", "call_0_3"]);
    assert_paired(turn.history(), false);
}

#[test]
fn an_answer_without_end_is_cut() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [text(&"x".repeat(gnoma_core::stream::MAX_RESPONSE_BYTES + 1))]);
    assert!(fx.contains(&Effect::DropStream));
    assert!(fx.contains(&Effect::CallModel { round: 2, attempt: 1 }), "it is continued");
    let mut turn = started(Limits::default());
    let name = "n".repeat(1 << 20);
    for slot in 0..100 {
        let start = StreamEvent::ToolCallStart { slot, id: String::new(), name: name.clone() };
        if feed(&mut turn, [Input::Model(Ok(start))]).contains(&Effect::DropStream) {
            return;
        }
    }
    panic!("calls without end are taken");
}

#[test]
fn a_refused_call_is_not_made_for_ever() {
    let mut turn = started(Limits::default());
    let mut rounds = 0;
    while turn.may_use_tools() {
        rounds += 1;
        assert!(rounds < 10, "it never ended");
        let id = format!("c{rounds}");
        feed(&mut turn, call(0, &id, "bash", "{\"command\":\"make\"}"));
        let refused = Verdict::Deny { reason: "nobody to ask".into() };
        feed(&mut turn, [stop(StopReason::ToolUse), Input::Judged(CallId::new(id), refused)]);
    }
    assert_paired(turn.history(), false);
}

#[test]
fn thousands_of_calls_are_answered_and_few_are_run() {
    let mut turn = started(Limits::default());
    for n in 0..10_000 {
        feed(&mut turn, call(n, &format!("c{n}"), "read", &format!("{{\"n\":{n}}}")));
    }
    let fx = feed(&mut turn, [stop(StopReason::ToolUse)]);
    assert_eq!(judges(&fx), Limits::default().calls_per_round);
    for n in 0..128 {
        feed(&mut turn, [allow(&format!("c{n}")), done(&format!("c{n}"), "x")]);
    }
    assert_eq!(turn.history().last().unwrap().tool_results().count(), 10_000);
    assert_paired(turn.history(), false);
}

#[test]
fn a_claim_against_a_red_check_is_held_against_the_model_once() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "bash", "{}"));
    let report =
        Some(CommandReport { command: "cargo test".into(), exit_code: Some(101), walled: None });
    let red = ToolOutcome::Failed(ToolOutput { report, ..ToolOutput::text("FAILED") });
    feed(
        &mut turn,
        [stop(StopReason::ToolUse), allow("a"), Input::ToolDone(CallId::new("a"), red, 1)],
    );
    let fx = feed(&mut turn, [text("Done, all tests pass."), stop(StopReason::EndTurn)]);
    assert!(fx.contains(&Effect::CallModel { round: 3, attempt: 1 }), "{fx:?}");
    let fx = feed(&mut turn, [text("Done, all tests pass."), stop(StopReason::EndTurn)]);
    assert!(matches!(outcome(&fx), Some(Outcome::Complete { .. })));
    let warned = |effect: &Effect| matches!(effect, Effect::Emit(Event::Notice { .. }));
    assert!(fx.iter().any(warned));
}

#[test]
fn rounds_are_limited() {
    let mut turn = started(Limits { rounds: 2, ..Limits::default() });
    for n in 0..2 {
        let id = format!("c{n}");
        feed(&mut turn, call(0, &id, "read", &format!("{{\"n\":{n}}}")));
        let fx =
            feed(&mut turn, [stop(StopReason::ToolUse), allow(&id), done(&id, &n.to_string())]);
        if n == 1 {
            assert_eq!(outcome(&fx), Some(&Outcome::RoundLimit { rounds: 2 }));
        }
    }
}

#[test]
fn arguments_that_go_on_for_ever_are_cut_and_the_model_is_told() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "edit", "{\"path\":\"x\",\"content\":\""));
    for _ in 0..2_000 {
        let fragment = "A tiny calculator. Version 4.2.\\n\\n".to_owned();
        let delta = StreamEvent::ToolCallDelta { slot: 0, fragment };
        let fx = feed(&mut turn, [Input::Model(Ok(delta))]);
        if fx.contains(&Effect::DropStream) {
            assert!(fx.contains(&Effect::CallModel { round: 2, attempt: 1 }));
            let note = turn.history().last().unwrap().text_content();
            assert!(note.starts_with("[system] You were repeating"), "{note}");
            return;
        }
    }
    panic!("it went on for ever");
}

#[test]
fn a_small_model_s_second_call_in_one_answer_is_not_waited_for() {
    let mut turn = started(Limits::default());
    turn.answered_by(ModelRef { provider: "p".into(), model: "m".into() }, true);
    feed(&mut turn, call(0, "a", "read", "{}"));
    let fx = feed(&mut turn, call(1, "b", "edit", "{}").into_iter().take(1));
    assert!(fx.contains(&Effect::DropStream));
    assert_eq!(judges(&fx), 1);
    feed(&mut turn, [allow("a"), done("a", "out")]);
    assert_paired(turn.history(), false);
}

#[test]
fn a_small_model_whose_change_works_twice_must_answer() {
    let mut turn = started(Limits::default());
    let model = ModelRef { provider: "p".into(), model: "m".into() };
    let green = || CommandReport { command: "sh test.sh".into(), exit_code: Some(0), walled: None };
    for n in 0..2 {
        for (name, diff, report) in [("edit", Some("+x"), None), ("bash", None, Some(green()))] {
            assert!(turn.may_use_tools());
            turn.answered_by(model.clone(), true);
            let id = format!("{name}{n}");
            feed(&mut turn, call(0, &id, name, &format!("{{\"path\":\"x{n}\"}}")));
            let output =
                ToolOutput { diff: diff.map(Into::into), report, ..ToolOutput::text("ok") };
            let done = Input::ToolDone(CallId::new(&*id), ToolOutcome::Done(output), 1);
            feed(&mut turn, [stop(StopReason::ToolUse), allow(&id), done]);
        }
    }
    assert!(!turn.may_use_tools());
    let fx = feed(&mut turn, [text("Fixed."), stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
}

#[test]
fn a_change_that_failed_is_not_said_to_be_done() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "edit", "{\"path\":\"calc.py\"}"));
    let failed = Input::ToolDone(CallId::new("a"), ToolOutcome::failed("no match"), 1);
    feed(&mut turn, [stop(StopReason::ToolUse), allow("a"), failed]);
    feed(&mut turn, [text("Done, it is fixed."), stop(StopReason::EndTurn)]);
    let note = turn.history().last().unwrap().text_content();
    assert!(note.starts_with("[system] `calc.py` is not changed"), "{note}");
    let fx = feed(&mut turn, [text("Done, it is fixed."), stop(StopReason::EndTurn)]);
    assert!(matches!(outcome(&fx), Some(Outcome::Complete { .. })));
}

/// A turn of a small model, and what becomes of one call of it.
fn small() -> Turn {
    let mut turn = started(Limits::default());
    turn.answered_by(ModelRef { provider: "p".into(), model: "m".into() }, true);
    turn
}

fn runs_call(turn: &mut Turn, id: &str, name: &str, arguments: &str, outcome: ToolOutcome) {
    feed(turn, call(0, id, name, arguments));
    let over = Input::ToolDone(CallId::new(id), outcome, 1);
    feed(turn, [stop(StopReason::ToolUse), allow(id), over]);
}

fn edited() -> ToolOutcome {
    let output = ToolOutput { diff: Some("+x".into()), ..ToolOutput::text("edited") };
    ToolOutcome::Done(output)
}

#[test]
fn a_small_model_does_not_get_a_tool_that_it_has_called_twice_alike() {
    let mut turn = small();
    for (id, withheld) in [("a", None), ("b", Some("bash"))] {
        runs_call(&mut turn, id, "bash", "{\"command\":\"python3 m.py\"}", ToolOutcome::done("ok"));
        assert_eq!(turn.withheld(), withheld);
        assert!(turn.may_use_tools());
    }
    runs_call(&mut turn, "c", "read", "{\"path\":\"m.py\"}", ToolOutcome::done("x"));
    assert_eq!(turn.withheld(), None, "it is back");
    runs_call(&mut turn, "d", "bash", "{\"command\":\"python3 m.py\"}", ToolOutcome::done("ok"));
    assert!(!turn.may_use_tools(), "the third is the last");
}

#[test]
fn a_small_model_whose_change_failed_reads_before_it_ends() {
    let mut turn = small();
    runs_call(&mut turn, "a", "edit", "{\"path\":\"m.py\"}", ToolOutcome::failed("no match"));
    assert!(!turn.needs_read());
    let fx = feed(&mut turn, [text("I could not do it."), stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), None, "it does not end");
    assert!(turn.needs_read());
    runs_call(&mut turn, "b", "read", "{\"path\":\"m.py\"}", ToolOutcome::done("x + 1"));
    assert!(!turn.needs_read());
    runs_call(&mut turn, "c", "edit", "{\"path\":\"m.py\"}", edited());
    let fx = feed(&mut turn, [text("It returns x * 2 now."), stop(StopReason::EndTurn)]);
    assert!(matches!(outcome(&fx), Some(Outcome::Complete { .. })));
}

#[test]
fn a_small_model_that_repeats_a_change_that_fails_reads_and_keeps_its_tools() {
    let mut turn = small();
    for (id, needs_read) in [("a", false), ("b", true), ("c", true)] {
        runs_call(&mut turn, id, "edit", "{\"path\":\"m.py\"}", ToolOutcome::failed("no match"));
        assert_eq!((turn.needs_read(), turn.withheld()), (needs_read, None));
    }
    assert!(turn.may_use_tools() && turn.needs_read());
    let note = turn.history().last().unwrap().text_content();
    assert!(note.starts_with("[system] `m.py` is not changed"), "{note}");
    runs_call(&mut turn, "d", "read", "{\"path\":\"m.py\"}", ToolOutcome::done("x + 1"));
    runs_call(&mut turn, "e", "edit", "{\"path\":\"m.py\"}", ToolOutcome::failed("no match"));
    assert!(!turn.may_use_tools(), "once is enough");
}

#[test]
fn a_change_that_was_made_is_not_denied() {
    for is_small in [true, false] {
        let mut turn = if is_small { small() } else { started(Limits::default()) };
        runs_call(&mut turn, "a", "edit", "{\"path\":\"calc.py\"}", edited());
        let denies = || [text("I did not change anything."), stop(StopReason::EndTurn)];
        let fx = feed(&mut turn, denies());
        assert_eq!(outcome(&fx), None);
        let note = turn.history().last().unwrap().text_content();
        assert!(note.starts_with("[system] `calc.py` is changed"), "{note}");
        let fx = feed(&mut turn, denies());
        assert!(matches!(outcome(&fx), Some(Outcome::Complete { .. })), "once is enough");
    }
}

/// A turn of a small model that was asked `said`.
fn small_asked(said: &str) -> Turn {
    let mut turn = turn(Limits::default());
    feed(&mut turn, [Input::Say(Message::user_text(said))]);
    turn.answered_by(ModelRef { provider: "p".into(), model: "m".into() }, true);
    turn
}

/// Qwen2.5-Coder-1.5B read the file, answered, and then changed it, nine times over.
#[test]
fn a_small_model_that_was_asked_a_question_changes_nothing() {
    let mut turn = small_asked("How many times does fetch in client.py try by default?");
    runs_call(&mut turn, "a", "read", "{\"path\":\"client.py\"}", ToolOutcome::done("retries=5"));
    let edit = |old: &str| format!("{{\"path\":\"client.py\",\"old_string\":\"{old}\"}}");
    let mut refused = |id: &str, old: &str| {
        feed(&mut turn, call(0, id, "edit", &edit(old)));
        let fx = feed(&mut turn, [stop(StopReason::ToolUse)]);
        let text = turn.history().iter().rev().find(|it| it.tool_results().next().is_some());
        let text = format!("{:?}", text.unwrap());
        assert!(judges(&fx) == 0 && text.contains("wants no change"), "{text}");
        turn.may_use_tools()
    };
    assert!(refused("b", "x"));
    assert!(!refused("c", "y"), "now it has to answer");
    let fx = feed(&mut turn, [text("Five times."), stop(StopReason::EndTurn)]);
    assert!(matches!(outcome(&fx), Some(Outcome::Complete { .. })));
}

#[test]
fn a_small_model_may_change_files_once_somebody_wants_it() {
    let mut turn = small_asked("What does m.py do?");
    feed(&mut turn, call(0, "a", "read", "{\"path\":\"m.py\"}"));
    feed(&mut turn, [Input::Say(Message::user_text("Fix it."))]);
    feed(&mut turn, [stop(StopReason::ToolUse), allow("a"), done("a", "x + 1")]);
    feed(&mut turn, call(0, "b", "edit", "{\"path\":\"m.py\"}"));
    assert_eq!(judges(&feed(&mut turn, [stop(StopReason::ToolUse)])), 1);
}

#[test]
fn a_small_model_that_says_the_same_again_has_answered() {
    let mut turn = small();
    let words = "The function `fetch` now returns the whole content.";
    for (id, is_over) in [("a", false), ("b", true)] {
        let mut said = vec![text(words)];
        said.extend(call(1, id, "edit", &format!("{{\"path\":\"m.py\",\"n\":\"{id}\"}}")));
        feed(&mut turn, said);
        let fx = feed(&mut turn, [stop(StopReason::ToolUse)]);
        assert_eq!(outcome(&fx).is_some(), is_over);
        if !is_over {
            let over = Input::ToolDone(CallId::new(id), edited(), 1);
            feed(&mut turn, [allow(id), over]);
        }
    }
    assert_eq!(turn.history().last().unwrap().text_content(), words);
    assert_paired(turn.history(), false);
}

#[test]
fn a_small_model_that_changes_one_file_over_and_over_must_answer() {
    let mut turn = small();
    for nth in 0..4 {
        assert!(turn.may_use_tools());
        let arguments = format!("{{\"path\":\"m.py\",\"n\":{nth}}}");
        runs_call(&mut turn, &format!("c{nth}"), "edit", &arguments, edited());
    }
    assert!(!turn.may_use_tools());
}

/// It looked for `Version` with grep, found nothing, and said that there was none.
#[test]
fn a_small_model_reads_the_file_that_was_named_before_it_answers() {
    let mut turn = small_asked("Which version does README.md name?");
    let grep = "{\"command\":\"grep Version README.md\"}";
    runs_call(&mut turn, "a", "bash", grep, ToolOutcome::done("(no output)"));
    let none = || [text("The version is not listed in README.md."), stop(StopReason::EndTurn)];
    assert_eq!(outcome(&feed(&mut turn, none())), None);
    let note = turn.history().last().unwrap().text_content();
    assert!(note.starts_with("[system] You have not read `README.md`"), "{note}");
    assert!(matches!(outcome(&feed(&mut turn, none())), Some(Outcome::Complete { .. })), "once");
    for (name, arguments, output) in [
        ("read", "{\"path\":\"./README.md\"}", "Mill 4.2"),
        ("bash", "{\"command\":\"cat README.md\"}", "Mill 4.2"),
    ] {
        let mut turn = small_asked("Which version does README.md name?");
        runs_call(&mut turn, "a", name, arguments, ToolOutcome::done(output));
        let fx = feed(&mut turn, [text("4.2"), stop(StopReason::EndTurn)]);
        assert!(matches!(outcome(&fx), Some(Outcome::Complete { .. })));
        let again = Input::Say(Message::user_text("What is in README.md?"));
        feed(&mut turn, [again]);
        turn.answered_by(ModelRef { provider: "p".into(), model: "m".into() }, true);
        let fx = feed(&mut turn, [text("The version."), stop(StopReason::EndTurn)]);
        assert_eq!(outcome(&fx), None, "each turn looks afresh");
    }
}

fn states(fx: &Effects) -> Vec<SessionState> {
    let state = |effect: &Effect| match effect {
        Effect::Emit(Event::State(state)) => Some(*state),
        _ => None,
    };
    fx.iter().filter_map(state).collect()
}

fn notices(fx: &Effects) -> Vec<String> {
    let notice = |effect: &Effect| match effect {
        Effect::Emit(Event::Notice { text, .. }) => Some(text.clone()),
        _ => None,
    };
    fx.iter().filter_map(notice).collect()
}

#[test]
fn checks_run_again_between_turns_and_who_speaks_meanwhile_is_answered() {
    let checks = Checks { tool: "bash".into(), commands: vec!["x".into()], else_review: false };
    let allow = || Verdict::Allow { reason: String::new() };
    let mut turn = turn(Limits::default());
    let mut fx = Vec::new();
    turn.on(Input::ProveAgain(checks.clone()), &mut fx);
    let Some(Effect::Judge(call)) = fx.iter().find(|it| matches!(it, Effect::Judge(_))) else {
        panic!("{fx:?}")
    };
    let call = call.id.clone();
    turn.on(Input::Judged(call.clone(), allow()), &mut fx);
    turn.on(Input::ToolDone(call, ToolOutcome::Interrupted("why".into()), 1), &mut fx);
    assert!(matches!(fx.last(), Some(Effect::Conclude(_))), "{fx:?}");
    turn.on(Input::Checked(Checked::Deliver), &mut fx);
    assert!(turn.is_idle() && turn.history().is_empty());
    fx.clear();
    turn.on(Input::ProveAgain(Checks { commands: Vec::new(), ..checks }), &mut fx);
    turn.on(Input::Say(Message::user_text("and more")), &mut fx);
    turn.on(Input::Checked(Checked::Deliver), &mut fx);
    assert!(fx.contains(&Effect::Route), "{fx:?}");
}

#[test]
fn every_cancel_is_seen_whatever_runs() {
    use SessionState::{Cancelling, Idle};
    let say = || Input::Say(Message::user_text("do it"));
    let routed = || Input::Routed(Ok(Delivery::Checked));
    let held = || Input::Reserved(Room::Held);
    let ends = || vec![say(), routed(), held(), text("done"), stop(StopReason::EndTurn)];
    let brief = Arc::default();
    let cut = Cut { brief, messages: 1, past_tokens: 9, window_tokens: None };
    let checks = Checks { tool: "bash".into(), commands: vec!["x".into()], else_review: false };
    let mut proving = ends();
    proving.push(Input::Prove(checks.clone()));
    let paths = [
        vec![say()],
        vec![say(), routed()],
        vec![say(), routed(), held()],
        vec![say(), routed(), held(), error(ErrorKind::Overloaded)],
        vec![
            say(),
            routed(),
            held(),
            error(ErrorKind::Overloaded),
            Input::Stayed(ProviderError::new(ErrorKind::Overloaded, "p", "why")),
        ],
        vec![say(), routed(), Input::Reserved(Room::Filled), Input::CompactionBegun(cut.clone())],
        vec![Input::Compact { focus: String::new() }, Input::CompactionBegun(cut)],
        ends(),
        vec![Input::ProveAgain(checks)],
        proving,
    ];
    for path in paths {
        let mut turn = turn(Limits::default());
        let mut fx = Vec::new();
        for input in path {
            turn.on(input, &mut fx);
        }
        assert_eq!(states(&fx), [SessionState::Active]);
        fx.clear();
        turn.on(Input::Cancel, &mut fx);
        assert_eq!(states(&fx), [Cancelling, Idle], "{turn:?}");
        fx.clear();
        turn.on(Input::Cancel, &mut fx);
        assert_eq!(fx, [], "nothing runs any more");
    }
}

#[test]
fn a_session_that_closes_while_it_cancels_passes_through_idle() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "bash", "{}"));
    feed(&mut turn, [stop(StopReason::ToolUse), allow("a")]);
    assert_eq!(states(&feed(&mut turn, [Input::Cancel])), [SessionState::Cancelling]);
    assert_eq!(states(&feed(&mut turn, [Input::Close])), []);
    assert_eq!(states(&feed(&mut turn, [Input::Woke])), [SessionState::Idle]);
    assert_eq!(states(&feed(&mut turn, [Input::Closed])), [SessionState::Closed]);
}

#[test]
fn a_second_answer_is_told_and_does_nothing() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "bash", "{}"));
    let ask = Verdict::Ask { reason: "r".into(), preview: None, always: None };
    feed(&mut turn, [stop(StopReason::ToolUse), Input::Judged(CallId::new("a"), ask)]);
    let answer = |answer| Input::Answered(CallId::new("a"), answer);
    assert_eq!(runs(&feed(&mut turn, [answer(Reply::Allow)])), ["a"]);
    for late in [answer(Reply::Always), answer(Reply::Deny { reason: "no".into() })] {
        let fx = feed(&mut turn, [late]);
        assert!(fx.len() == 1 && notices(&fx)[0].contains("`a` is open"), "{fx:?}");
    }
}

#[test]
fn a_drafted_call_has_the_id_it_keeps_and_shows_its_arguments() {
    let mut turn = started(Limits::default());
    for round in 0..2 {
        let mut fx = Vec::new();
        for input in call(0, "call_0", "read", &format!("{{\"n\":{round}}}")) {
            fx.extend(feed(&mut turn, [input]));
        }
        let [Effect::Emit(Event::ToolCallDrafted { call: id, .. }), Effect::Emit(delta)] = &*fx
        else {
            panic!("{fx:?}")
        };
        let fragment = format!("{{\"n\":{round}}}");
        assert_eq!(*delta, Event::ToolCallDelta { call: id.clone(), fragment });
        feed(&mut turn, [stop(StopReason::ToolUse), allow(id.as_str())]);
        let kept = turn.history().last().unwrap().tool_calls().next().unwrap().clone();
        assert_eq!(kept.id, *id);
        let fx = feed(&mut turn, [done(id.as_str(), &round.to_string())]);
        assert!(fx.iter().any(|effect| matches!(
            effect,
            Effect::Emit(Event::ToolEnded { call, .. }) if *call == kept
        )));
    }
}
