//! Parts of the window beside the conversation: output that is shown whole, the plan, the keys, remedies.

use gnoma_core::{
    ToolResult,
    plan::{PlanStep, StepStatus},
};

use super::*;
use gnoma_tui::status::{Cost, SpendingParts};

fn ran(scene: &mut Scene, id: &str, command: &str, output: &str) {
    let arguments = RawJson::from_value(&serde_json::json!({ "command": command })).unwrap();
    let call = ToolCall::new(CallId::new(id), "bash", arguments);
    scene.event(Event::ToolStarted { call: call.clone() });
    let result = ToolResult::from_text(&call, output, false);
    scene.event(Event::ToolEnded { call, result, diff: None, duration_ms: 10, command: None });
}

#[test]
fn one_key_shows_folded_output_whole_and_folds_it_again() {
    let mut scene = Scene::new();
    scene.running("count");
    let long: String = (1..=400).map(|line| format!("line {line}\n")).collect();
    ran(&mut scene, "c1", "ls", "a\nb\n");
    ran(&mut scene, "c2", "count", &long);
    scene.ends(complete(), &[]).look();
    let before = scene.finished.len();
    scene.keys("ctrl+o");
    let live = scene.live();
    assert!(live.contains("▾ Bash count") && live.contains("  line 1\n"), "{live}");
    assert!(live.contains("of 400") && !live.contains("line 399"), "{live}");
    scene.keys("pagedown");
    assert!(!scene.live().contains("  line 1\n"));
    scene.keys("left");
    assert!(scene.live().contains("▾ Bash ls"));
    scene.keys("ctrl+o");
    assert!(!scene.live().contains('▾'), "{}", scene.live());
    assert_eq!(scene.finished.len(), before, "nothing is poured into the scrollback");
    scene.keys("ctrl+o").write("next");
    assert_eq!(scene.written(), "next", "what is typed folds it and is written");
    assert!(!scene.live().contains('▾'));
}

#[test]
fn keys_typed_over_shown_output_answer_no_question() {
    let mut scene = Scene::new();
    scene.running("count");
    ran(&mut scene, "c1", "ls", "a\nb\n");
    scene.keys("ctrl+o").wait(5_000).asks("c2", "rm -rf build").took();
    assert!(scene.live().contains("? Bash needs your approval"));
    scene.write("yy");
    assert_eq!(scene.told(), [], "the question was not seen whole");
    assert_eq!(scene.written(), "yy");
}

#[test]
fn plan_stays_in_sight_while_the_model_works_on_it() {
    let step = |text: &str, status| PlanStep { text: text.to_owned(), status };
    let steps = vec![step("look", StepStatus::Done), step("write", StepStatus::Active)];
    let mut scene = Scene::new();
    scene.running("go").event(Event::PlanChanged { steps });
    let live = scene.live();
    assert!(live.contains("Plan · 1 of 2 done\n  ● write\n"), "{live}");
    scene.ends(complete(), &[]);
    assert!(!scene.live().contains("Plan ·"), "only while it works");
}

#[test]
fn keys_are_listed_with_what_they_do() {
    let mut scene = Scene::new();
    scene.send("/keys");
    let said = scene.said();
    for words in
        ["While you write", "Everywhere", "The next permission mode", "cycle_mode", "shift+tab"]
    {
        assert!(said.to_lowercase().contains(&words.to_lowercase()), "{words}: {said}");
    }
}

#[test]
fn remedy_in_a_message_is_a_command_of_the_window() {
    let mut scene = Scene::new();
    let text = "this project has hooks: `gnoma trust` shows what that would allow".to_owned();
    scene.event(Event::Notice { level: NoticeLevel::Warning, text });
    let said = scene.said();
    assert!(said.contains("`/trust` shows") && !said.contains("gnoma trust"), "{said}");
}

#[test]
fn indented_lines_of_a_message_keep_their_indent_when_they_wrap() {
    let mut scene = Scene::new();
    scene.size = Size::new(40, 24);
    let text = "choose one:\n  first, which is rather long for a line of forty columns".to_owned();
    scene.event(Event::Notice { level: NoticeLevel::Warning, text });
    let said = scene.said();
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    assert!(
        lines.len() > 2 && lines[1..].iter().all(|line| line.starts_with("           ")),
        "{said}"
    );
}

