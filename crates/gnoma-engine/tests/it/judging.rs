//! Judging never holds up the session: what it needs to read may be large or slow.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use gnoma_core::{
    Command, Event, RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    session::{Outcome, PermissionMode, SessionState},
    tool::{Access, BoxFuture, PreviewError, ToolKind, TouchedResource},
};
use gnoma_testkit::{Answer, FakeProvider, FakeTool};

use gnoma_engine::{MissingFilesError, Options, PersistenceOptions, Routes, Session, connect_arm};
use gnoma_guard::{
    firewall::Connection,
    permission::{Origin, Permissions, Rule, RuleAction},
};
use tokio::sync::watch;

use super::{Run, assert_paired, firewall, history, options, outcome, start_with};

/// An edit whose preview is not there before it is let go.
struct Slow {
    inner: FakeTool,
    begun: Sender<()>,
    let_go: Mutex<Receiver<()>>,
}

impl Tool for Slow {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        self.inner.run(call, cx)
    }

    fn preview(&self, _call: &ToolCall, _cx: &ToolCx) -> Result<Option<String>, PreviewError> {
        self.begun.send(()).unwrap();
        // Its other end is dropped where nobody lets it go.
        let _let_go = self.let_go.lock().unwrap().recv();
        Ok(Some("+x\n".into()))
    }
}

/// A tool whose calls mean another path than they give.
struct Elsewhere(FakeTool);

