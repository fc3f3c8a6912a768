//! What small models are helped with.

use gnoma_core::{
    StopReason, ToolOutcome,
    session::Outcome,
    tool::{CommandReport, ToolOutput},
};

use super::steps::*;
use crate::turn::*;

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
