//! Whole sessions over scripted providers and tools, on a clock that does not wait.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "these are tests")]

mod compact;
mod corpus;
mod gate;
mod judging;
mod keeping;
mod lean;
mod memory;
mod points;
mod routing;
mod shared;
mod silence;
mod spending;
mod strategies;
mod task_steps;
mod tools;
mod tracking;

use std::{path::Path, sync::Arc, time::Duration};

use gnoma_core::{
    CallId, Command, Content, ErrorKind, Event, Message, Role, StreamEvent, Tool, ToolOutcome,
    Usage,
    session::{Outcome, PermissionAnswer as Reply, PermissionMode, SessionState},
    tool::Access,
};
use gnoma_engine::resume::MeasuredPrefix;
use gnoma_engine::{
    GatePlace, Handle, LastRequest, Limits, PersistenceOptions, Routes, Session, connect_arm,
    session::Options,
};
use gnoma_guard::{
    firewall::{self, Connection, Firewall, Policy},
    permission::Permissions,
    secrets::Scanner,
};
use gnoma_testkit::{Answer, FakeProvider, FakeTool};

/// No session of these tests takes longer, on tokio's clock.
const MAX_WAIT: Duration = Duration::from_secs(600);

struct Run {
    handle: Handle,
    provider: Arc<FakeProvider>,
}

fn start(answers: Vec<Answer>, tools: Vec<FakeTool>, interactive: bool) -> Run {
    let provider = Arc::new(FakeProvider::new(answers));
    let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect();
    let mode = if interactive { PermissionMode::Auto } else { PermissionMode::Bypass };
    start_with(provider, tools, mode, interactive)
}

fn start_with(
    provider: Arc<FakeProvider>,
    tools: Vec<Arc<dyn Tool>>,
    mode: PermissionMode,
    interactive: bool,
) -> Run {
    start_keeping(provider, tools, (mode, interactive), PersistenceOptions::default(), Vec::new())
}

fn start_keeping(
    provider: Arc<FakeProvider>,
    tools: Vec<Arc<dyn Tool>>,
    (mode, interactive): (PermissionMode, bool),
    keeping: PersistenceOptions,
    history: Vec<Arc<Message>>,
) -> Run {
    let firewall = firewall();
    let arm = connect_arm(Connection::new(Arc::clone(&provider) as _, false), "m");
    let routes = Arc::new(Routes::with_single_arm(arm));
    let handle = spawn(routes, firewall, tools, (mode, interactive), keeping, history);
    Run { handle, provider }
}

fn firewall() -> Arc<Firewall> {
    Arc::new(Firewall::new(firewall::FirewallOptions {
        scanner: Scanner::new(Default::default()).unwrap(),
        policy: Policy::default(),
        allowed: Vec::new(),
        first_placeholder: 1,
    }))
}

fn spawn(
    routes: Arc<Routes>,
    firewall: Arc<Firewall>,
    tools: Vec<Arc<dyn Tool>>,
    mode: (PermissionMode, bool),
    keeping: PersistenceOptions,
    history: Vec<Arc<Message>>,
) -> Handle {
    spawn_measured(routes, firewall, tools, mode, keeping, (history, None))
}

fn spawn_measured(
    routes: Arc<Routes>,
    firewall: Arc<Firewall>,
    tools: Vec<Arc<dyn Tool>>,
    mode: (PermissionMode, bool),
    keeping: PersistenceOptions,
    history: (Vec<Arc<Message>>, Option<MeasuredPrefix>),
) -> Handle {
    Session::spawn(options(routes, firewall, tools, mode, keeping, history))
}

/// A session that can be looked into.
fn spawn_gauged(
    routes: Arc<Routes>,
    tools: Vec<Arc<dyn Tool>>,
    keeping: PersistenceOptions,
    gauge: Arc<LastRequest>,
) -> Handle {
    let mode = (PermissionMode::Bypass, false);
    let options = options(routes, firewall(), tools, mode, keeping, (Vec::new(), None));
    Session::spawn(Options { gauge, ..options })
}

