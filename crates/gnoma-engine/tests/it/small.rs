//! Small models: what they are offered after a call that led nowhere.

use gnoma_core::{
    ToolChoice,
    tool::{ToolOutput, Touches},
};

use super::*;

/// A session with a small model that says this, and with a file that can be edited from the second try on.
fn small(answers: Vec<Answer>) -> Run {
    let provider = Arc::new(FakeProvider::new(answers));
    let read = FakeTool::new("fs.read", Access::Read, |_| ToolOutcome::done("1\tx + 1"));
    let read = read.touching(Touches::path("path"));
    let edit = FakeTool::new("fs.edit", Access::Edit, |call| {
        if call.arguments.get().contains("x + 1") {
            let output = ToolOutput { diff: Some("+x * 2".into()), ..ToolOutput::text("edited") };
            return ToolOutcome::Done(output);
        }
        ToolOutcome::failed("`old_string` is not in `m.py`")
    });
    let edit = edit.touching(Touches::path("path"));
    let bash = FakeTool::new("bash", Access::Execute, |_| ToolOutcome::done("ok"));
    let tools = [read, edit, bash].map(|tool| Arc::new(tool) as Arc<dyn Tool>);
    let firewall = firewall();
    let mut arm = Arm::new(Connection::new(Arc::clone(&provider) as _, false), "m");
    arm.lean = true;
    let routes = Arc::new(Routes::single(arm));
    let mode = (PermissionMode::Bypass, false);
    let handle = spawn(routes, firewall, tools.into(), mode, Keeping::default(), Vec::new());
    Run { handle, provider }
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
        edit("x + 1"),
        Answer::text("I did not change anything."),
        Answer::text("double() now returns x * 2."),
    ]);
    run.say("double() in m.py is wrong. Fix it.");
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
    let all: Vec<String> = ["fs.read", "fs.edit", "bash"].map(str::to_owned).into();
    let offered = offered(&run);
    assert_eq!(offered[0], (all.clone(), true), "work is asked for");
    assert_eq!(offered[2], (vec!["fs.read".to_owned()], true), "a read is required");
    assert_eq!(offered[3], (all, false));
    assert_eq!(offered.len(), 6, "what was done is not denied");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_made_twice_is_not_offered_for_a_round() {
    let check = || Answer::calls(&[("c", "bash", r#"{"command":"python3 m.py"}"#)]);
    let mut run = small(vec![check(), check(), Answer::text("It prints ok.")]);
    run.say("run m.py");
    run.until_idle().await;
    let names = offered(&run).pop().unwrap().0;
    assert_eq!(names, ["fs.read", "fs.edit"], "bash has said all it can");
}

/// What gnoma reads for it by itself.
#[tokio::test(start_paused = true)]
async fn a_file_that_is_named_is_read_before_a_small_model_is_asked() {
    // Any file that is there; the tool makes its words up.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let edit = format!(r#"{{"path":"{path}","old_string":"x + 1","new_string":"x * 2"}}"#);
    let mut run = small(vec![
        Answer::calls(&[("c", "fs.edit", &edit)]),
        Answer::text("It returns x * 2."),
        Answer::text("It was x + 1."),
    ]);
    run.say(&format!("double() in {path} is wrong. Fix it."));
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
    run.say("What was in it before?");
    run.until_idle().await;
    let requests = run.provider.requests();
    assert_eq!(requests.len(), 3);
    let later = &requests[2].messages;
    let told = later[later.len() - 3].text_content();
    assert!(told.contains("changed") && told.ends_with("What was in it before?"), "{told}");
    let look = later[later.len() - 2].tool_calls().next().unwrap();
    assert_eq!(look.name, "fs.read", "the last file is read afresh");
    let edits = later.iter().flat_map(|it| it.tool_calls()).filter(|it| it.name == "fs.edit");
    assert_eq!(edits.count(), 1, "that of the example: earlier calls are told in words");
    let [.., call, result] = &*requests[0].messages else { panic!("no look") };
    assert_eq!(call.tool_calls().next().unwrap().name, "fs.read");
    assert!(format!("{result:?}").contains("x + 1"));
}
