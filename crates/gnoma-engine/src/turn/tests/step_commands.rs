//! Commands of tasks' steps, and steps side by side: turns of their own, whose output stays whatever ends them.

use gnoma_core::{RawJson, StopReason, ToolOutcome};

use super::steps::*;
use crate::{effect::Effect, turn::*};

fn step() -> Input {
    let (line, command) = ("I ran the step “A”:".to_owned(), "build".to_owned());
    Input::Run(SeparateWork::Command(StepCommand {
        line,
        command,
        shell: "bash".to_owned(),
        timeout_s: 600,
    }))
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
    let fx = feed(&mut turn, [ended(CallId::new("gnoma-prompt-1-1"), interrupted)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Cancelled));
    let text = "I ran the step “A”:\n```\n$ build\nhalf\n[stopped before it ended]\n```";
    assert_eq!((last_text(&turn).as_str(), turn.history().len()), (text, 1));
}

#[test]
fn step_command_cancelled_before_it_started_is_marked_not_run() {
    let mut turn = turn(Limits::default());
    feed(&mut turn, [step()]);
    let fx = feed(&mut turn, [Input::Cancel]);
    assert_eq!(outcome(&fx), Some(&Outcome::Cancelled));
    assert!(last_text(&turn).contains("$ build\n[not run: the user stopped"), "{turn:?}");
}

fn side_steps(ids: &[&str]) -> Input {
    let step = |id: &&str| SideCall {
        call: ToolCall::new(CallId::new(*id), "read", RawJson::empty_object()),
        head: format!("step {id}:\n"),
        tail: "",
    };
    Input::Run(SeparateWork::SideSteps(ids.iter().map(step).collect()))
}

fn texts(turn: &Turn) -> Vec<String> {
    turn.history().iter().map(|message| message.text_content()).collect()
}

#[test]
fn parallel_steps_run_at_once_and_report_in_order() {
    let mut turn = turn(Limits::default());
    assert_eq!(judges(&feed(&mut turn, [side_steps(&["a", "b", "c"])])), 3);
    feed(&mut turn, [allow("a"), allow("b"), allow("c"), done("b", "two")]);
    assert!(turn.history().is_empty(), "the first step has not ended");
    feed(&mut turn, [done("a", "one")]);
    assert_eq!(texts(&turn), ["step a:\none", "step b:\ntwo"]);
    let failed = ended(CallId::new("c"), ToolOutcome::failure_text("no"));
    let fx = feed(&mut turn, [failed]);
    assert_eq!(outcome(&fx), Some(&Outcome::Complete { stop: StopReason::EndTurn }));
    assert_eq!(texts(&turn).last().map(String::as_str), Some("step c:\nno"));
}

#[test]
fn cancelled_parallel_steps_keep_finished_results() {
    let mut turn = turn(Limits::default());
    feed(&mut turn, [side_steps(&["a", "b"]), allow("a"), allow("b"), done("b", "two")]);
    assert_eq!(outcome(&feed(&mut turn, [Input::Cancel])), None);
    let interrupted = ToolOutcome::Interrupted(String::new());
    let fx = feed(&mut turn, [ended(CallId::new("a"), interrupted)]);
    assert_eq!(outcome(&fx), Some(&Outcome::Cancelled));
    assert_eq!(texts(&turn), ["step a:\n[stopped before it ended]", "step b:\ntwo"]);
}
