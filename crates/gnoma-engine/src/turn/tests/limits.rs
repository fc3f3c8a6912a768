//! Endless loops are stopped.

use gnoma_core::{
    StopReason, StreamEvent, ToolOutcome,
    tool::{CommandReport, ToolOutput},
};

use super::steps::*;
use crate::{effect::Effect, turn::*};

#[test]
fn endlessly_repeated_tool_call_ends_the_turn() {
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
fn duplicate_tool_call_ids_are_made_unique_in_a_conversation() {
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
fn endless_answer_is_cut_at_the_size_limit() {
    let mut turn = started(Limits::default());
    let fx = feed(&mut turn, [text(&"x".repeat(gnoma_core::stream::MAX_RESPONSE_BYTES + 1))]);
    assert!(closes(&fx));
    assert!(opens(&fx, 2, 1), "it is continued");
    let mut turn = started(Limits::default());
    let name = "n".repeat(1 << 20);
    for slot in 0..100 {
        let start = StreamEvent::ToolCallStart { slot, id: String::new(), name: name.clone() };
        if closes(&feed(&mut turn, [stream(Ok(start))])) {
            return;
        }
    }
    panic!("calls without end are taken");
}

#[test]
fn repeatedly_denied_tool_call_ends_the_turn() {
    let mut turn = started(Limits::default());
    let mut rounds = 0;
    while turn.may_use_tools() {
        rounds += 1;
        assert!(rounds < 10, "it never ended");
        let id = format!("c{rounds}");
        feed(&mut turn, call(0, &id, "bash", "{\"command\":\"make\"}"));
        let refused = Verdict::Deny { reason: "nobody to ask".into() };
        feed(
            &mut turn,
            [stop(StopReason::ToolUse), Input::Judged(CallId::new(id), refused, Box::default())],
        );
    }
    assert_paired(turn.history(), false);
}

#[test]
fn tool_calls_over_the_round_limit_get_results_without_running() {
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

fn run_check(turn: &mut Turn, id: &str, exit_code: i32) {
    let report = Some(CommandReport {
        command: "cargo test".into(),
        exit_code: Some(exit_code),
        walled: None,
        trial: None,
    });
    let report = ToolOutcome::Done(ToolOutput { report, ..ToolOutput::from_text("output") });
    feed(turn, call(0, id, "bash", &format!("{{\"command\":\"{id}\"}}")));
    feed(turn, [stop(StopReason::ToolUse), allow(id), ended(CallId::new(id), report)]);
}

#[test]
fn turn_whose_last_check_failed_ends_with_a_warning_whatever_the_answer_says() {
    const WARNING: &str = "the last run of `cargo test` failed";
    for answer in ["Done, all tests pass.", "Die Tests laufen noch nicht."] {
        let mut turn = started(Limits::default());
        run_check(&mut turn, "a", 101);
        let fx = feed(&mut turn, [text(answer), stop(StopReason::EndTurn)]);
        assert_eq!(notices(&fx), [WARNING]);
        assert!(matches!(outcome(&fx), Some(Outcome::Complete { .. })));
        let fx = feed(&mut turn, [Input::Say(Message::user_text("thanks"))]);
        assert!(notices(&fx).is_empty(), "{fx:?}");
    }
    let mut turn = started(Limits::default());
    run_check(&mut turn, "a", 101);
    run_check(&mut turn, "b", 0);
    let fx = feed(&mut turn, [text("Fixed."), stop(StopReason::EndTurn)]);
    assert!(notices(&fx).is_empty(), "{fx:?}");
}

#[test]
fn check_of_the_project_that_passes_clears_a_failed_one() {
    for passes in [true, false] {
        let mut turn = delivering(Limits::default(), Delivery::Checked);
        run_check(&mut turn, "a", 101);
        feed(&mut turn, [text("Done."), stop(StopReason::EndTurn)]);
        let commands = vec!["cargo test".to_owned()];
        let checks = Checks { tool: "bash".into(), commands, else_review: false };
        let fx = feed(&mut turn, [FinishInput::Prove(checks)]);
        let judged = fx.iter().find_map(|effect| match effect {
            Effect::Judge(call) => Some(call.id.clone()),
            _ => None,
        });
        let check = judged.unwrap();
        let report = CommandReport {
            command: "cargo test".into(),
            exit_code: Some(i32::from(!passes)),
            walled: None,
            trial: None,
        };
        let output = ToolOutput { report: Some(report), ..ToolOutput::from_text("output") };
        let ended = ended(check.clone(), ToolOutcome::Done(output));
        feed(&mut turn, [allow(check.as_str()), ended]);
        let fx = feed(&mut turn, [FinishInput::Checked(WorkCheckOutcome::Deliver)]);
        assert_eq!(notices(&fx).is_empty(), passes, "{fx:?}");
    }
}

#[test]
fn turn_ends_at_the_round_limit() {
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
fn repetition_in_tool_call_arguments_stops_the_stream_and_notes_it() {
    let mut turn = started(Limits::default());
    feed(&mut turn, call(0, "a", "edit", "{\"path\":\"x\",\"content\":\""));
    for _ in 0..2_000 {
        let fragment = "A tiny calculator. Version 4.2.\\n\\n".to_owned();
        let delta = StreamEvent::ToolCallDelta { slot: 0, fragment };
        let fx = feed(&mut turn, [stream(Ok(delta))]);
        if closes(&fx) {
            assert!(opens(&fx, 2, 1));
            let note = turn.history().last().unwrap().text_content();
            assert!(note.starts_with("[system] You were repeating"), "{note}");
            return;
        }
    }
    panic!("it went on for ever");
}