fn options(
    routes: Arc<Routes>,
    firewall: Arc<Firewall>,
    tools: Vec<Arc<dyn Tool>>,
    (mode, interactive): (PermissionMode, bool),
    keeping: PersistenceOptions,
    (history, measured): (Vec<Arc<Message>>, Option<MeasuredPrefix>),
) -> Options {
    Options {
        id: "s".into(),
        place: GatePlace::from_folder(Path::new("/")),
        tools,
        routes,
        system: Box::new(|_| "be good".into()),
        mode,
        permissions: Permissions::default(),
        firewall,
        interactive,
        limits: Limits::default(),
        history,
        shape: None,
        thinking: None,
        measured,
        keeping,
        scope: None,
        step: None,
        above: None,
        gauge: Default::default(),
        spawner: None,
        spans: None,
        lifecycle: None,
        held_to: None,
        forbidden: Arc::default(),
        ready: None,
    }
}

impl Run {
    fn say(&self, text: &str) {
        assert!(
            self.handle.send_command(Command::Send { content: vec![Content::from_text(text)] })
        );
    }

    /// Events until `stop` says enough.
    async fn until(&mut self, stop: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let next = tokio::time::timeout(MAX_WAIT, self.handle.next()).await;
            let event = next.expect("the session hangs").expect("the session closed");
            let enough = stop(&event);
            events.push(event);
            if enough {
                return events;
            }
        }
    }

    async fn until_idle(&mut self) -> Vec<Event> {
        self.until(|event| *event == Event::State(SessionState::Idle)).await
    }
}

fn history(events: &[Event]) -> Vec<Arc<Message>> {
    let message = |event: &Event| match event {
        Event::Appended(message) => Some(Arc::clone(message)),
        _ => None,
    };
    events.iter().filter_map(message).collect()
}

fn outcome(events: &[Event]) -> Outcome {
    let ended = |event: &Event| match event {
        Event::TurnEnded { outcome, .. } => Some(outcome.clone()),
        _ => None,
    };
    events.iter().find_map(ended).unwrap()
}

