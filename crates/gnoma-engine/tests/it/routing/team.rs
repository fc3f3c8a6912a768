//! A session over scripted arms, on a clock that stands still unless told, with a memory to read.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    Command, ErrorKind, Event, Message, ModelRef, ModelRequest, Price, ProviderError, StreamEvent,
    ToolOutcome, Usage,
    ledger::Ledger,
    session::{Outcome, PermissionMode, Routing, SessionState},
    store::StoreFuture,
    tool::{Access, CommandReport, ToolKind, ToolOutput},
};
use gnoma_engine::{
    PersistenceOptions, Routes, connect_arm,
    routing::{OutcomeStore, RoutingPorts, VitalsStore},
};
use gnoma_guard::firewall::Connection;
use gnoma_router::{
    Arm, Prior, Published, Router, RouterSettings, Strategy, TaskOutcome as Learnt, Tuning, Verify,
    pool::PoolLimits, vitals::Speed,
};
use gnoma_testkit::{Answer, FakeLedger, FakeProvider, FakeTool};
use serde_json::{Value, json};

use crate::{Run, firewall, history, outcome, spawn};

/// When the tests begin, in milliseconds since 1970.
const BEGUN_MS: i64 = 1_800_000_000_000;

/// An arm of the tests: its model, how often it is right and what a task costs there.
pub(super) struct Member {
    model: &'static str,
    quality: f64,
    cost: f64,
    price: Option<Price>,
    tools: bool,
    window: Option<u32>,
    pools: &'static [&'static str],
    answers: Vec<Answer>,
}

/// An arm that takes a dollar for a million tokens; see [`price`].
pub(super) fn member(model: &'static str, quality: f64, cost: f64, answers: Vec<Answer>) -> Member {
    let price = Some(price(1));
    Member { model, quality, cost, price, tools: true, window: None, pools: &[], answers }
}

impl Member {
    pub(super) fn priced(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// Drawing on these sets of limits.
    pub(super) fn in_pools(self, pools: &'static [&'static str]) -> Self {
        Self { pools, ..self }
    }

    pub(super) fn without_tools(self) -> Self {
        Self { tools: false, ..self }
    }

    /// Said to have a window of so many tokens.
    pub(super) fn windowed(self, tokens: u32) -> Self {
        Self { window: Some(tokens), ..self }
    }
}

/// Dollars for a million tokens read, and ten times as many for as many written.
pub(super) fn price(dollars: u64) -> Price {
    Price { input: dollars * 1_000_000, output: dollars * 10_000_000, ..Price::default() }
}

pub(super) fn name(model: &str) -> ModelRef {
    ModelRef { provider: "fake".into(), model: model.into() }
}

/// Keeps what is learnt.
#[derive(Default)]
struct Notes(Mutex<Vec<Learnt>>);

impl OutcomeStore for Notes {
    fn learn_outcome(&self, outcome: Learnt) -> StoreFuture<'_, ()> {
        self.0.lock().unwrap().push(outcome);
        Box::pin(async { Ok(()) })
    }
}

pub(super) struct Team {
    pub(super) run: Run,
    /// In the order of the members.
    pub(super) providers: Vec<Arc<FakeProvider>>,
    pub(super) routes: Arc<Routes>,
    notes: Arc<Notes>,
    clock: Arc<AtomicI64>,
}

/// How a team is routed, and the stores that it has.
pub(super) struct TeamOptions {
    pub(super) settings: RouterSettings,
    pub(super) ledger: Option<Arc<dyn Ledger>>,
    pub(super) board: Option<Arc<dyn VitalsStore>>,
}

impl From<RouterSettings> for TeamOptions {
    fn from(settings: RouterSettings) -> Self {
        Self { settings, ledger: None, board: None }
    }
}

impl TeamOptions {
    /// With changed settings.
    pub(super) fn with(mut self, change: impl FnOnce(&mut RouterSettings)) -> Self {
        change(&mut self.settings);
        self
    }
}

