//! Small models: what they are offered after a call that led nowhere.

use gnoma_core::{
    FormatStage, RawJson, ToolChoice,
    tool::{ToolOutput, Touches},
};
use gnoma_engine::Shape;

use super::*;

/// A session with a small model that says this, and with a file that can be edited from the second try on.
fn small(answers: Vec<Answer>) -> Run {
    sized(answers, true, None)
}

/// A session whose answers must fit `shape`, with a model that is small or not.
fn sized(answers: Vec<Answer>, is_small: bool, shape: Option<Shape>) -> Run {
    let provider = Arc::new(FakeProvider::new(answers));
    let read = FakeTool::new("fs.read", Access::Read, |_| ToolOutcome::done("1\tx + 1"));
    let read = read.touching(Touches::path("path"));
    let edit = FakeTool::new("fs.edit", Access::Edit, |call| {
        let has = |text: &str| call.arguments.get().contains(text);
        if has("x + 1") && has("x * 2") {
            let output = ToolOutput { diff: Some("+x * 2".into()), ..ToolOutput::text("edited") };
            return ToolOutcome::Done(output);
        }
        ToolOutcome::failed("`old_string` is not in `m.py`")
    });
    let edit = edit.touching(Touches::path("path"));
    let edit = edit.writing(&["path", "old_string", "new_string"]);
    let write = FakeTool::new("fs.write", Access::Edit, |_| ToolOutcome::failed("not here"));
    let write = write.touching(Touches::path("path")).writing(&["path", "content"]);
    let bash = FakeTool::new("bash", Access::Execute, |_| ToolOutcome::done("ok"));
    let tools = [read, edit, write, bash].map(|tool| Arc::new(tool) as Arc<dyn Tool>);
    let firewall = firewall();
    let mut arm = Arm::new(Connection::new(Arc::clone(&provider) as _, false), "m");
    arm.lean = Some(is_small);
    let routes = Arc::new(Routes::single(arm));
    let mode = (PermissionMode::Bypass, false);
    let keeping = Keeping::default();
    let options = options(routes, firewall, tools.into(), mode, keeping, (Vec::new(), None));
    Run { handle: Session::spawn(Options { shape, ..options }), provider }
}

/// The names of the tools in each request, and whether one had to be called.
fn offered(run: &Run) -> Vec<(Vec<String>, bool)> {
    let requests = run.provider.requests();
    let offer = |request: &gnoma_core::ModelRequest| {
        let names = request.tools.iter().map(|spec| spec.name.clone()).collect();
        (names, request.tool_choice == ToolChoice::Required)
    };
    requests.iter().map(offer).collect()
}

