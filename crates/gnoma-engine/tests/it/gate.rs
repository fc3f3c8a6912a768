//! The guard within a session: secrets come back for tools alone, answers cover what was shown, and
//! only a person takes down a wall.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    Command, Content, Event, ProviderError, StreamEvent, Tool, ToolCall, ToolCx, ToolOutcome,
    ToolSpec,
    session::{Outcome, PermissionAnswer as Reply, PermissionMode, SessionState},
    tool::{Access, BoxFuture, CommandReport, Grant, ToolOutput, TouchedResource},
};
use gnoma_testkit::{
    Answer, FakeProvider, FakeTool,
    value_encodings::{longest_readable_part, reverse_text},
};

use super::{Run, assert_paired, history, outcome, start_with};

fn token() -> String {
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()
}

/// A session in which somebody can be asked, or nobody.
fn begin(tools: Vec<Arc<dyn Tool>>, mode: PermissionMode, interactive: bool) -> Run {
    start_with(Arc::new(FakeProvider::new([])), tools, mode, interactive)
}

/// A tool that only notes its calls.
fn writer(touches: TouchedResource) -> FakeTool {
    let access =
        if matches!(touches, TouchedResource::Url(_)) { Access::Read } else { Access::Edit };
    FakeTool::new("write", access, |_| ToolOutcome::success_text("done")).with_touches(touches)
}

fn asked(event: &Event) -> bool {
    matches!(event, Event::PermissionAsked { .. })
}

/// The question that `events` end with: its call, its reason and what "always" would add.
fn question(events: &[Event]) -> (ToolCall, String, Option<String>) {
    match events.last() {
        Some(Event::PermissionAsked { call, reason, always, .. }) => {
            (call.clone(), reason.clone(), always.clone())
        }
        other => panic!("no question but {other:?}"),
    }
}

impl Run {
    fn answer(&self, call: &ToolCall, answer: Reply) {
        assert!(self.handle.send_command(Command::Answer { call: call.id.clone(), answer }));
    }

    /// A turn in which the model learns a placeholder; it is what this gives.
    async fn learn_placeholder(&mut self) -> String {
        self.provider.push(Answer::text("I see"));
        self.say(&format!("my token is {}", token()));
        self.until_idle().await;
        let request = self.provider.requests().last().unwrap().clone();
        let seen = format!("{:?}", request.messages);
        assert!(!seen.contains(&token()), "{seen}");
        let start = seen.find("{{secret:").unwrap();
        let end = start + seen[start..].find("}}").unwrap() + 2;
        seen[start..end].to_owned()
    }

    fn next_calls(&self, calls: &[(&str, &str, &str)]) {
        self.provider.push(Answer::calls(calls));
        self.provider.push(Answer::text("ok"));
        self.say("go on");
    }
}