/// The memory and the clock are the team's.
pub(super) fn team(
    members: Vec<Member>,
    options: impl Into<TeamOptions>,
    tools: Vec<FakeTool>,
) -> Team {
    team_in((PermissionMode::Bypass, false), members, options, tools, PersistenceOptions::default())
}

/// The same, asking so much before tools run (somebody can answer, or nobody).
pub(super) fn team_in(
    asked: (PermissionMode, bool),
    members: Vec<Member>,
    options: impl Into<TeamOptions>,
    tools: Vec<FakeTool>,
    keeping: PersistenceOptions,
) -> Team {
    team_resumed(asked, members, options, tools, (keeping, Vec::new()))
}

/// The same, going on with what was said before.
pub(super) fn team_resumed(
    asked: (PermissionMode, bool),
    members: Vec<Member>,
    options: impl Into<TeamOptions>,
    tools: Vec<FakeTool>,
    (keeping, history): (PersistenceOptions, Vec<Arc<Message>>),
) -> Team {
    let firewall = firewall();
    let notes = Arc::new(Notes::default());
    let clock = Arc::new(AtomicI64::new(BEGUN_MS));
    let shown = Arc::clone(&clock);
    let TeamOptions { settings, ledger, board } = options.into();
    let ports = RoutingPorts {
        ledger,
        board,
        memory: Some(Arc::clone(&notes) as _),
        now_ms: Box::new(move || shown.load(Ordering::SeqCst)),
        ..RoutingPorts::default()
    };
    let routes = Arc::new(Routes::new(Router::new(Tuning::default()), settings, ports));
    let (mut arms, mut providers) = (Vec::new(), Vec::new());
    for Member { model, quality, cost, price, tools, window, pools, answers } in members {
        let provider = Arc::new(FakeProvider::new(answers));
        let connection = Connection::new(Arc::clone(&provider) as _, false);
        let pools = pools.iter().map(|pool| (*pool).to_owned()).collect();
        let (host, context_window) = (model.into(), window);
        let overall = Some(Prior { quality, cost, tasks: 300.0 });
        let published = Arc::new(Published { overall, ..Published::default() });
        let (arm, connection) = connect_arm(connection, model);
        let arm = Arm { price, tools, host, context_window, pools, published, ..arm };
        arms.push((arm, connection));
        providers.push(provider);
    }
    routes.set_arms(arms);
    let tools = tools.into_iter().map(|tool| Arc::new(tool) as _).collect();
    let handle = spawn(Arc::clone(&routes), firewall, tools, asked, keeping, history);
    let provider = Arc::clone(&providers[0]);
    Team { run: Run { handle, provider }, providers, routes, notes, clock }
}

/// A cheap arm that is often right, and one that costs much more and is nearly always right.
pub(super) fn cascade(
    cheap: Vec<Answer>,
    strong: Vec<Answer>,
    options: impl Into<TeamOptions>,
    tools: Vec<FakeTool>,
) -> Team {
    let cheap = member("cheap", 0.6, 0.02, cheap);
    team(vec![cheap, member("strong", 0.85, 0.5, strong)], options, tools)
}

impl Team {
    /// The speed that a model has shown.
    pub(super) fn speed(&self, model: &str) -> Option<Speed> {
        self.routes.with_state(|state| state.tracker.vitals.speeds.for_arm(&name(model)))
    }

    /// A whole turn.
    pub(super) async fn turn(&mut self, words: &str) -> Vec<Event> {
        self.run.say(words);
        self.run.until_idle().await
    }

    /// Lets the running turn go on for so long and cancels it.
    pub(super) async fn cancel_after(&mut self, time: Duration) {
        let ended = tokio::time::timeout(time, self.run.until(|_| false)).await;
        assert!(ended.is_err(), "the turn should still be running");
        assert!(self.run.handle.send_command(Command::Cancel));
        assert_eq!(outcome(&self.run.until_idle().await), Outcome::Cancelled);
    }

