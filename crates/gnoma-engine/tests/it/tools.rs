//! Tools that come and go while a session lives.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    Command, Event, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    session::{Inquiry, NoticeLevel, PermissionAnswer as Reply, PermissionMode},
    tool::{Access, BoxFuture, ChildTask, Progress, Question, ToolEvent, ToolKind},
};
use gnoma_testkit::{Answer, FakeProvider, FakeTool};

use super::{Run, history, start_with};

fn tool(name: &str) -> Arc<dyn Tool> {
    Arc::new(FakeTool::new(name, Access::Read, |_| ToolOutcome::success_text("done")))
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
async fn tool_list_changes_between_turns_in_a_stable_order() {
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
async fn tools_can_be_added_but_not_removed_within_a_turn() {
    let calls = |name| Answer::calls(&[("c", name, "{}")]).with_event_delay(Duration::from_secs(1));
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
    assert_eq!(run.offered(), [vec!["old"], vec!["old", "new"]]);

    run.say("go on");
    let events = run.until_idle().await;
    assert!(result(&events).contains("unknown tool: old"), "{}", result(&events));
    assert_eq!(run.offered()[2..], [["new"], ["new"]]);
    assert!(run.handle.send_command(Command::Close));
}

/// A tool that asks before it says what it was answered, and whether it could start a session.
struct Asks(ToolSpec);

impl Tool for Asks {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            cx.emit_event(
                &call.id,
                ToolEvent::Notice { level: NoticeLevel::Info, text: "hm".into() },
            );
            let question = Question { text: "go on?".into(), ..Question::default() };
            let answer = cx.ask_user(&call.id, question).await;
            let child = cx.spawn_child(&call.id, ChildTask::default()).await.unwrap_err();
            ToolOutcome::success_text(format!("{answer:?}; {child}; {:?}", cx.budget()))
        })
    }
}

fn asking(interactive: bool) -> Run {
    let spec =
        FakeTool::new("asks", Access::Read, |_| ToolOutcome::success_text("")).spec().clone();
    let answers = vec![Answer::calls(&[("c", "asks", "{}")]), Answer::text("ok")];
    let provider = Arc::new(FakeProvider::new(answers));
    start_with(provider, vec![Arc::new(Asks(spec))], PermissionMode::Bypass, interactive)
}

fn result(events: &[Event]) -> String {
    let messages = history(events);
    let mut results = messages.iter().flat_map(|message| message.tool_results());
    results.next().unwrap().joined_text()
}

fn is_asked(event: &Event) -> bool {
    matches!(event, Event::PermissionAsked { .. })
}

#[tokio::test(start_paused = true)]
async fn running_tool_can_ask_a_permission_question() {
    let mut run = asking(true);
    run.say("go on");
    let events = run.until(is_asked).await;
    assert!(events.iter().any(|event| matches!(event, Event::Notice { text, .. } if text == "hm")));
    let Some(Event::PermissionAsked { call, reason, .. }) = events.last() else { panic!() };
    assert_eq!((call.name.as_str(), reason.as_str()), ("asks", "go on?"));
    assert_ne!(call.id.as_str(), "c", "a question of its own");
    let answer = Command::Answer { call: call.id.clone(), answer: Reply::Allow };
    assert!(run.handle.send_command(answer));
    let mut events = events;
    events.extend(run.until_idle().await);
    let result = result(&events);
    assert!(result.starts_with("Allow; no sessions can be started here; Budget"), "{result}");
}

#[tokio::test(start_paused = true)]
async fn tool_question_is_denied_when_non_interactive_and_withdrawn_on_cancel() {
    let mut run = asking(false);
    run.say("go on");
    let events = run.until_idle().await;
    assert!(
        !events.iter().any(is_asked) && result(&events).contains("nobody is there to approve it")
    );

    let mut run = asking(true);
    run.say("go on");
    run.until(is_asked).await;
    assert!(run.handle.send_command(Command::Cancel));
    let events = run.until_idle().await;
    let is_over = |event: &Event| matches!(event, Event::PermissionDecided { allowed: false, .. });
    assert_eq!(events.iter().filter(|event| is_over(event)).count(), 1);
}

