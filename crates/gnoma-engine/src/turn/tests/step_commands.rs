//! Commands of tasks' steps: turns of their own, whose output stays whatever ends them.

use gnoma_core::{StopReason, ToolOutcome, session::Outcome};

use super::steps::*;
use crate::turn::*;

fn step() -> Input {
    let (line, command) = ("I ran the step “A”:".to_owned(), "build".to_owned());
    Input::RunCommand(StepCommand { line, command, shell: "bash".to_owned(), timeout_s: 600 })
}

fn last_text(turn: &Turn) -> String {
    turn.history().last().map(|message| message.text_content()).unwrap_or_default()
}

#[test]
fn step_command_has_its_own_time_limit_and_stops_at_an_error() {
    let mut turn = turn(Limits::default());
    let fx = feed(&mut turn, [step()]);
    let judged = fx.iter().find_map(|effect| match effect {
        Effect::Judge(call) => Some(call.arguments.get().to_owned()),
        _ => None,
    });
    let arguments: serde_json::Value = serde_json::from_str(&judged.unwrap()).unwrap();
    let wanted = serde_json::json!({"command": "build", "timeout": 600, "stop_at_error": true});
    assert_eq!(arguments, wanted);
    feed(&mut turn, [allow("gnoma-prompt-1-1")]);
    let fx = feed(&mut turn, [done("gnoma-prompt-1-1", "built")]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert_eq!(last_text(&turn), "I ran the step “A”:\n```\n$ build\nbuilt\n```");
}

#[test]
fn stopped_step_command_leaves_its_command_and_output() {
    let mut turn = turn(Limits::default());
    feed(&mut turn, [step(), allow("gnoma-prompt-1-1")]);
    assert_eq!(outcome(&feed(&mut turn, [Input::Cancel])), None);
    let interrupted = ToolOutcome::Interrupted("half".to_owned());
    let fx = feed(&mut turn, [Input::ToolDone(CallId::new("gnoma-prompt-1-1"), interrupted, 1)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Cancelled));
    let text = "I ran the step “A”:\n```\n$ build\nhalf\n[stopped before it ended]\n```";
    assert_eq!((last_text(&turn).as_str(), turn.history().len()), (text, 1));
}

#[test]
fn step_command_that_was_stopped_before_it_began_says_so() {
    let mut turn = turn(Limits::default());
    feed(&mut turn, [step()]);
    let fx = feed(&mut turn, [Input::Cancel]);
    assert_eq!(outcome(&fx), Some(&Outcome::Cancelled));
    assert!(last_text(&turn).contains("$ build\n[not run: the user stopped"), "{turn:?}");
}