    /// A command that is answered with a notice.
    pub(super) async fn order(&mut self, command: Command) {
        assert!(self.run.handle.send_command(command));
        self.run.until(|event| matches!(event, Event::Notice { .. })).await;
    }

    /// Moves the clock.
    pub(super) fn pass(&self, time: Duration) {
        self.clock.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Lets the clock go on for so long while the session works.
    pub(super) async fn live(&self, time: Duration) {
        const STEP: Duration = Duration::from_millis(100);
        let mut lived = Duration::ZERO;
        while lived < time {
            tokio::time::sleep(STEP).await;
            self.pass(STEP);
            lived += STEP;
        }
    }

    /// How often a member was asked.
    pub(super) fn asked(&self, member: usize) -> usize {
        self.providers[member].requests().len()
    }

    /// Closes the session: all that was learnt.
    pub(super) async fn learnt(&mut self) -> Vec<Learnt> {
        assert!(self.run.handle.send_command(Command::Close));
        self.run.until(|event| *event == Event::State(SessionState::Closed)).await;
        self.notes.0.lock().unwrap().clone()
    }
}

pub(super) fn by(strategy: Strategy) -> RouterSettings {
    RouterSettings { strategy, ..RouterSettings::default() }
}

/// With another arm to review the work.
pub(super) fn reviewed() -> RouterSettings {
    RouterSettings { verify: Verify::Reviewer, ..RouterSettings::default() }
}

/// With this command to prove the project right.
pub(super) fn proven_by(command: &str) -> RouterSettings {
    RouterSettings { checks: vec![command.into()], ..RouterSettings::default() }
}

/// With these limits, kept by this ledger.
pub(super) fn counted(limits: PoolLimits, ledger: &FakeLedger) -> TeamOptions {
    let settings = RouterSettings { limits, ..RouterSettings::default() };
    TeamOptions { ledger: Some(Arc::new(ledger.clone())), ..settings.into() }
}

/// A tool that changes a file.
pub(super) fn editor() -> FakeTool {
    let mut output = ToolOutput::from_text("changed");
    output.diff = Some("-a\n+b".into());
    FakeTool::new("edit", Access::Edit, move |_| ToolOutcome::Done(output.clone()))
}

/// A call of [`editor`].
pub(super) fn edits() -> Answer {
    Answer::calls(&[("edited", "edit", "{}")])
}

/// A tool whose commands all end with this code, or are stopped before they end.
pub(super) fn shell(exit_code: Option<i32>) -> FakeTool {
    FakeTool::new("bash", Access::Execute, move |call| {
        let arguments: Value = call.arguments.read().unwrap();
        let command = arguments["command"].as_str().unwrap_or_default().to_owned();
        let mut output = ToolOutput::from_text("output");
        output.report = Some(CommandReport { command, exit_code, walled: None, trial: None });
        match exit_code {
            Some(0) => ToolOutcome::Done(output),
            Some(_) | None => ToolOutcome::Failed(output),
        }
    })
    .of_kind(ToolKind::Shell)
}

/// A call of [`shell`].
pub(super) fn runs(command: &str) -> Answer {
    let arguments = json!({ "command": command }).to_string();
    Answer::calls(&[("ran", "bash", &arguments)])
}

/// A reviewer's word.
pub(super) fn verdict(holds: bool, why: &str) -> Answer {
    Answer::text(json!({ "holds": holds, "why": why }).to_string())
}

/// An answer that breaks off.
pub(super) fn broken(text: &str, kind: ErrorKind) -> Answer {
    let error = ProviderError::new(kind, "fake", "as scripted");
    Answer::from_events(vec![Ok(StreamEvent::TextDelta { slot: 0, text: text.into() }), Err(error)])
}

/// The same answer, telling before its end that it read so many tokens and wrote a tenth of them:
/// at a dollar for a million, [`member`]'s price, two micro-dollars for each token read.
pub(super) fn telling(mut answer: Answer, tokens: u64) -> Answer {
    let usage = Usage { input: tokens, output: tokens / 10, ..Usage::default() };
    let end = answer.events.len().saturating_sub(1);
    answer.events.insert(end, Ok(StreamEvent::Usage(usage)));
    answer
}

/// Words that so many tokens were read for; see [`telling`].
pub(super) fn used(text: &str, tokens: u64) -> Answer {
    telling(Answer::text(text), tokens)
}

/// What was said to and by the model.
pub(super) fn said(events: &[Event]) -> Vec<String> {
    history(events).iter().map(|message| message.text_content()).collect()
}

/// From which arm to which, and whether what the first had said was taken back.
pub(super) fn changes(events: &[Event]) -> Vec<(&str, &str, bool)> {
    let change = |event| match event {
        &Event::ArmChanged { ref from, ref to, retracted, .. } => {
            Some((&*from.model, &*to.model, retracted))
        }
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

/// Whose work was checked, by whom, and whether it held.
pub(super) fn checks(events: &[Event]) -> Vec<(&str, &str, bool)> {
    let check = |event| match event {
        &Event::Checked { ref arm, ref by, passed, .. } => Some((&*arm.model, &**by, passed)),
        _ => None,
    };
    events.iter().filter_map(check).collect()
}

/// Micro-dollars of each call whose provider told its tokens, where they are known.
pub(super) fn costs(events: &[Event]) -> Vec<(&str, Option<u64>)> {
    costs_of(events, false)
}

/// The same, of what gnoma counted itself.
pub(super) fn estimates(events: &[Event]) -> Vec<(&str, Option<u64>)> {
    costs_of(events, true)
}

fn costs_of(events: &[Event], own_count: bool) -> Vec<(&str, Option<u64>)> {
    let cost = |event| match event {
        &Event::Cost { ref arm, call_micro_usd, estimated, .. } if estimated == own_count => {
            Some((&*arm.model, call_micro_usd))
        }
        _ => None,
    };
    events.iter().filter_map(cost).collect()
}

/// Whose words stand, and who decided it, each time several have answered.
pub(super) fn authors(events: &[Event]) -> Vec<(&str, Option<&str>)> {
    let mut authors = Vec::new();
    for event in events {
        if let Event::Conferred { author, chair, .. } = event {
            authors.push((&*author.model, chair.as_ref().map(|chair| &*chair.model)));
        }
    }
    authors
}

/// What people were told beside.
pub(super) fn notices(events: &[Event]) -> Vec<&str> {
    let mut notices = Vec::new();
    for event in events {
        if let Event::Notice { text, .. } = event {
            notices.push(text.as_str());
        }
    }
    notices
}

/// The names of the tools that a request offers.
pub(super) fn offered(request: &ModelRequest) -> Vec<String> {
    request.tools.iter().map(|tool| tool.name.clone()).collect()
}

/// A tool that only reads.
pub(super) fn reader() -> FakeTool {
    FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text("what the file says"))
}

/// A call of [`reader`].
pub(super) fn looks() -> Answer {
    Answer::calls(&[("looked", "look", "{}")])
}

/// Micro-dollars of all calls.
pub(super) fn spent(events: &[Event]) -> u64 {
    costs(events).iter().filter_map(|(_, cost)| *cost).sum()
}

/// How the turn was routed at first.
pub(super) fn routed(events: &[Event]) -> &Routing {
    let routing = events.iter().find_map(|event| match event {
        Event::Routed(routing) => Some(&**routing),
        _ => None,
    });
    routing.expect("there was a choice")
}

pub(super) fn assert_complete(events: &[Event]) {
    let outcome = outcome(events);
    assert!(matches!(outcome, Outcome::Complete { .. }), "{outcome:?}");
}