#[tokio::test(start_paused = true)]
async fn after_a_change_that_failed_only_reading_is_left() {
    let edit = |old: &str| {
        let arguments = format!(r#"{{"path":"m.py","old_string":"{old}","new_string":"x * 2"}}"#);
        Answer::calls(&[("c", "fs.edit", &arguments)])
    };
    let mut run = small(vec![
        edit("return 2"),
        Answer::text("I could not do it."),
        Answer::calls(&[("r", "fs.read", r#"{"path":"m.py"}"#)]),
        Answer::text("```py\nx * 2\n```"),
        Answer::text("I did not change anything."),
        Answer::text("double() now returns x * 2."),
    ]);
    run.say("double() in m.py is wrong. Fix it.");
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
    let all: Vec<String> = ["fs.read", "fs.edit", "fs.write", "bash"].map(str::to_owned).into();
    let offered = offered(&run);
    assert_eq!(offered[0], (all, true), "work is asked for");
    assert_eq!(offered[2], (vec!["fs.read".to_owned()], true), "a read is required");
    assert_eq!(offered[3], (Vec::new(), false), "what it has read it writes anew");
    assert_eq!(offered.len(), 6, "what was done is not denied");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_made_twice_is_not_offered_for_a_round() {
    let check = || Answer::calls(&[("c", "bash", r#"{"command":"python3 m.py"}"#)]);
    let mut run = small(vec![check(), check(), Answer::text("It prints ok.")]);
    run.say("run m.py");
    run.until_idle().await;
    let names = offered(&run).pop().unwrap().0;
    assert_eq!(names, ["fs.read", "fs.edit", "fs.write"], "bash has said all it can");
}

/// Any file that is there; the tool makes its words up.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

/// What each request said last, and whether tools were on offer.
fn asked(run: &Run) -> Vec<(String, bool)> {
    let requests = run.provider.requests();
    let last = |request: &gnoma_core::ModelRequest| {
        (request.messages.last().unwrap().text_content(), !request.tools.is_empty())
    };
    requests.iter().map(last).collect()
}

/// gnoma reads the file, the model writes it anew, and that is the edit.
#[tokio::test(start_paused = true)]
async fn a_small_model_is_shown_the_file_and_writes_it_whole() {
    let mut run = small(vec![
        Answer::text("Here it is:\n```toml\nx * 2\n```\nNow it doubles."),
        Answer::text("It returns x * 2."),
        Answer::text("It was x + 1."),
    ]);
    run.say(&format!("double() in {FILE} is wrong. Fix it."));
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
    let started = events.iter().filter_map(|event| match event {
        Event::ToolStarted { call } => Some((call.name.clone(), call.arguments.clone())),
        _ => None,
    });
    let started: Vec<_> = started.collect();
    let [(read, _), (edit, arguments)] = &*started else { panic!("{started:?}") };
    assert_eq!((&**read, &**edit), ("fs.read", "fs.edit"));
    let arguments: serde_json::Value = arguments.read().unwrap();
    assert_eq!(
        (&arguments["old_string"], &arguments["new_string"]),
        (&"x + 1".into(), &"x * 2".into())
    );
    run.say("What was in it before?");
    run.until_idle().await;
    let asked = asked(&run);
    let [(write, false), (report, false), (later, false)] = &*asked else { panic!("{asked:?}") };
    assert!(write.contains("```toml\nx + 1\n```") && write.contains("Fix it."), "{write}");
    assert!(report.contains("- x + 1\n+ x * 2"), "{report}");
    assert!(later.contains("`x + 1` became `x * 2`") && later.contains("before?"), "{later}");
}

#[tokio::test(start_paused = true)]
async fn a_small_model_that_fails_to_write_a_file_gets_its_tools() {
    let edit = format!(r#"{{"path":"{FILE}","old_string":"x + 1","new_string":"x * 2"}}"#);
    let mut run = small(vec![
        Answer::text("```\n# ... rest of the code\n```"),
        Answer::text("```\nx + 1\n```"),
        Answer::text("I see no fault."),
        Answer::calls(&[("c", "fs.edit", &edit)]),
        Answer::text("It returns x * 2."),
    ]);
    run.say(&format!("double() in {FILE} is wrong. Fix it."));
    run.until_idle().await;
    let asked = asked(&run);
    let [(_, false), (again, false), (_, false), (_, true), (report, false)] = &*asked else {
        panic!("{asked:?}")
    };
    assert!(again.contains("failed: nothing was changed: `# ... rest of the code`"), "{again}");
    assert!(report.contains("+ x * 2"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_question_about_a_file_is_answered_without_tools_and_other_work_is_not() {
    let mut run = small(vec![Answer::text("It adds 1."), Answer::text("It prints 2.")]);
    run.say(&format!("What does double() in {FILE} do?"));
    run.until_idle().await;
    run.say(&format!("Run {FILE}."));
    run.until_idle().await;
    let asked = asked(&run);
    let [(question, false), (_, true)] = &*asked else { panic!("{asked:?}") };
    assert!(question.contains("x + 1"), "{question}");
}

fn count() -> Shape {
    let schema =
        r#"{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}"#;
    Shape::read(&RawJson::parse(schema).unwrap()).unwrap()
}

/// Names of tools that such a model reads would be its answer.
#[tokio::test(start_paused = true)]
async fn a_small_model_whose_answer_has_a_form_is_shown_no_tools() {
    let fits = || Answer::text(r#"{"count":2}"#);
    let mut run = sized(vec![Answer::text("Two."), fits(), fits()], true, Some(count()));
    run.say("How many legs does a hen have?");
    run.until_idle().await;
    run.say(&format!("How many lines does {FILE} have?"));
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
    let requests = run.provider.requests();
    let [first, again, later] = &*requests else { panic!("{requests:?}") };
    for request in [first, again, later] {
        let [message] = &*request.messages else { panic!("{:?}", request.messages) };
        let text = message.text_content();
        assert!(request.tools.is_empty() && request.format.is_some());
        assert!(text.contains("hen have?") && text.contains(r#""integer""#), "{text}");
        assert!(!text.contains("fs."), "{text}");
    }
    let text = |request: &gnoma_core::ModelRequest| request.messages[0].text_content();
    assert_eq!(again.format.as_ref().unwrap().stage, FormatStage::AnswerNow);
    assert!(text(again).contains("does not fit"), "{}", text(again));
    assert!(text(later).contains("x + 1"), "{}", text(later));
}

#[tokio::test(start_paused = true)]
async fn a_form_takes_no_tools_from_what_needs_them() {
    let fits = || Answer::text(r#"{"count":2}"#);
    for (is_small, said) in
        [(true, "How many files are here?"), (false, "How many legs has a hen?")]
    {
        let mut run = sized(vec![fits()], is_small, Some(count()));
        run.say(said);
        run.until_idle().await;
        assert_eq!(offered(&run)[0].0.len(), 4, "{said}");
    }
}
