//! What a session has cost: every place that says so says the same as the ledger, to the micro-dollar, whoever was
//! called.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gnoma_core::{
    ErrorKind, Event, EventStream, ModelInfo, ModelRef, ModelRequest, Price, Provider,
    ProviderError, StreamEvent, ToolOutcome, Usage,
    ledger::{Ledger as _, Total},
    protocol::{Overrides, Reply, Request, SessionSpec},
    session::PermissionMode,
    store::SessionId,
    tool::{Access, BoxFuture, ToolOutput},
};
use gnoma_engine::{Routes, connect_arm, routing::RoutingPorts};
use gnoma_guard::firewall::Connection;
use gnoma_router::{
    Arm, Prior, Published, Router, RouterSettings, Strategy, Tuning, Verify, Wire,
    pool::{Caps, PoolLimits},
};
use gnoma_testkit::{FakeLedger, FakeTool};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    obedient::{Events, Obedient, paced, text},
    support::{Window, World, kept},
};

/// Random sessions whose totals are compared, on so many threads.
const SESSIONS: u64 = 500;
const THREADS: u64 = 4;
/// An arm that failed is asked again after this long.
const REST: Duration = Duration::from_secs(1_200);
/// More tokens than any bytes explain.
const ABSURD_TOKENS: u64 = 100_000_000_000;
/// No round numbers: amounts are rounded, and sums must not be.
const PRICES: [Price; 2] = [
    Price { input: 1_234_567, output: 9_876_543, cache_read: 123_457, cache_write: 1_543_211 },
    Price { input: 333_333, output: 1_777_777, cache_read: 33_333, cache_write: 0 },
];

/// Numbers that look random and are the same each time.
#[derive(Debug)]
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        // The linear congruential generator of Knuth's MMIX.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// A task that a random tree of elfs does: some fail, some start others, some are stopped by their time limit.
    fn task(&mut self, depth: usize) -> Value {
        match self.below(6) {
            0 => json!({ "task": "fail" }),
            1 => json!({ "task": "hang", "max_seconds": 3 }),
            2 | 3 if depth > 0 => {
                let count = 1 + self.below(2);
                let tasks: Vec<Value> = (0..count).map(|_| self.task(depth - 1)).collect();
                let task = format!("spawn {}", json!({ "tasks": tasks }));
                json!({ "task": task, "may_spawn": true })
            }
            _ => json!({ "task": "hello" }),
        }
    }

    fn prompt(&mut self) -> String {
        match self.below(3) {
            0 => "hello".to_owned(),
            1 => "write".to_owned(),
            _ => {
                let tasks: Vec<Value> = (0..1 + self.below(2)).map(|_| self.task(1)).collect();
                format!("spawn {}", json!({ "tasks": tasks }))
            }
        }
    }
}

/// A model that does what it is told unless it breaks down, and reports what it likes.
struct Moody {
    obedient: Obedient,
    numbers: Arc<Mutex<Numbers>>,
}

impl Moody {
    /// The events of an answer, with what is reported of it, as far as it comes.
    fn report(&self, answer: Events) -> Events {
        let mut numbers = self.numbers.lock().unwrap();
        let mut below = |most| numbers.below(most);
        let usage = Usage {
            input: below(20_000),
            output: below(4_000),
            cache_read: below(10_000),
            cache_write: below(3_000),
            reasoning: 0,
        };
        let breaks = |kind| Err(ProviderError::new(kind, "moody", "as it happens"));
        let half = || Ok(StreamEvent::TextDelta { slot: 0, text: "half of an ans".to_owned() });
        let tells = Ok(StreamEvent::Usage(usage));
        match below(10) {
            0 => vec![breaks(ErrorKind::Overloaded)],
            1 => vec![half(), breaks(ErrorKind::Network)],
            // It tells the beginning and breaks off after more.
            2 => vec![tells, half(), breaks(ErrorKind::Protocol)],
            3 => {
                let absurd = Usage { input: ABSURD_TOKENS, ..usage };
                std::iter::once(Ok(StreamEvent::Usage(absurd))).chain(answer).collect()
            }
            // It never tells.
            4 => answer,
            _ => std::iter::once(tells).chain(answer).collect(),
        }
    }
}