/// A tool that asks, and does not wait for the answer for long.
struct Impatient(ToolSpec);

impl Tool for Impatient {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            let question = Question { text: "go on?".into(), ..Question::default() };
            let answer = cx.ask_user(&call.id, question);
            let answer = tokio::time::timeout(Duration::from_secs(1), answer).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            ToolOutcome::success_text(format!("{}", answer.is_ok()))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn abandoned_tool_question_is_withdrawn_at_once() {
    let spec =
        FakeTool::new("asks", Access::Read, |_| ToolOutcome::success_text("")).spec().clone();
    let answers = vec![Answer::calls(&[("c", "asks", "{}")]), Answer::text("ok")];
    let provider = Arc::new(FakeProvider::new(answers));
    let mut run =
        start_with(provider, vec![Arc::new(Impatient(spec))], PermissionMode::Bypass, true);
    run.say("go on");
    let events = run.until(is_asked).await;
    let Some(Event::PermissionAsked { call, .. }) = events.last() else { panic!() };
    let asked = call.id.clone();
    let began = tokio::time::Instant::now();
    let is_over = |event: &Event| matches!(event, Event::PermissionDecided { call, allowed: false, .. } if *call == asked);
    run.until(is_over).await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let events = run.until_idle().await;
    assert!(!events.iter().any(is_over));
    assert_eq!(result(&events), "false");
}

/// A tool that wants words.
struct Inquires(ToolSpec);

impl Tool for Inquires {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            let inquiry = Some(Inquiry { choices: vec!["one".into()] });
            let question = Question { text: "which?".into(), inquiry, ..Question::default() };
            ToolOutcome::success_text(format!("{:?}", cx.ask_user(&call.id, question).await))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn ask_user_tool_gets_the_typed_text_and_treats_allow_as_deny() {
    let words = Reply::Text { text: "the other".into() };
    for (answer, told) in [(words, "Text { text: \"the other\" }"), (Reply::Always, "Deny")] {
        let spec =
            FakeTool::new("asks", Access::Read, |_| ToolOutcome::success_text("")).spec().clone();
        let spec = ToolSpec { kind: ToolKind::AsksPerson, ..spec };
        let answers = vec![Answer::calls(&[("c", "asks", "{}")]), Answer::text("ok")];
        let provider = Arc::new(FakeProvider::new(answers));
        // The mode lets nothing run, and asking is nothing.
        let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Inquires(spec))];
        let mut run = start_with(provider, tools, PermissionMode::Deny, true);
        run.say("go on");
        let events = run.until(is_asked).await;
        let Some(Event::PermissionAsked { call, inquiry, .. }) = events.last() else { panic!() };
        assert_eq!(inquiry.as_ref().unwrap().choices, ["one"]);
        assert!(run.handle.send_command(Command::Answer { call: call.id.clone(), answer }));
        let events = run.until_idle().await;
        assert!(result(&events).starts_with(told), "{}", result(&events));
    }
}

/// A tool that shows something up to its end.
struct Shows(ToolSpec);

impl Tool for Shows {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            for line in 0..20 {
                let progress = Progress { call: call.id.clone(), text: format!("{line}\n") };
                let _full = cx.progress.try_send(progress);
            }
            ToolOutcome::success_text("shown")
        })
    }
}

#[tokio::test(start_paused = true)]
async fn tool_progress_events_precede_the_tool_result() {
    let spec =
        FakeTool::new("shows", Access::Read, |_| ToolOutcome::success_text("")).spec().clone();
    let answers = vec![Answer::calls(&[("c", "shows", "{}")]), Answer::text("ok")];
    let provider = Arc::new(FakeProvider::new(answers));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Shows(spec))];
    let mut run = start_with(provider, tools, PermissionMode::Bypass, false);
    run.say("go on");
    let events = run.until_idle().await;
    let is_progress = |event: &Event| matches!(event, Event::ToolProgress { .. });
    let end = events.iter().position(|event| matches!(event, Event::ToolEnded { .. })).unwrap();
    assert_eq!(events[..end].iter().filter(|event| is_progress(event)).count(), 20);
    assert!(!events[end..].iter().any(is_progress));
}