/// The facts for which the script of the status line was run since it was last looked at.
fn script_runs(scene: &mut Scene) -> Vec<serde_json::Value> {
    let facts = |effect| match effect {
        Effect::StatusLine(facts) => Some(facts),
        _ => None,
    };
    scene.took().into_iter().filter_map(facts).collect()
}

#[test]
fn status_script_runs_once_a_second_and_its_line_is_shown() {
    let mut scene = Scene::new();
    assert!(script_runs(&mut scene).is_empty());
    scene.state.use_status_sources(true, false);
    scene.wait(10);
    let runs = script_runs(&mut scene);
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["model"]["display_name"], "haiku", "{}", runs[0]);
    assert_eq!(runs[0]["context_window"]["context_window_size"], 200_000, "{}", runs[0]);
    scene.input(Input::StatusLine("\u{1b}[31mmine\u{1b}[0m: \u{1b}[2J12\nmore".to_owned()));
    assert!(scene.live().ends_with("auto mode · mine: 12\n"), "{}", scene.live());
    scene.wait(5_000);
    assert!(script_runs(&mut scene).is_empty(), "nothing has changed");
    scene.event(Event::State(SessionState::Idle)).event(Event::State(SessionState::Idle));
    assert_eq!(script_runs(&mut scene).len(), 1, "and it has not ended yet");
    scene.wait(2_000).input(Input::StatusLine(String::new()));
    assert!(scene.live().contains("anthropic/haiku"), "an empty line shows the usual one");
    scene.running("count");
    for _ in 0..50 {
        scene.input(Input::StatusLine("x".to_owned())).wait(100);
    }
    let runs = script_runs(&mut scene).len();
    assert!((4..=6).contains(&runs), "{runs} in 5 seconds");
}

#[test]
fn status_script_that_fails_is_told_once_and_the_usual_line_is_shown() {
    let mut scene = Scene::new();
    scene.state.use_status_sources(true, false);
    scene.wait(10).input(Input::StatusLine("mine".to_owned()));
    for _ in 0..3 {
        scene.wait(40_000).event(Event::State(SessionState::Idle));
        assert_eq!(script_runs(&mut scene).len().min(1), 1);
        scene.input(Input::StatusScriptFailed("exit code 3".to_owned())).wait(10_000);
        assert!(script_runs(&mut scene).is_empty(), "it is not run every second");
    }
    let (live, said) = (scene.live(), scene.said());
    assert!(live.contains("anthropic/haiku") && !live.contains("mine"), "{live}");
    assert_eq!(said.matches("`status.command` failed (exit code 3)").count(), 1, "{said}");
}

/// How often the ledger was looked at since it was last asked.
fn ledger_looks(scene: &mut Scene) -> usize {
    scene.took().into_iter().filter(|effect| matches!(effect, Effect::ReadSpending)).count()
}

#[test]
fn spending_is_read_after_calls_and_rarely_otherwise() {
    let mut scene = Scene::new();
    scene.wait(1_000);
    assert_eq!(ledger_looks(&mut scene), 0, "nobody wants to see it");
    scene.state.use_status_sources(false, true);
    scene.wait(10);
    assert_eq!(ledger_looks(&mut scene), 1);
    let cost = |micro_usd| Some(Cost { micro_usd, is_partial: false });
    let parts =
        SpendingParts { today: cost(1_200_000), week: cost(8_300_000), cap_percent: Some(62) };
    scene.input(Input::Spending(Some(parts)));
    let live = scene.live();
    assert!(live.contains("today $1.20 · week $8.30 · cap 62%"), "{live}");
    for _ in 0..20 {
        let arm = ModelRef { provider: "anthropic".into(), model: "haiku".into() };
        scene.event(Event::Cost {
            arm,
            call_micro_usd: Some(5),
            turn_micro_usd: 5,
            session_micro_usd: 5,
            estimated: false,
        });
        scene.wait(1_000).input(Input::Spending(None));
    }
    assert!(scene.live().contains("today $1.20"), "what cannot be read changes nothing");
    let looks = ledger_looks(&mut scene);
    assert!((1..=3).contains(&looks), "{looks} in 20 seconds");
    scene.wait(40_000);
    assert_eq!(ledger_looks(&mut scene), 0);
    scene.wait(300_000);
    assert_eq!(ledger_looks(&mut scene), 1, "others spend, too");
    scene.input(Input::StatusSources { has_script: false, has_spending: false });
    assert!(!scene.live().contains("today"), "the settings have changed");
}
