//! Sessions with an arm that has the lean tool set.

use gnoma_core::ToolChoice;

use super::*;

fn lean_session(answers: Vec<Answer>) -> Run {
    let provider = Arc::new(FakeProvider::new(answers));
    let read = FakeTool::new("fs.read", Access::Read, |_| ToolOutcome::done("1\tx + 1"));
    let bash = FakeTool::new("bash", Access::Execute, |_| ToolOutcome::done("ok"));
    let tools = [read, bash].map(|tool| Arc::new(tool) as Arc<dyn Tool>);
    let mut arm = Arm::new(Connection::new(Arc::clone(&provider) as _, false), "m");
    arm.lean = Some(true);
    let routes = Arc::new(Routes::single(arm));
    let mode = (PermissionMode::Bypass, false);
    let handle = spawn(routes, firewall(), tools.into(), mode, Keeping::default(), Vec::new());
    Run { handle, provider }
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
    let example = gnoma_engine::prompt::example(false).len();
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
async fn lean_arm_reads_first_where_the_message_names_a_file() {
    let read = Answer::calls(&[("c", "fs.read", r#"{"path":"Cargo.toml"}"#)]);
    let mut run = lean_session(vec![read, Answer::text("It is a manifest.")]);
    run.say("Was steht in Cargo.toml?");
    run.until_idle().await;
    let requests = run.provider.requests();
    let seen: Vec<_> =
        requests.iter().map(|it| (it.tool_choice.clone(), offered_tools(it))).collect();
    let expected =
        [(ToolChoice::Required, vec!["fs.read"]), (ToolChoice::Auto, vec!["fs.read", "bash"])];
    assert_eq!(seen, expected);
}
