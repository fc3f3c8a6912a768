//! Turns, step by step.

mod failures;
mod lean;
mod limits;
mod step_commands;
pub(super) mod steps;

use gnoma_core::{
    ErrorKind, ProviderError, Role, StopReason, ToolOutcome, session::PermissionAnswer as Reply,
};

use self::steps::*;
use crate::{
    call::Room,
    compact::SummarizedRange,
    effect::{CallEffect, Effect},
    turn::*,
};

#[test]
fn a_turn_with_tools_ends_with_the_answer() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "read", "{}"));
    let fx = feed(&mut turn, [stop(StopReason::ToolUse)]);
    assert_eq!(judges(&fx), 1);
    assert_eq!(runs(&feed(&mut turn, [allow("a")])), ["a"]);
    let fx = feed(&mut turn, [done("a", "out")]);
    assert!(opens(&fx, 2, 1));
    let fx = feed(&mut turn, [text("fine"), stop(StopReason::EndTurn)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert_paired(turn.history(), false);
}

#[test]
fn failed_work_check_starts_another_round() {
    let mut turn = delivering(Limits { rounds: 2, ..Limits::default() }, Delivery::Checked);
    let complete = Outcome::Complete { stop: StopReason::EndTurn };
    let fx = feed(&mut turn, [text("done"), stop(StopReason::EndTurn)]);
    assert!(fx.contains(&Effect::Check(complete.clone())) && outcome(&fx).is_none());
    let again = FinishInput::Checked(WorkCheckOutcome::Again { note: "`cargo test` fails".into() });
    assert!(turn.has_rounds());
    let fx = feed(&mut turn, [again]);
    assert!(opens(&fx, 2, 1));
    assert!(!turn.has_rounds(), "the limit is the turn's, not the attempt's");
    assert!(turn.history().last().unwrap().text_content().contains("`cargo test` fails"));
    feed(&mut turn, [text("really done"), stop(StopReason::EndTurn)]);
    let fx = feed(&mut turn, [FinishInput::Checked(WorkCheckOutcome::Deliver)]);
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
    assert!(opens(&fx, 2, 1));
    let fx = feed(&mut turn, [text("more"), stop(StopReason::MaxTokens)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::MaxTokens }));
}

#[test]
fn cancel_waits_for_running_tools_and_keeps_their_output() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "bash", "{}"));
    feed(&mut turn, call(1, "b", "bash", "{}"));
    feed(&mut turn, [stop(StopReason::ToolUse), allow("a")]);
    let fx = feed(&mut turn, [Input::Cancel]);
    assert!(fx.contains(&Effect::StopTools) && !turn.is_idle());
    let cut = ToolOutcome::Interrupted("so far".into());
    let fx = feed(&mut turn, [ended(CallId::new("a"), cut)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Cancelled));
    let results = turn.history().last().unwrap().clone();
    let texts: Vec<_> = results.tool_results().map(gnoma_core::ToolResult::joined_text).collect();
    assert!(texts[0].starts_with("so far"), "{texts:?}");
    assert_paired(turn.history(), false);
}

#[test]
fn queued_message_is_inserted_after_the_tool_results() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "read", "{}"));
    feed(&mut turn, [stop(StopReason::ToolUse), allow("a")]);
    feed(&mut turn, [Input::Say(Message::user_text("also this")), done("a", "out")]);
    let roles: Vec<_> = turn.history().iter().map(|message| message.role()).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
}

