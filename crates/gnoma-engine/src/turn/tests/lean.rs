//! What differs for arms with the lean tool set.

use gnoma_core::StopReason;

use super::steps::{allow, assert_paired, call, closes, done, feed_with, judges, stop, turn};
use crate::turn::*;

fn lean_turn() -> Turn {
    let mut turn = turn(Limits::default());
    feed(&mut turn, [Input::Say(Message::user_text("do it"))]);
    turn
}

fn feed(turn: &mut Turn, inputs: impl IntoIterator<Item = Input>) -> Effects {
    feed_with(turn, (Delivery::Direct, true), inputs)
}

fn run_call(turn: &mut Turn, id: &str, name: &str, arguments: &str, result: &str) {
    feed(turn, call(0, id, name, arguments));
    let ended = done(id, result);
    feed(turn, [stop(StopReason::ToolUse), allow(id), ended]);
}

#[test]
fn lean_mode_stops_the_stream_at_a_second_tool_call() {
    let mut turn = lean_turn();
    feed(&mut turn, call(0, "a", "read", "{}"));
    let fx = feed(&mut turn, call(1, "b", "edit", "{}").into_iter().take(1));
    assert!(closes(&fx));
    assert_eq!(judges(&fx), 1);
    feed(&mut turn, [allow("a"), done("a", "out")]);
    assert_paired(turn.history(), false);
}

#[test]
fn tool_that_was_called_twice_alike_is_withheld_for_a_round() {
    let mut turn = lean_turn();
    for (id, withheld) in [("a", None), ("b", Some("bash"))] {
        run_call(&mut turn, id, "bash", r#"{"command":"python3 m.py"}"#, "ok");
        assert_eq!(turn.withheld_tool(), withheld);
        assert!(turn.may_use_tools());
    }
    run_call(&mut turn, "c", "read", r#"{"path":"m.py"}"#, "x");
    assert_eq!(turn.withheld_tool(), None, "it is back");
    run_call(&mut turn, "d", "bash", r#"{"command":"python3 m.py"}"#, "ok");
    assert!(!turn.may_use_tools(), "the third is the last");
}