impl Provider for Moody {
    fn name(&self) -> &'static str {
        "moody"
    }

    fn stream(&self, request: ModelRequest) -> EventStream {
        let Some((answer, pause)) = self.obedient.answer(&request) else {
            return Box::pin(futures_util::stream::pending());
        };
        // Requests for reviews and summaries have no tools.
        let answer = match &*request.system {
            system if system.contains("\"holds\"") => text(r#"{"holds": true}"#.to_owned()),
            _ if request.tools.is_empty() => text("in short".to_owned()),
            _ => answer,
        };
        paced(self.report(answer), pause)
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// The arms of a session, of which another one is the best in each: two models with prices, one without, and the agent
/// of another program.
fn team(provider: &Arc<Moody>, ledger: &FakeLedger, begun: Instant, best: usize) -> Arc<Routes> {
    let name = |model: &str| ModelRef { provider: "moody".to_owned(), model: model.to_owned() };
    let settings = RouterSettings {
        strategy: Strategy::Cascade,
        verify: Verify::Reviewer,
        classifier: Some(name("cheap")),
        limits: PoolLimits::new(Caps::default()),
        ..RouterSettings::default()
    };
    let ports = RoutingPorts {
        ledger: Some(Arc::new(ledger.clone())),
        now_ms: Box::new(move || i64::try_from(begun.elapsed().as_millis()).unwrap() + 1),
        ..RoutingPorts::default()
    };
    let members = [
        ("dear", Some(PRICES[0]), Wire::default()),
        ("cheap", Some(PRICES[1]), Wire::default()),
        ("unpriced", None, Wire::default()),
        ("agent", Some(PRICES[0]), Wire::Agent),
    ];
    let mut arms = Vec::new();
    for (number, (model, price, wire)) in members.into_iter().enumerate() {
        // A cheap arm opens, and the best one reviews.
        let (quality, cost) = if number == best % 4 { (0.85, 0.5) } else { (0.6, 0.02) };
        let overall = Some(Prior { quality, cost, tasks: 300.0 });
        let published = Arc::new(Published { overall, ..Published::default() });
        let connection = Connection::new(Arc::clone(provider) as _, false);
        let (arm, connection) = connect_arm(connection, model);
        arms.push((Arm { price, wire, host: model.into(), published, ..arm }, connection));
    }
    let routes = Routes::new(Router::new(Tuning::default()), settings, ports);
    routes.set_arms(arms);
    Arc::new(routes)
}

/// A tool that changes a file.
fn editor() -> FakeTool {
    let output = ToolOutput { diff: Some("-a\n+b".to_owned()), ..ToolOutput::from_text("done") };
    FakeTool::new("write", Access::Edit, move |_| ToolOutcome::Done(output.clone()))
}

/// What happened in the sessions that were looked at, so that none of it is missing.
#[derive(Debug, Default)]
struct Happened {
    arm_changes: usize,
    reviews: usize,
    compactions: usize,
    estimates: usize,
    partial: usize,
    agents: usize,
}

impl Happened {
    fn see(&mut self, event: &Event) {
        match event {
            Event::ArmChanged { .. } => self.arm_changes += 1,
            Event::Checked { .. } => self.reviews += 1,
            Event::Compacted { .. } => self.compactions += 1,
            Event::Cost { estimated, call_micro_usd, arm, .. } => {
                self.estimates += usize::from(*estimated);
                self.partial += usize::from(call_micro_usd.is_none());
                self.agents += usize::from(arm.model == "agent");
            }
            _ => (),
        }
    }
}

async fn compare_totals(seed: u64, happened: &mut Happened) {
    let numbers = Arc::new(Mutex::new(Numbers(seed)));
    let (ledger, begun) = (FakeLedger::default(), Instant::now());
    let provider = Arc::new(Moody { obedient: Obedient::default(), numbers: Arc::clone(&numbers) });
    let counted = ledger.clone();
    let make = move |id: &SessionId| {
        let number: usize = id.as_str()[1..].parse().unwrap();
        team(&provider, &counted, begun, number + usize::try_from(seed).unwrap())
    };
    let world = World::of_team(Box::new(make), vec![Arc::new(editor())]);
    let host = world.host();
    let mut window = Window::new(&host, "person");
    let overrides = Overrides { mode: Some(PermissionMode::Bypass), ..Overrides::default() };
    let session =
        window.open(SessionSpec { overrides, profile: Some("past".to_owned()), ..kept() }).await;
    window.attach(&session).await;
    window.recorded = Some(Vec::new());
    let prompt = numbers.lock().unwrap().prompt();
    window.turn(&session, &prompt).await;
    window.settle(REST).await;
    if numbers.lock().unwrap().below(2) == 0 {
        let compact = Request::Compact { focus: String::new() };
        let _refused = window.ask(Some(&session), compact).await;
        window.settle(REST).await;
    }

    let totals = ledger.daily_totals(0).await.unwrap();
    let counted: u64 = totals.iter().map(|Total { amount, .. }| amount.micro_usd).sum();
    let view = &window.views[&session];
    window.recorded.iter().flatten().for_each(|event| happened.see(event));
    let (shown, is_partial) = (view.micro_usd, view.is_cost_partial);
    assert_eq!(shown, counted, "seed {seed}: the window");
    let is_unpriced = |total: &Total| total.arm.model == "unpriced" && total.amount.input > 0;
    assert_eq!(is_partial, totals.iter().any(is_unpriced), "seed {seed}");
    let Ok(Reply::Status(status)) = window.ask(Some(&session), Request::Status).await else {
        panic!("no status")
    };
    assert_eq!(status.micro_usd, counted, "seed {seed}: the status");
    let usage = window.ask(Some(&session), Request::Usage).await;
    let Ok(Reply::Usage { micro_usd, is_cost_partial, .. }) = usage else { panic!("{usage:?}") };
    assert_eq!((micro_usd, is_cost_partial), (counted, is_partial), "seed {seed}: the usage");
    assert_eq!(ledger.held_reservations(), [], "seed {seed}");
}

/// Random sessions with elfs, failover, reviews, compaction, classifiers and agents of other programs, whose calls break
/// off, are never reported, or are reported as what they cannot be.
#[test]
fn totals_of_random_sessions_equal_the_ledger() {
    let walk = |thread: u64| {
        let mut happened = Happened::default();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        for seed in (thread..SESSIONS).step_by(THREADS as usize) {
            runtime.block_on(compare_totals(seed, &mut happened));
        }
        happened
    };
    let happened = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || walk(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let sum = |of: fn(&Happened) -> usize| happened.iter().map(of).sum::<usize>();
    let seen = [
        sum(|it| it.arm_changes),
        sum(|it| it.reviews),
        sum(|it| it.compactions),
        sum(|it| it.estimates),
        sum(|it| it.partial),
        sum(|it| it.agents),
    ];
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}