impl Tool for Elsewhere {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        self.0.run(call, cx)
    }

    fn normalize_arguments(&self, call: &ToolCall, _cx: &ToolCx) -> Option<RawJson> {
        (call.arguments.get() == r#"{"path":"~/x"}"#)
            .then(|| RawJson::parse(r#"{"path":"/home/me/x"}"#).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn normalized_tool_call_arguments_are_checked_shown_and_run() {
    let inner = FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text("seen"));
    let tool = Elsewhere(inner.clone());
    let answers = vec![Answer::calls(&[("c", "look", r#"{"path":"~/x"}"#)]), Answer::text("ok")];
    let provider = Arc::new(FakeProvider::new(answers));
    let mut run = start_with(provider, vec![Arc::new(tool)], PermissionMode::Auto, true);
    run.say("go");
    let events = run.until_idle().await;
    let shown = events.iter().find_map(|event| match event {
        Event::ToolStarted { call } => Some(call.arguments.get().to_owned()),
        _ => None,
    });
    assert_eq!(shown.as_deref(), Some(r#"{"path":"/home/me/x"}"#));
    assert_eq!(inner.calls()[0].arguments.get(), r#"{"path":"/home/me/x"}"#);
}

/// A session that judges its call, and who lets it go on.
async fn judging() -> (Run, Sender<()>) {
    let (begun, has_begun) = channel();
    let (go, let_go) = channel();
    let inner = FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("written"));
    let tool = Slow { inner, begun, let_go: Mutex::new(let_go) };
    let answers = vec![Answer::calls(&[("c", "write", "{}")]), Answer::text("ok")];
    let provider = Arc::new(FakeProvider::new(answers));
    let mut run = start_with(provider, vec![Arc::new(tool)], PermissionMode::Auto, true);
    run.say("go");
    let calls = |event: &Event| matches!(event, Event::Appended(it) if it.tool_calls().count() > 0);
    run.until(calls).await;
    tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
    (run, go)
}

#[tokio::test]
async fn a_cancel_does_not_wait_for_a_preview() {
    let (mut run, go) = judging().await;
    assert!(run.handle.send_command(Command::Cancel));
    let events = run.until_idle().await;
    assert_eq!(events[0], Event::State(SessionState::Cancelling));
    assert_eq!(outcome(&events), Outcome::Cancelled);
    assert_paired(&history(&events));
    // What was judged too late is nothing to the next turn.
    drop(go);
    run.say("and now?");
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, Event::PermissionAsked { .. })));
}

/// A session whose first call, of `tool`, waits for files, and who says that they are there.
async fn waiting_for_files(
    tool: &FakeTool,
) -> (Run, watch::Sender<Option<Result<(), MissingFilesError>>>) {
    let (tell, ready) = watch::channel(None);
    let name = tool.spec().name.clone();
    let answers = vec![Answer::calls(&[("c", &name, "{}")]), Answer::text("ok")];
    let provider = Arc::new(FakeProvider::new(answers));
    let arm = connect_arm(Connection::new(Arc::clone(&provider) as _, false), "m");
    let (routes, tools) =
        (Arc::new(Routes::with_single_arm(arm)), vec![Arc::new(tool.clone()) as _]);
    let mode = (PermissionMode::Bypass, false);
    let options =
        options(routes, firewall(), tools, mode, PersistenceOptions::default(), (Vec::new(), None));
    let handle = Session::spawn(Options { ready: Some(ready), ..options });
    let mut run = Run { handle, provider };
    run.say("go");
    // The model is asked meanwhile.
    run.until(|event| matches!(event, Event::Appended(it) if it.tool_calls().count() > 0)).await;
    (run, tell)
}

#[tokio::test]
async fn permission_check_waits_for_the_workspace_files() {
    for there in [Ok(()), Err(MissingFilesError("there is no room".to_owned()))] {
        let tool = FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text("seen"));
        let (mut run, tell) = waiting_for_files(&tool).await;
        assert!(tool.calls().is_empty());
        tell.send_replace(Some(there.clone()));
        let messages = history(&run.until_idle().await);
        let result = messages.iter().find_map(|message| message.tool_results().next()).unwrap();
        let said = result.joined_text();
        match there {
            Ok(()) => assert_eq!((&*said, tool.calls().len()), ("seen", 1)),
            Err(error) => assert!(said.contains(&error.0) && tool.calls().is_empty(), "{said}"),
        }
    }
}

#[tokio::test]
async fn call_that_waited_for_files_is_checked_with_the_current_mode() {
    let tool = FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("written"));
    let (mut run, tell) = waiting_for_files(&tool).await;
    assert!(run.handle.send_command(Command::SetMode { mode: PermissionMode::Plan }));
    run.until(|event| matches!(event, Event::ModeChanged { .. })).await;
    tell.send_replace(Some(Ok(())));
    let messages = history(&run.until_idle().await);
    let result = messages.iter().find_map(|message| message.tool_results().next()).unwrap();
    assert!(result.joined_text().contains("mode plan"), "{}", result.joined_text());
    assert!(tool.calls().is_empty());
}

#[tokio::test]
async fn commands_are_handled_during_a_permission_check() {
    let (mut run, go) = judging().await;
    assert!(run.handle.send_command(Command::SetMode { mode: PermissionMode::Plan }));
    let heard = run.until(|event| matches!(event, Event::ModeChanged { .. }));
    tokio::time::timeout(Duration::from_secs(5), heard).await.expect("the session is held up");
    go.send(()).unwrap();
    let events = run.until(|event| matches!(event, Event::PermissionAsked { .. })).await;
    let Some(Event::PermissionAsked { preview, .. }) = events.last() else { panic!() };
    assert_eq!(preview.as_deref(), Some("+x\n"));
}

/// A tool that only reads, each call of which starts a session.
struct Starting(FakeTool);

impl Tool for Starting {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn start_arguments(&self, _call: &ToolCall) -> Option<RawJson> {
        RawJson::parse(r#"{"tasks":[]}"#).ok()
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        self.0.run(call, cx)
    }
}

/// The names of the tools that ran, in their order.
type Ran = Arc<Mutex<Vec<&'static str>>>;

/// The tools of a session that can start others: what loads, what looks, what speaks with them, what starts them.
fn starting() -> (Vec<Arc<dyn Tool>>, FakeTool, Ran) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &'static str, access| {
        let order = Arc::clone(&order);
        FakeTool::new(name, access, move |_| {
            order.lock().unwrap().push(name);
            ToolOutcome::success_text(name)
        })
    };
    let of_elfs = |tool: FakeTool| tool.of_kind(ToolKind::StartsSessions);
    let speak = of_elfs(noting("elf", Access::Read));
    let start = of_elfs(noting("start", Access::Execute)).with_delay(Duration::from_secs(5));
    let load = Arc::new(Starting(noting("load", Access::Read)));
    let look = Arc::new(noting("look", Access::Read));
    let tools: Vec<Arc<dyn Tool>> = vec![load, look, Arc::new(speak), Arc::new(start.clone())];
    (tools, start, order)
}

#[tokio::test(start_paused = true)]
async fn tool_call_that_starts_a_session_runs_alone_as_the_spawn_tool() {
    let (tools, start, order) = starting();
    let calls = [("a", "load", "{}"), ("b", "look", "{}"), ("c", "load", "{}")];
    let provider = Arc::new(FakeProvider::new(vec![Answer::calls(&calls), Answer::text("ok")]));
    let mut run = start_with(provider, tools, PermissionMode::Bypass, false);
    run.say("go");
    run.until_idle().await;
    assert_eq!(*order.lock().unwrap(), ["start", "look", "start"]);
    assert_eq!(start.calls()[0].arguments.get(), r#"{"tasks":[]}"#);
}

#[tokio::test]
async fn permission_question_names_the_reasons_of_call_and_child_call() {
    let (tools, ..) = starting();
    let provider = Arc::new(FakeProvider::new(vec![Answer::calls(&[("a", "load", "{}")])]));
    let arm = connect_arm(Connection::new(Arc::clone(&provider) as _, false), "m");
    let mode = (PermissionMode::Bypass, true);
    let routes = Arc::new(Routes::with_single_arm(arm));
    let none = (Vec::new(), None);
    let options = options(routes, firewall(), tools, mode, PersistenceOptions::default(), none);
    let ask = |tool| Rule::parse(RuleAction::Ask, tool, Origin::User).unwrap();
    let permissions = Permissions::new(vec![ask("load"), ask("start")]);
    let handle = Session::spawn(Options { permissions, ..options });
    let mut run = Run { handle, provider };
    run.say("go");
    let events = run.until(|event| matches!(event, Event::PermissionAsked { .. })).await;
    let Some(Event::PermissionAsked { reason, .. }) = events.last() else { panic!("{events:?}") };
    assert!(reason.contains("load") && reason.contains("start"), "{reason}");
}

/// An edit that cannot apply, of a file that the argument `path` names.
struct Failing(FakeTool);

impl Tool for Failing {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        self.0.run(call, cx)
    }

    fn preview(&self, _call: &ToolCall, _cx: &ToolCx) -> Result<Option<String>, PreviewError> {
        Err(PreviewError("the text is not there; it reads: key=1".to_owned()))
    }
}

/// What a session says to an edit of `path` that cannot apply: whether a person was asked, and the result.
async fn failing_edit(mode: PermissionMode, path: &str) -> (bool, Option<String>) {
    let tool = FakeTool::new("fs.edit", Access::Edit, |_| ToolOutcome::success_text("written"));
    let tool = tool.with_touches(TouchedResource::path("path"));
    let arguments = serde_json::json!({ "path": path }).to_string();
    let answers = vec![Answer::calls(&[("c", "fs.edit", &arguments)]), Answer::text("ok")];
    let provider = Arc::new(FakeProvider::new(answers));
    let failing: Arc<dyn Tool> = Arc::new(Failing(tool.clone()));
    let mut run = start_with(provider, vec![failing], mode, true);
    run.say("go");
    let is_over = |event: &Event| {
        matches!(event, Event::PermissionAsked { .. } | Event::State(SessionState::Idle))
    };
    let events = run.until(is_over).await;
    assert!(tool.calls().is_empty(), "it must not run");
    let was_asked = events.iter().any(|event| matches!(event, Event::PermissionAsked { .. }));
    let messages = history(&events);
    let result = messages.iter().find_map(|message| message.tool_results().next());
    (was_asked, result.map(gnoma_core::ToolResult::joined_text))
}

#[tokio::test]
async fn edit_that_cannot_apply_fails_without_a_permission_question() {
    let (was_asked, result) = failing_edit(PermissionMode::Auto, "src/a.rs").await;
    assert!(!was_asked);
    assert_eq!(result.as_deref(), Some("the text is not there; it reads: key=1"));
}

#[tokio::test]
async fn failing_edit_reveals_nothing_of_a_file_that_needs_approval_to_read() {
    for (mode, path) in [(PermissionMode::Auto, ".env"), (PermissionMode::Default, "src/a.rs")] {
        let (was_asked, result) = failing_edit(mode, path).await;
        assert!(was_asked && result.is_none(), "{mode} {path}: {result:?}");
    }
}

#[tokio::test]
async fn non_string_command_fails_after_deny_rules_and_before_a_question() {
    for (mode, told) in [
        (PermissionMode::Auto, "the arguments do not fit `run`: `command` must be a string"),
        (PermissionMode::Plan, "permission denied"),
    ] {
        for interactive in [false, true] {
            let tool = FakeTool::new("run", Access::Execute, |_| ToolOutcome::success_text("ran"));
            let tool = tool.with_touches(TouchedResource::command("command"));
            let answers =
                vec![Answer::calls(&[("c", "run", r#"{"command":5}"#)]), Answer::text("ok")];
            let provider = Arc::new(FakeProvider::new(answers));
            let mut run = start_with(provider, vec![Arc::new(tool.clone())], mode, interactive);
            run.say("go");
            let messages = history(&run.until_idle().await);
            let result = messages.iter().find_map(|message| message.tool_results().next());
            let result = result.map(gnoma_core::ToolResult::joined_text).unwrap_or_default();
            assert!(result.starts_with(told), "{mode}: {result}");
            assert!(tool.calls().is_empty(), "{mode}");
        }
    }
}
