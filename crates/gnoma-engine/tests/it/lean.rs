//! Sessions with an arm that has the lean tool set.

use gnoma_core::{
    ToolChoice,
    tool::{ToolKind, TouchedResource},
};

use super::*;

fn lean_session(answers: Vec<Answer>) -> Run {
    lean_session_in(Path::new("/"), Vec::new(), answers)
}

fn lean_session_in(folder: &Path, more: Vec<FakeTool>, answers: Vec<Answer>) -> Run {
    let provider = Arc::new(FakeProvider::new(answers));
    let read = FakeTool::new("fs.read", Access::Read, |_| ToolOutcome::success_text("1\tx + 1"));
    let bash = FakeTool::new("bash", Access::Execute, |_| ToolOutcome::success_text("ok"));
    let read = read.with_touches(TouchedResource::Path("path".into()));
    let tools = [read, bash].into_iter().chain(more).map(|tool| Arc::new(tool) as Arc<dyn Tool>);
    let mut arm = connect_arm(Connection::new(Arc::clone(&provider) as _, false), "m");
    arm.0.lean = Some(true);
    let routes = Arc::new(Routes::with_single_arm(arm));
    let mode = (PermissionMode::Bypass, false);
    let options = options(
        routes,
        firewall(),
        tools.collect(),
        mode,
        PersistenceOptions::default(),
        (Vec::new(), None),
    );
    let place = GatePlace::from_folder(folder);
    Run { handle: Session::spawn(Options { place, ..options }), provider }
}

fn offered_tools(request: &gnoma_core::ModelRequest) -> Vec<&str> {
    request.tools.iter().map(|spec| &*spec.name).collect()
}

#[tokio::test(start_paused = true)]
async fn lean_arm_gets_one_example_and_may_answer_without_a_call() {
    let mut run = lean_session(vec![Answer::text("It adds 1."), Answer::text("Nothing.")]);
    run.say("Fix m.py.");
    run.until_idle().await;
    run.say("What did you change in m.py?");
    run.until_idle().await;
    let requests = run.provider.requests();
    let example = gnoma_engine::prompt::example_messages(false).len();
    for (request, conversation) in requests.iter().zip([1, 3]) {
        assert_eq!(request.messages.len(), example + conversation);
        assert_eq!(request.tool_choice, ToolChoice::Auto);
        assert_eq!(offered_tools(request), ["fs.read", "bash"]);
    }
}

#[tokio::test(start_paused = true)]
async fn call_that_was_made_twice_is_not_offered_for_a_round() {
    let check = || Answer::calls(&[("c", "bash", r#"{"command":"python3 m.py"}"#)]);
    let mut run = lean_session(vec![check(), check(), Answer::text("It prints ok.")]);
    run.say("run m.py");
    run.until_idle().await;
    assert_eq!(offered_tools(run.provider.requests().last().unwrap()), ["fs.read"]);
}

#[tokio::test(start_paused = true)]
async fn lean_model_gets_the_path_named_in_the_prompt_read_first() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let place = folder.path().canonicalize().unwrap();
    let answers = || vec![Answer::text("Settings."), Answer::text("Nothing.")];
    let mut run = lean_session_in(&place, Vec::new(), answers());
    run.say("Was liegt in src?");
    run.until_idle().await;
    run.say("Danke!");
    run.until_idle().await;
    let requests = run.provider.requests();
    assert_eq!(requests.len(), 2);
    let messages = &requests[0].messages;
    let [.., call, result] = &messages[..] else { panic!("{messages:?}") };
    let arguments = call.tool_calls().next().map(|call| call.arguments.get().to_owned());
    assert_eq!(arguments.as_deref(), Some(r#"{"path":"src"}"#));
    assert_eq!(result.role(), gnoma_core::Role::Tool);

    // One that can start elfs lets them read.
    let elf = FakeTool::new("elf", Access::Read, |_| ToolOutcome::success_text("done"));
    let elf = elf.of_kind(ToolKind::StartsSessions);
    let mut run = lean_session_in(&place, vec![elf], answers());
    run.say("Was liegt in src?");
    run.until_idle().await;
    let last = run.provider.requests()[0].messages.last().map(|last| last.role());
    assert_eq!(last, Some(gnoma_core::Role::User));
}