#[tokio::test(start_paused = true)]
async fn redacted_secret_is_restored_only_in_the_tool_arguments() {
    let tool = writer(TouchedResource::path("path"));
    let mut run = begin(vec![Arc::new(tool.clone())], PermissionMode::AcceptEdits, false);
    let placeholder = run.learn_placeholder().await;
    let arguments = format!(r#"{{"path":"/a","content":"key = {placeholder}\n"}}"#);
    run.next_calls(&[("c", "write", &arguments)]);
    let events = run.until_idle().await;
    assert_eq!(
        tool.calls()[0].arguments.get(),
        format!(r#"{{"path":"/a","content":"key = {}\n"}}"#, token())
    );
    let told = format!("{events:?}");
    assert!(told.contains(&placeholder) && !told.contains(&token()), "{told}");
    let sent = format!("{:?}", run.provider.requests());
    assert!(!sent.contains(&token()), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn tool_call_with_an_unknown_secret_placeholder_is_not_run() {
    let tool = writer(TouchedResource::path("path"));
    let mut run = begin(vec![Arc::new(tool.clone())], PermissionMode::Bypass, true);
    let placeholder = run.learn_placeholder().await;
    let changed = placeholder.replace("secret:", "secret: ").replace("}}", "0}}");
    for wrong in ["{{secret:aws-key:1}}", &changed] {
        let arguments = format!(r#"{{"path":"/a","content":"{wrong}"}}"#);
        run.next_calls(&[("c", "write", &arguments)]);
        let events = run.until_idle().await;
        let messages = history(&events);
        let result = messages[2].tool_results().next().unwrap().joined_text();
        assert!(result.contains("does not stand for any secret of this session"), "{result}");
    }
    assert!(tool.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn secret_in_a_url_needs_approval_each_time() {
    for (interactive, answers) in [(false, 0), (true, 2)] {
        let tool = writer(TouchedResource::url("url"));
        let mut run = begin(vec![Arc::new(tool.clone())], PermissionMode::Bypass, interactive);
        let placeholder = run.learn_placeholder().await;
        let arguments = format!(r#"{{"url":"https://example.com/?k={placeholder}"}}"#);
        for round in 0..2 {
            run.next_calls(&[("c", "write", &arguments)]);
            if interactive {
                let events = run.until(asked).await;
                let (call, reason, always) = question(&events);
                assert!(reason.contains("of your secrets") && always.is_none(), "{reason}");
                assert!(call.arguments.get().contains(&placeholder), "{call:?}");
                let answer = if round == 0 { Reply::Always } else { Reply::Allow };
                run.answer(&call, answer);
            }
            run.until_idle().await;
        }
        assert_eq!(tool.calls().len(), answers);
    }
}

#[tokio::test(start_paused = true)]
async fn always_answer_allows_only_the_permission_rule_shown() {
    let tool = writer(TouchedResource::command("command"));
    let mut run = begin(vec![Arc::new(tool.clone())], PermissionMode::Auto, true);
    let command = |text: &str| format!(r#"{{"command":"{text}"}}"#);
    run.next_calls(&[("c", "write", &command("touch one"))]);
    let (call, _, always) = question(&run.until(asked).await);
    assert_eq!(always.as_deref(), Some("bash(touch one)"));
    run.answer(&call, Reply::Always);
    run.until_idle().await;
    run.next_calls(&[("d", "write", &command("touch one"))]);
    let events = run.until_idle().await;
    assert!(!events.iter().any(asked));
    assert_eq!(tool.calls().len(), 2);
    for other in ["touch one two", "touch one; touch two", "touch one > three", "touch on"] {
        run.next_calls(&[("e", "write", &command(other))]);
        let (call, ..) = question(&run.until(asked).await);
        run.answer(&call, Reply::Deny { reason: String::new() });
        run.until_idle().await;
    }
    assert_eq!(tool.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn answer_without_a_permission_question_is_ignored() {
    let tool = writer(TouchedResource::path("path"));
    let mut run = begin(vec![Arc::new(tool.clone())], PermissionMode::Auto, true);
    let arguments = r#"{"path":"/a","content":"x"}"#;
    run.next_calls(&[("c", "write", arguments)]);
    let (call, ..) = question(&run.until(asked).await);
    let other = ToolCall { id: gnoma_core::CallId::new("other"), ..call.clone() };
    run.answer(&other, Reply::Always);
    run.answer(&call, Reply::Deny { reason: "no".into() });
    run.answer(&call, Reply::Allow);
    run.until_idle().await;
    run.answer(&call, Reply::Allow);
    run.answer(&call, Reply::Always);
    run.next_calls(&[("c", "write", arguments)]);
    let (call, ..) = question(&run.until(asked).await);
    assert!(tool.calls().is_empty());
    run.answer(&call, Reply::Allow);
    run.until_idle().await;
    assert_eq!(tool.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_message_contains_a_restored_secret() {
    let tool = writer(TouchedResource::command("command"));
    for (mode, interactive) in [
        (PermissionMode::Plan, true),
        (PermissionMode::Deny, false),
        (PermissionMode::AcceptEdits, false),
        (PermissionMode::AcceptEdits, true),
        (PermissionMode::Bypass, true),
    ] {
        let mut run = begin(vec![Arc::new(tool.clone())], mode, interactive);
        let placeholder = run.learn_placeholder().await;
        // The cut of a quoted command goes through the middle of the secret, wherever that is.
        for before in 0..64 {
            let command = format!("{}touch {placeholder}", "x".repeat(before));
            let arguments = format!(r#"{{"command":"{command}"}}"#);
            run.next_calls(&[("c", "write", &arguments)]);
            let events =
                run.until(|event| asked(event) || *event == Event::State(SessionState::Idle));
            let mut events = events.await;
            if events.last().is_some_and(asked) {
                let (call, reason, always) = question(&events);
                assert!(reason.contains("of your secrets") && always.is_none(), "{reason}");
                run.answer(&call, Reply::Deny { reason: String::new() });
                events.extend(run.until_idle().await);
            }
            let told = format!("{events:?} {:?}", run.provider.requests().last());
            assert!(longest_readable_part(&token(), &told) < 6, "{mode}, {before}: {told}");
        }
    }
    assert!(tool.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn command_with_a_secret_needs_approval_each_time() {
    let tool = writer(TouchedResource::command("command"));
    let mut run = begin(vec![Arc::new(tool.clone())], PermissionMode::Bypass, true);
    let placeholder = run.learn_placeholder().await;
    for round in 1..3 {
        run.next_calls(&[("c", "write", &format!(r#"{{"command":"echo {placeholder}"}}"#))]);
        let (call, reason, always) = question(&run.until(asked).await);
        assert!(reason.contains("the model reads its output") && always.is_none(), "{reason}");
        run.answer(&call, Reply::Always);
        run.until_idle().await;
        assert_eq!(tool.calls().len(), round);
    }
}

#[tokio::test(start_paused = true)]
async fn secret_in_tool_output_and_diff_is_redacted() {
    let telling = FakeTool::new("write", Access::Edit, |call: &ToolCall| {
        let arguments = call.arguments.get().to_owned();
        let cut: String = arguments.chars().take(60).collect();
        let report = CommandReport {
            command: arguments.clone(),
            exit_code: Some(1),
            walled: None,
            trial: None,
        };
        let diff = Some(arguments.chars().rev().collect());
        ToolOutcome::Failed(ToolOutput { report: Some(report), diff, ..ToolOutput::from_text(cut) })
    });
    let mut run = begin(
        vec![Arc::new(telling.with_touches(TouchedResource::path("path")))],
        PermissionMode::AcceptEdits,
        false,
    );
    let placeholder = run.learn_placeholder().await;
    run.next_calls(&[(
        "c",
        "write",
        &format!(r#"{{"path":"/a","content":"key = {placeholder}"}}"#),
    )]);
    let told = format!("{:?} {:?}", run.until_idle().await, run.provider.requests());
    assert!(
        longest_readable_part(&token(), &told) < 6 && !told.contains(&reverse_text(&token())[..8]),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn empty_stream_deltas_do_not_prevent_the_stream_timeout() {
    let empty = || Ok(StreamEvent::TextDelta { slot: 0, text: String::new() });
    let pieces: Vec<Result<StreamEvent, ProviderError>> = (0..5_000).map(|_| empty()).collect();
    let mut run = begin(Vec::new(), PermissionMode::AcceptEdits, false);
    for _ in 0..8 {
        run.provider
            .push(Answer::from_events(pieces.clone()).with_event_delay(Duration::from_secs(1)));
    }
    run.say("hello");
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Failed { .. }), "{events:?}");
}

/// A command that a wall stops until it runs outside.
struct Walled {
    spec: ToolSpec,
    grants: Arc<Mutex<Vec<Grant>>>,
    runs: Arc<AtomicUsize>,
}

impl Walled {
    fn new() -> Self {
        let spec = writer(TouchedResource::command("command")).spec().clone();
        Self { spec, grants: Arc::default(), runs: Arc::default() }
    }
}

impl Tool for Walled {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, _call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let outside = cx.grant.outside;
        self.grants.lock().unwrap().push(cx.grant);
        self.runs.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            if outside {
                return ToolOutcome::success_text("made it");
            }
            let walled = Some("The sandbox probably blocked this.".to_owned());
            let report =
                CommandReport { command: "x".into(), exit_code: Some(1), walled, trial: None };
            ToolOutcome::Failed(ToolOutput {
                report: Some(report),
                ..ToolOutput::from_text("read-only")
            })
        })
    }
}

const MAKE: &str = r#"{"command":"make"}"#;

#[tokio::test(start_paused = true)]
async fn sandbox_denied_command_runs_unsandboxed_after_approval() {
    for (answer, runs, told) in
        [(Reply::Allow, 2, "made it"), (Reply::Deny { reason: "no".into() }, 1, "read-only")]
    {
        let tool = Arc::new(Walled::new());
        let (grants, count) = (Arc::clone(&tool.grants), Arc::clone(&tool.runs));
        let mut run = begin(vec![tool], PermissionMode::Bypass, true);
        run.next_calls(&[("c", "write", MAKE)]);
        let (call, reason, always) = question(&run.until(asked).await);
        assert!(reason.contains("outside the sandbox?") && always.is_none(), "{reason}");
        run.answer(&call, answer);
        let events = run.until_idle().await;
        let result = history(&events)[0].tool_results().next().unwrap().joined_text();
        assert!(result.contains(told), "{result}");
        assert_eq!(count.load(Ordering::SeqCst), runs);
        let grants: Vec<_> = grants.lock().unwrap().iter().map(|grant| grant.outside).collect();
        assert_eq!(grants, [false, true][..runs]);
        // The yes was for that call alone.
        run.next_calls(&[("c", "write", MAKE)]);
        let (call, reason, _) = question(&run.until(asked).await);
        assert!(reason.contains("outside the sandbox?"), "{reason}");
        run.answer(&call, Reply::Deny { reason: String::new() });
        run.until_idle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn sandbox_denial_stands_in_a_non_interactive_session() {
    let tool = Arc::new(Walled::new());
    let count = Arc::clone(&tool.runs);
    let mut run = begin(vec![tool], PermissionMode::Bypass, false);
    run.next_calls(&[("c", "write", r#"{"command":"make","outside":true}"#)]);
    let events = run.until_idle().await;
    assert!(!events.iter().any(asked));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let result = history(&events)[2].tool_results().next().unwrap().joined_text();
    assert!(result.contains("read-only"), "{result}");
}

#[tokio::test(start_paused = true)]
async fn cancel_at_the_sandbox_question_keeps_the_command_output() {
    let tool = Arc::new(Walled::new());
    let count = Arc::clone(&tool.runs);
    let mut run = begin(vec![tool], PermissionMode::Bypass, true);
    run.next_calls(&[("c", "write", MAKE)]);
    let mut events = run.until(asked).await;
    let (call, ..) = question(&events);
    run.handle.send_command(Command::Cancel);
    events.extend(run.until_idle().await);
    assert_eq!(outcome(&events), Outcome::Cancelled);
    assert_paired(&history(&events));
    let messages = history(&events);
    let result = messages.last().unwrap().tool_results().next().unwrap().joined_text();
    assert!(result.contains("read-only"), "{result}");
    // A late answer starts nothing.
    run.answer(&call, Reply::Allow);
    run.provider.push(Answer::text("fine"));
    run.handle.send_command(Command::Send { content: vec![Content::from_text("hi")] });
    run.until_idle().await;
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