#[test]
fn malformed_tool_call_arguments_are_repaired_before_the_permission_check() {
    let written_twice = serde_json::Value::from(r#"{"path":"x"}"#).to_string();
    for written in ["{\"path\": \"x\",}", &written_twice] {
        let mut turn = started(Limits::default());
        feed(&mut turn, call(0, "a", "read", written));
        feed(&mut turn, [stop(StopReason::ToolUse)]);
        let message = turn.history().last().unwrap();
        let call = message.tool_calls().next().unwrap();
        let arguments: serde_json::Value = call.arguments.read().unwrap();
        assert_eq!((arguments["path"].as_str(), call.broken), (Some("x"), false), "{written}");
    }
}

#[test]
fn tool_call_arguments_that_run_equal_those_checked_for_permission() {
    let schema = r#"{"properties":{"command":{"type":"string"},"background":{"type":"boolean"}}}"#;
    let bash = steps::spec("bash", gnoma_core::tool::Access::Execute);
    let parameters = gnoma_core::RawJson::parse(schema).unwrap();
    let bash = Arc::new(ToolSpec { parameters, ..(*bash).clone() });
    let mut turn = Turn::new(vec![], &[bash], Limits::default());
    feed(&mut turn, [Input::Say(Message::user_text("do it"))]);
    feed(&mut turn, call(0, "a", "bash", r#"{"command":"true","background":"True"}"#));
    let fx = feed(&mut turn, [stop(StopReason::ToolUse)]);
    let judged = fx.iter().find_map(|effect| match effect {
        Effect::Judge(call) => Some(call.clone()),
        _ => None,
    });
    let judged = judged.unwrap();
    assert_eq!(judged.arguments.get(), r#"{"command":"true","background":true}"#);
    assert_eq!(turn.history().last().unwrap().tool_calls().next(), Some(&judged));
    let fx = feed(&mut turn, [allow("a")]);
    assert!(fx.contains(&Effect::RunTool(judged)), "{fx:?}");
}

#[test]
fn tool_call_with_a_duplicate_json_key_is_rejected() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "bash", r#"{"command":"ls","command":"rm -rf ."}"#));
    let fx = feed(&mut turn, [stop(StopReason::ToolUse)]);
    assert!(!fx.iter().any(|effect| matches!(effect, Effect::Judge(_))), "{fx:?}");
    let results = turn.history().last().unwrap();
    let said = results.tool_results().next().unwrap().joined_text();
    assert!(said.contains("a field twice"), "{said}");
}

fn states(fx: &Effects) -> Vec<SessionState> {
    let state = |effect: &Effect| match effect {
        Effect::Emit(Event::State(state)) => Some(*state),
        _ => None,
    };
    fx.iter().filter_map(state).collect()
}

#[test]
fn checks_rerun_between_turns_and_a_queued_message_is_answered() {
    let checks = Checks { tool: "bash".into(), commands: vec!["x".into()], else_review: false };
    let allow = || Verdict::Allow { reason: String::new() };
    let mut turn = turn(Limits::default());
    let mut fx = Vec::new();
    turn.handle_input(Input::Run(SeparateWork::Checks(checks.clone())), &mut fx);
    let Some(Effect::Judge(call)) = fx.iter().find(|it| matches!(it, Effect::Judge(_))) else {
        panic!("{fx:?}")
    };
    let call = call.id.clone();
    turn.handle_input(Input::Judged(call.clone(), allow(), Box::default()), &mut fx);
    turn.handle_input(ended(call, ToolOutcome::Interrupted("why".into())), &mut fx);
    assert!(matches!(fx.last(), Some(Effect::Conclude { .. })), "{fx:?}");
    turn.handle_input(FinishInput::Checked(WorkCheckOutcome::Deliver).into(), &mut fx);
    assert!(turn.is_idle() && turn.history().is_empty());
    fx.clear();
    turn.handle_input(
        Input::Run(SeparateWork::Checks(Checks { commands: Vec::new(), ..checks })),
        &mut fx,
    );
    turn.handle_input(Input::Say(Message::user_text("and more")), &mut fx);
    turn.handle_input(FinishInput::Checked(WorkCheckOutcome::Deliver).into(), &mut fx);
    assert!(fx.contains(&CallEffect::Choose.into()), "{fx:?}");
}

#[test]
fn cancel_works_in_every_phase_of_a_turn() {
    use SessionState::{Cancelling, Idle};
    let say = || Input::Say(Message::user_text("do it"));
    let routed = || Input::from(CallInput::Chosen(Ok(Delivery::Checked)));
    let held = || Input::from(held(false));
    let ends = || vec![say(), routed(), held(), text("done"), stop(StopReason::EndTurn)];
    let brief = Arc::default();
    let cut = SummarizedRange { brief, messages: 1, past_tokens: 9, window_tokens: None };
    let checks = Checks { tool: "bash".into(), commands: vec!["x".into()], else_review: false };
    let mut proving = ends();
    proving.push(FinishInput::Prove(checks.clone()).into());
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
            CallInput::Stayed(ProviderError::new(ErrorKind::Overloaded, "p", "why")).into(),
        ],
        vec![
            say(),
            routed(),
            CallInput::Reserved(Room::Filled).into(),
            CompactionInput::Begun(cut.clone()).into(),
        ],
        vec![
            Input::Summary(SummaryCommand::Compact { focus: String::new() }),
            CompactionInput::Begun(cut).into(),
        ],
        ends(),
        vec![Input::Run(SeparateWork::Checks(checks))],
        proving,
    ];
    for path in paths {
        let mut turn = turn(Limits::default());
        let mut fx = Vec::new();
        for input in path {
            turn.handle_input(input, &mut fx);
        }
        assert_eq!(states(&fx), [SessionState::Active]);
        fx.clear();
        turn.handle_input(Input::Cancel, &mut fx);
        assert_eq!(states(&fx), [Cancelling, Idle], "{turn:?}");
        fx.clear();
        turn.handle_input(Input::Cancel, &mut fx);
        assert_eq!(fx, [], "nothing runs any more");
    }
}

#[test]
fn session_closed_while_cancelling_becomes_idle_before_closed() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "bash", "{}"));
    feed(&mut turn, [stop(StopReason::ToolUse), allow("a")]);
    assert_eq!(states(&feed(&mut turn, [Input::Cancel])), [SessionState::Cancelling]);
    assert_eq!(states(&feed(&mut turn, [Input::Close])), []);
    assert_eq!(states(&feed(&mut turn, [Input::GraceOver])), [SessionState::Idle]);
    assert_eq!(states(&feed(&mut turn, [Input::Closed])), [SessionState::Closed]);
}

#[test]
fn second_answer_to_a_permission_question_has_no_effect_but_a_notice() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "bash", "{}"));
    let ask = Verdict::Ask { reason: "r".into(), preview: None, always: None, dangers: Vec::new() };
    feed(
        &mut turn,
        [stop(StopReason::ToolUse), Input::Judged(CallId::new("a"), ask, Box::default())],
    );
    let answer = |answer| Input::Answered(CallId::new("a"), answer);
    assert_eq!(runs(&feed(&mut turn, [answer(Reply::Allow)])), ["a"]);
    for late in [answer(Reply::Always), answer(Reply::Deny { reason: "no".into() })] {
        let fx = feed(&mut turn, [late]);
        assert!(fx.len() == 1 && notices(&fx)[0].contains("`a` is open"), "{fx:?}");
    }
}

#[test]
fn drafted_tool_call_has_its_final_id_and_streams_its_arguments() {
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