fn assert_paired(messages: &[Arc<Message>]) {
    for (at, message) in messages.iter().enumerate() {
        let calls: Vec<_> = message.tool_calls().map(|call| call.id.clone()).collect();
        let next = messages.get(at + 1);
        let answers: Vec<_> = next
            .map(|next| next.tool_results().map(|result| result.call_id.clone()).collect())
            .unwrap_or_default();
        assert_eq!(calls, answers);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_with_a_tool() {
    let tool = FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text("seen"));
    let answers = vec![Answer::calls(&[("c", "look", "{}")]), Answer::text("fine")];
    let mut run = start(answers, vec![tool], false);
    run.say("look");
    let events = run.until_idle().await;
    let roles: Vec<_> = history(&events).iter().map(|message| message.role()).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!(run.provider.requests()[1].messages.len(), 3);
    assert_eq!(run.provider.open_streams(), 0, "streams are closed when their answer is over");
}

#[tokio::test(start_paused = true)]
async fn reads_run_side_by_side() {
    let work = |_: &_| ToolOutcome::success_text("x");
    let tool = FakeTool::new("look", Access::Read, work).with_delay(Duration::from_secs(1));
    let calls: Vec<_> = ["a", "b", "c"].map(|id| (id, "look", "{}")).into();
    let mut run = start(vec![Answer::calls(&calls), Answer::text("ok")], vec![tool.clone()], false);
    run.say("go");
    run.until_idle().await;
    assert_eq!(tool.most_running(), 3);
    let tool = FakeTool::new("write", Access::Edit, work).with_delay(Duration::from_secs(1));
    let calls: Vec<_> = ["a", "b", "c"].map(|id| (id, "write", "{}")).into();
    let mut run = start(vec![Answer::calls(&calls), Answer::text("ok")], vec![tool.clone()], false);
    run.say("go");
    run.until_idle().await;
    assert_eq!(tool.most_running(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_fails_its_call_and_the_session_goes_on() {
    let tool = FakeTool::new_panicking("boom", Access::Read);
    let answers = vec![Answer::calls(&[("c", "boom", "{}")]), Answer::text("I see")];
    let mut run = start(answers, vec![tool], false);
    run.say("go");
    let events = run.until_idle().await;
    let messages = history(&events);
    let result = messages[2].tool_results().next().unwrap();
    assert!(result.is_error && result.joined_text().contains("crashed"), "{result:?}");
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
}

#[tokio::test(start_paused = true)]
async fn cancelling_works_in_every_state() {
    let says = StreamEvent::TextDelta { slot: 0, text: "half".into() };
    let states: Vec<(Answer, FakeTool)> = vec![
        (Answer::endless_silence(), FakeTool::new_stoppable("t", Access::Read)),
        (
            Answer::from_events(vec![Ok(says)]).then_hang(),
            FakeTool::new_stoppable("t", Access::Read),
        ),
        (Answer::from_error(ErrorKind::Overloaded), FakeTool::new_stoppable("t", Access::Read)),
        (
            Answer::calls(&[("a", "t", "{}"), ("b", "t", "{}")]),
            FakeTool::new_stoppable("t", Access::Read),
        ),
        (
            Answer::calls(&[("a", "t", "{}"), ("b", "t", "{}")]),
            FakeTool::new_unstoppable("t", Access::Execute),
        ),
    ];
    for (answer, tool) in states {
        let mut run = start(vec![answer], vec![tool], false);
        run.say("go");
        let wait = tokio::time::timeout(Duration::from_millis(500), run.until(|_| false)).await;
        assert!(wait.is_err(), "the turn should still be running");
        assert!(run.handle.send_command(Command::Cancel));
        let events = run.until_idle().await;
        assert_eq!(outcome(&events), Outcome::Cancelled);
        assert_paired(&history(&events));
        run.say("again");
        let events = run.until_idle().await;
        assert!(matches!(outcome(&events), Outcome::Failed { .. }), "the script is over");
    }
}

#[tokio::test(start_paused = true)]
async fn permission_question_is_answered_with_deny_or_allow() {
    let tool = FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("written"));
    let tool = tool.with_preview("-a\n+b\n");
    let one = || Answer::calls(&[("c", "write", "{}")]);
    let mut run = start(vec![one(), one(), Answer::text("ok")], vec![tool.clone()], true);
    run.say("go");
    let asked = |event: &Event| matches!(event, Event::PermissionAsked { .. });
    let events = run.until(asked).await;
    let Some(Event::PermissionAsked { call, preview, .. }) = events.last() else { panic!() };
    assert_eq!(preview.as_deref(), Some("-a\n+b\n"));
    let deny = Reply::Deny { reason: "not there".into() };
    run.handle.send_command(Command::Answer { call: call.id.clone(), answer: deny });
    let events = run.until(asked).await;
    let messages = history(&events);
    let refusal = messages[0].tool_results().next().unwrap().joined_text();
    assert!(refusal.contains("not there"), "{refusal}");
    run.handle.send_command(Command::Answer { call: CallId::new("c_2"), answer: Reply::Allow });
    run.until_idle().await;
    assert_eq!(tool.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn queued_messages_can_be_edited_until_they_are_sent() {
    let texts =
        |queue: &[&str]| Vec::from_iter(queue.iter().map(|text| vec![Content::from_text(*text)]));
    let edit =
        |was: &[&str], queue: &[&str]| Command::EditQueue { was: texts(was), queue: texts(queue) };
    let calls = || Answer::calls(&[("c", "look", "{}")]);
    let tool = FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text("x"));
    let tool = tool.with_delay(Duration::from_secs(1));
    let mut run = start(vec![calls(), calls(), Answer::text("ok")], vec![tool], false);
    run.say("go");
    run.until(|event| matches!(event, Event::ToolStarted { .. })).await;
    for text in ["one", "two", "three"] {
        run.say(text);
    }
    // One is edited, one is deleted.
    run.handle.send_command(edit(&["one", "two", "three"], &["One!", "three"]));
    let before = run.until(|event| matches!(event, Event::ToolStarted { .. })).await;
    // It was delivered with the first results: an edit of it comes too late.
    run.handle.send_command(edit(&["One!", "three"], &["ONE", "three"]));
    run.say("four");
    run.handle.send_command(edit(&["four"], &[]));
    let after = run.until_idle().await;
    let said = |events: &[Event]| {
        let all = history(events);
        let people = all.iter().filter(|message| message.role() == Role::User);
        people.map(|message| message.text_content()).collect::<Vec<_>>()
    };
    assert_eq!(said(&before), ["One!", "three"]);
    assert!(said(&after).is_empty(), "{after:?}");
    let is_warned = |event: &Event| matches!(event, Event::Notice { text, .. } if text.contains("edit was not applied"));
    assert_eq!(after.iter().filter(|event| is_warned(event)).count(), 1);
    assert!(!before.iter().any(is_warned));
    // Nothing waits between turns, and nothing comes to wait by an edit.
    run.handle.send_command(edit(&[], &["out of nowhere"]));
    let quiet = tokio::time::timeout(
        Duration::from_secs(1),
        run.until(|event| matches!(event, Event::State(_))),
    )
    .await;
    assert!(quiet.is_err());
}

#[tokio::test(start_paused = true)]
async fn permission_mode_change_applies_from_the_next_call() {
    let tool = FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("written"));
    let answers = vec![Answer::calls(&[("c", "write", "{}")]), Answer::text("ok")];
    let mut run = start(answers, vec![tool.clone()], false);
    run.handle.send_command(Command::SetMode { mode: PermissionMode::Plan });
    run.say("go");
    run.until_idle().await;
    assert!(tool.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn transient_failures_are_retried() {
    let answers = vec![
        Answer::from_error(ErrorKind::Overloaded),
        Answer::from_error(ErrorKind::Network),
        Answer::text("at last"),
    ];
    let mut run = start(answers, vec![], false);
    run.say("go");
    let events = run.until_idle().await;
    let retries = events.iter().filter(|event| matches!(event, Event::Retrying { .. })).count();
    assert_eq!(retries, 2);
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
}

#[tokio::test(start_paused = true)]
async fn closing_ends_a_running_turn_first() {
    let mut run = start(vec![Answer::endless_silence()], vec![], false);
    run.say("go");
    run.until(|event| matches!(event, Event::RoundStarted { .. })).await;
    run.handle.send_command(Command::Close);
    let closed = |event: &Event| *event == Event::State(SessionState::Closed);
    let events = run.until(closed).await;
    assert_eq!(outcome(&events), Outcome::Cancelled);
    assert!(run.handle.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handle_closes_the_connection() {
    let mut run = start(vec![Answer::endless_silence()], vec![], false);
    run.say("go");
    run.until(|event| matches!(event, Event::RoundStarted { .. })).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(run.provider.open_streams(), 1);
    let Run { handle, provider } = run;
    drop(handle);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(provider.open_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_event_reader_applies_backpressure_to_the_model_stream() {
    let delta = |n: u32| Ok(StreamEvent::TextDelta { slot: 0, text: format!("{n} ") });
    let answer = Answer::from_events((0..5_000).map(delta).collect()).then_hang();
    let run = start(vec![answer], vec![], false);
    run.say("go");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let Run { mut handle, .. } = run;
    let mut waiting = 0;
    while handle.try_next_event().is_some() {
        waiting += 1;
    }
    assert!(waiting < 400, "{waiting} events were piled up");
}

/// What the turn in these events has used.
fn usage_of_turn(events: &[Event]) -> Usage {
    let used = |event: &Event| match event {
        Event::TurnEnded { usage, .. } => Some(*usage),
        _ => None,
    };
    events.iter().find_map(used).unwrap()
}

#[tokio::test(start_paused = true)]
async fn cancelled_turn_counts_estimated_tokens_of_its_call() {
    let says = StreamEvent::TextDelta { slot: 0, text: "half of an answer".into() };
    let mut run = start(vec![Answer::from_events(vec![Ok(says)]).then_hang()], vec![], false);
    run.say("go");
    run.until(|event| matches!(event, Event::Text { .. })).await;
    assert!(run.handle.send_command(Command::Cancel));
    let events = run.until_idle().await;
    let used = usage_of_turn(&events);
    assert!(used.input > 0 && used.output > 0, "{used:?}");
    // One word and no tools: nothing is added for what was not sent.
    assert!(used.input < 100, "{used:?}");
}

#[tokio::test(start_paused = true)]
async fn turn_estimates_tokens_if_the_provider_reports_no_usage() {
    let answers = vec![Answer::text("a whole answer"), Answer::text("and another one")];
    let mut run = start(answers, vec![], false);
    for _ in 0..2 {
        run.say("go");
        let events = run.until_idle().await;
        let used = usage_of_turn(&events);
        assert!(used.input > 0 && used.output > 0, "{used:?}");
        // Not those of the turn before as well.
        assert!(used.output < 10, "{used:?}");
    }
}
