//! Tools that come and go while a session lives.

use std::{sync::Arc, time::Duration};

use gnoma_core::{Command, Event, Tool, ToolOutcome, session::PermissionMode, tool::Access};
use gnoma_testkit::{Answer, FakeProvider, FakeTool};

use super::{Run, history, start_with};

fn tool(name: &str) -> Arc<dyn Tool> {
    Arc::new(FakeTool::new(name, Access::Read, |_| ToolOutcome::done("done")))
}

fn tools(names: &[&str]) -> Vec<Arc<dyn Tool>> {
    names.iter().map(|name| tool(name)).collect()
}

fn begin(names: &[&str], answers: Vec<Answer>) -> Run {
    start_with(Arc::new(FakeProvider::new(answers)), tools(names), PermissionMode::Bypass, false)
}

impl Run {
    /// The tools of each request.
    fn offered(&self) -> Vec<Vec<String>> {
        let requests = self.provider.requests();
        let names = |tools: &[Arc<gnoma_core::ToolSpec>]| {
            tools.iter().map(|tool| tool.name.clone()).collect()
        };
        requests.iter().map(|request| names(&request.tools)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn tools_come_and_go_between_turns_in_a_stable_order() {
    let mut run = begin(&["a", "b", "c"], (0..4).map(|_| Answer::text("ok")).collect());
    for change in [None, Some(&["new", "c", "a", "a"][..]), Some(&["a", "c", "new"]), Some(&["b"])]
    {
        if let Some(names) = change {
            assert!(run.handle.tools_changed(tools(names)));
        }
        run.say("go on");
        run.until_idle().await;
    }
    let expected: [&[&str]; 4] = [&["a", "b", "c"], &["a", "c", "new"], &["a", "c", "new"], &["b"]];
    assert_eq!(run.offered(), expected);
    let requests = run.provider.requests();
    assert!(Arc::ptr_eq(&requests[1].tools, &requests[2].tools), "nothing is encoded anew");
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_with_the_tools_that_it_began_with() {
    let calls = |name| Answer::calls(&[("c", name, "{}")]).every(Duration::from_secs(1));
    let answers = vec![calls("old"), Answer::text("ok"), calls("old"), Answer::text("ok")];
    let mut run = begin(&["old"], answers);
    run.say("go on");
    run.until(|event| matches!(event, Event::RoundStarted { .. })).await;
    assert!(run.handle.tools_changed(tools(&["new"])));
    let events = run.until_idle().await;
    let result = |events: &[Event]| {
        let messages = history(events);
        let mut results = messages.iter().flat_map(|message| message.tool_results());
        results.next().unwrap().joined_text()
    };
    assert_eq!(result(&events), "done");
    assert_eq!(run.offered(), [["old"], ["old"]]);

    run.say("go on");
    let events = run.until_idle().await;
    assert!(result(&events).contains("unknown tool: old"), "{}", result(&events));
    assert_eq!(run.offered()[2..], [["new"], ["new"]]);
    assert!(run.handle.tell(Command::Close));
}
