//! What sessions spend that run at once and share a ledger: within the cap, counted to the
//! micro-dollar, and nothing stays held.

use std::{path::Path, sync::Arc, time::Duration};

use gnoma_core::{
    Command, Content, ErrorKind, Event, Price, ProviderError, StopReason, StreamEvent, ToolOutcome,
    Usage,
    ledger::{Amount, Ledger as _, Limit, PoolDraw, Total, Unit, Window},
    session::{Outcome, PermissionMode, SessionState},
    tool::Access,
};
use gnoma_engine::{
    GatePlace, Handle, Limits, PersistenceOptions, Routes, Session, connect_arm,
    routing::{OWN, RoutingPorts},
    session::Options,
};
use gnoma_guard::{firewall::Connection, permission::Permissions};
use gnoma_router::{
    Arm, Prior, Published, Router, RouterSettings, Tuning, Verify,
    pool::{self, Caps, Scope},
};
use gnoma_testkit::{Answer, FakeLedger, FakeProvider, FakeTool};
use proptest::prelude::*;
use tokio::{
    runtime,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{MAX_WAIT, firewall};

/// Sessions that run at once.
const MOST_SESSIONS: usize = 10;

/// Noon of a day: nothing of these tests lasts until another.
const NOON_MS: i64 = 1_800_014_400_000;

/// A model that has said nothing for this long hangs; the person stops it.
const PATIENCE: Duration = Duration::from_secs(120);

/// After a failure an arm rests; the person comes back when that is over.
const REST: Duration = Duration::from_secs(600);

/// No round number: amounts are rounded, and sums must not be.
const PRICE: Price =
    Price { input: 1_234_567, output: 9_876_543, cache_read: 123_457, cache_write: 1_543_211 };

/// How a model call goes.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// With the end of the turn.
    Words,
    /// With a call of a tool: the turn goes on.
    Tool,
    /// At the limit of its length: the model is asked to go on.
    Cut,
    /// It breaks down after its tokens were told.
    Broken,
    /// It breaks down before it has said anything, and is made again.
    Refused,
    /// The person stops it.
    Silence,
}

/// A model call as it is scripted.
#[derive(Clone, Copy, Debug)]
struct Call {
    usage: Usage,
    pause_ms: u64,
    ending: Ending,
}

impl Call {
    /// The tokens that the provider tells.
    fn reported(self) -> Usage {
        match self.ending {
            Ending::Words | Ending::Tool | Ending::Cut | Ending::Broken | Ending::Refused => {
                self.usage
            }
            Ending::Silence => Usage::default(),
        }
    }

    fn answer(self, number: usize) -> Answer {
        let says = || Ok(StreamEvent::TextDelta { slot: 0, text: format!("answer {number}") });
        let fails = |kind| Err(ProviderError::new(kind, "fake", "as scripted"));
        let tells = Ok(StreamEvent::Usage(self.usage));
        let answer = match self.ending {
            Ending::Words => {
                Answer::from_events(vec![says(), tells, Ok(StreamEvent::Stop(StopReason::EndTurn))])
            }
            Ending::Cut => Answer::from_events(vec![
                says(),
                tells,
                Ok(StreamEvent::Stop(StopReason::MaxTokens)),
            ]),
            Ending::Tool => {
                let arguments = format!("{{\"n\":{number}}}");
                let mut answer = Answer::calls(&[(&format!("c{number}"), "look", &arguments)]);
                answer.events.insert(0, tells);
                answer
            }
            Ending::Broken => Answer::from_events(vec![says(), tells, fails(ErrorKind::Protocol)]),
            Ending::Refused => Answer::from_events(vec![tells, fails(ErrorKind::Overloaded)]),
            Ending::Silence => Answer::from_events(vec![says()]).then_hang(),
        };
        answer.with_event_delay(Duration::from_millis(self.pause_ms))
    }
}

fn any_usage() -> impl Strategy<Value = Usage> {
    (0_u64..20_000, 0_u64..40_000, 0_u64..20_000, 0_u64..5_000).prop_map(
        |(input, output, cache_read, cache_write)| Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning: 0,
        },
    )
}

fn any_call() -> impl Strategy<Value = Call> {
    let ending = prop_oneof![
        3 => Just(Ending::Words),
        6 => Just(Ending::Tool),
        2 => Just(Ending::Cut),
        1 => Just(Ending::Broken),
        1 => Just(Ending::Refused),
        1 => Just(Ending::Silence),
    ];
    (any_usage(), 0_u64..2_000, ending).prop_map(|(usage, pause_ms, ending)| Call {
        usage,
        pause_ms,
        ending,
    })
}

fn any_sessions() -> impl Strategy<Value = Vec<Vec<Call>>> {
    prop::collection::vec(prop::collection::vec(any_call(), 1..12), 1..=MOST_SESSIONS)
}

fn caps(micro_usd: u64) -> Caps {
    Caps { day: Some(micro_usd), ..Caps::default() }
}

/// A session with one arm of its own over a ledger that it shares.
fn spawn(scope: Scope, provider: &Arc<FakeProvider>, ledger: &FakeLedger, caps: Caps) -> Handle {
    spawn_arms(scope, [("m", Arc::clone(provider), PRICE, 0.5)], ledger, caps)
}

/// Arms by model, with their prices and how often they are right.
fn spawn_arms<const N: usize>(
    scope: Scope,
    arms: [(&str, Arc<FakeProvider>, Price, f64); N],
    ledger: &FakeLedger,
    caps: Caps,
) -> Handle {
    Session::spawn(session_options(scope, arms, ledger, caps))
}

fn session_options<const N: usize>(
    scope: Scope,
    arms: [(&str, Arc<FakeProvider>, Price, f64); N],
    ledger: &FakeLedger,
    caps: Caps,
) -> Options {
    let firewall = firewall();
    let begun = Instant::now();
    let since = move || i64::try_from(begun.elapsed().as_millis()).unwrap();
    let routes = Routes::new(
        Router::new(Tuning::default()),
        RouterSettings {
            strategy: gnoma_router::Strategy::Single,
            verify: Verify::Off,
            limits: pool::PoolLimits::new(caps),
            ..RouterSettings::default()
        },
        RoutingPorts {
            ledger: Some(Arc::new(ledger.clone())),
            now_ms: Box::new(move || NOON_MS + since()),
            ..RoutingPorts::default()
        },
    );
    routes.set_arms(arms.map(|(model, provider, price, quality)| {
        let overall = Some(Prior { quality, cost: 0.1, tasks: 300.0 });
        let published = Arc::new(Published { overall, ..Published::default() });
        let (host, account) = (model.into(), "FAKE_KEY".into());
        let (arm, connection) = connect_arm(Connection::new(provider, false), model);
        (Arm { price: Some(price), host, account, published, ..arm }, connection)
    }));
    let look = FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text("seen"));
    Options {
        id: scope.session().to_owned(),
        place: GatePlace::from_folder(Path::new("/")),
        tools: vec![Arc::new(look)],
        routes: Arc::new(routes),
        system: Box::new(|_| "be good".into()),
        mode: PermissionMode::Bypass,
        permissions: Permissions::default(),
        firewall,
        interactive: false,
        limits: Limits::default(),
        history: Vec::new(),
        measured: None,
        shape: None,
        thinking: None,
        keeping: PersistenceOptions::default(),
        scope: Some(scope),
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

/// What a session did.
#[derive(Default)]
struct Done {
    /// Model calls that were made.
    calls: usize,
    /// Tokens that its provider told, a call each.
    reported: Vec<Usage>,
    /// Micro-dollars that the session says it has cost.
    said_micro_usd: u64,
    /// How many of them are gnoma's own count, of calls whose provider told nothing.
    estimated_micro_usd: u64,
    /// What was told of calls that were not made.
    refusals: Vec<String>,
}

impl Done {
    fn micro_usd(&self) -> u64 {
        self.reported.iter().map(|usage| PRICE.cost_micro_usd(usage)).sum()
    }

    /// The dearest of its calls: no more than that may be beyond a cap.
    fn dearest(&self) -> u64 {
        let told = self.reported.iter().map(|usage| PRICE.cost_micro_usd(usage)).max().unwrap_or(0);
        told.max(self.estimated_micro_usd)
    }
}

/// Says something until the script is over or there is no more room, then closes the session.
async fn live(scope: Scope, calls: Vec<Call>, ledger: FakeLedger, caps: Caps) -> Done {
    let answers = calls.iter().enumerate().map(|(number, call)| call.answer(number));
    let provider = Arc::new(FakeProvider::new(answers));
    let mut handle = spawn(scope, &provider, &ledger, caps);
    let mut done = Done::default();
    while provider.requests().len() < calls.len() && done.refusals.is_empty() {
        assert!(handle.send_command(Command::Send { content: vec![Content::from_text("go on")] }));
        match turn(&mut handle, &mut done).await {
            Outcome::Failed { error, .. } if error.provider == OWN => {
                done.refusals.push(error.message);
            }
            Outcome::Complete { .. } => (),
            _ => sleep(REST).await,
        }
    }
    handle.send_command(Command::Close);
    while let Some(event) = timeout(MAX_WAIT, handle.next()).await.expect("the session hangs") {
        note(&event, &mut done);
    }
    done.calls = provider.requests().len();
    done.reported = calls.iter().take(done.calls).map(|call| call.reported()).collect();
    done
}

/// One turn to its end, and how that was.
async fn turn(handle: &mut Handle, done: &mut Done) -> Outcome {
    let mut ended = None;
    loop {
        let Ok(event) = timeout(PATIENCE, handle.next()).await else {
            assert!(handle.send_command(Command::Cancel));
            continue;
        };
        let event = event.expect("the session closed");
        note(&event, done);
        match event {
            Event::TurnEnded { outcome, .. } => ended = Some(outcome),
            Event::State(SessionState::Idle) => return ended.expect("a turn's end"),
            _ => (),
        }
    }
}

fn note(event: &Event, done: &mut Done) {
    if let Event::Cost { session_micro_usd, call_micro_usd, estimated, .. } = event {
        done.said_micro_usd = *session_micro_usd;
        if *estimated {
            done.estimated_micro_usd += call_micro_usd.unwrap_or(0);
        }
    }
}

fn draws(cap: u64) -> Vec<PoolDraw> {
    let limit = Limit { unit: Unit::MicroUsd, window: Window::Day, most: cap };
    vec![PoolDraw { pool: "all".into(), limits: vec![limit] }]
}

/// All sessions at once, to their end.
async fn run(sessions: Vec<Vec<Call>>, ledger: &FakeLedger, cap: u64) -> Vec<Done> {
    let mut living = JoinSet::new();
    for (number, calls) in sessions.into_iter().enumerate() {
        let scope = Scope::new(format!("s{number}"));
        living.spawn(live(scope, calls, ledger.clone(), caps(cap)));
    }
    living.join_all().await
}

/// On a clock that does not wait.
fn on_a_clock<T>(work: impl Future<Output = T>) -> T {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(work)
}

async fn check(sessions: Vec<Vec<Call>>, cap: u64) -> Result<(), TestCaseError> {
    let ledger = FakeLedger::default();
    let done = run(sessions, &ledger, cap).await;

    let told: u64 = done.iter().map(Done::micro_usd).sum();
    let estimated: u64 = done.iter().map(|done| done.estimated_micro_usd).sum();
    let spent = told + estimated;
    let in_flight: u64 = done.iter().map(Done::dearest).sum();
    prop_assert!(spent <= cap + in_flight, "{spent} of {cap}, {in_flight} in flight at most");

    let reported: Vec<Usage> = done.iter().flat_map(|done| done.reported.clone()).collect();
    let totals = ledger.daily_totals(0).await.unwrap();
    // A silence may last past midnight on a clock that does not wait.
    let mut counted = Amount::default();
    for Total { amount, .. } in &totals {
        counted.requests += amount.requests;
        counted.input += amount.input;
        counted.output += amount.output;
        counted.micro_usd += amount.micro_usd;
    }
    prop_assert_eq!(counted.micro_usd - estimated, told, "what was told is exact");
    prop_assert_eq!(counted.requests, done.iter().map(|done| done.calls as u64).sum::<u64>());
    prop_assert!(counted.input >= reported.iter().map(Usage::prompt_tokens).sum::<u64>());
    prop_assert!(counted.output >= reported.iter().map(|usage| usage.output).sum::<u64>());
    for done in &done {
        let paid = done.micro_usd() + done.estimated_micro_usd;
        prop_assert_eq!(done.said_micro_usd, paid, "what the person was told");
        for why in &done.refusals {
            prop_assert!(why.contains("the day cap of $"), "{}", why);
        }
    }

    prop_assert_eq!(ledger.held_reservations(), []);
    let levels = ledger.limit_levels(draws(cap), NOON_MS).await.unwrap();
    prop_assert_eq!((levels[0].held, levels[0].used), (0, spent));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ten_sessions_stay_within_a_cap_and_are_counted_to_the_micro_dollar(
        sessions in any_sessions(), cap in 0_u64..2_000_000,
    ) {
        on_a_clock(check(sessions, cap))?;
    }
}

/// A session of a family: its script, which of those before it started it, and what it may spend.
type Member = (Vec<Call>, prop::sample::Index, Option<u64>);

/// Sessions that start one another, all at once: what each and all below it spend.
async fn check_family(members: Vec<Member>, session_cap: u64) -> Result<(), TestCaseError> {
    let ledger = FakeLedger::default();
    let caps = Caps { session: Some(session_cap), ..Caps::default() };
    let mut scopes: Vec<Arc<Scope>> = Vec::new();
    let mut living = JoinSet::new();
    for (number, (calls, parent, limit)) in members.into_iter().enumerate() {
        let id = format!("s{number}");
        let parent = (number > 0).then(|| &scopes[parent.index(number)]);
        let scope = parent.map_or_else(
            || Scope::new(id.clone()),
            |parent| parent.for_child(id.clone(), limit).unwrap(),
        );
        scopes.push(Arc::new(scope.clone()));
        let done = live(scope, calls, ledger.clone(), caps);
        living.spawn(async move { (number, done.await) });
    }
    let mut done = living.join_all().await;
    done.sort_by_key(|(number, _)| *number);

    for scope in &scopes {
        let is_below = |other: &Scope| {
            other.self_and_ancestors().any(|above| above.session() == scope.session())
        };
        let family = || done.iter().filter(|(number, _)| is_below(&scopes[*number]));
        let spent: u64 =
            family().map(|(_, done)| done.micro_usd() + done.estimated_micro_usd).sum();
        let in_flight: u64 = family().map(|(_, done)| done.dearest()).sum();
        let most = scope.limit().unwrap_or(session_cap).min(session_cap);
        prop_assert!(spent <= most + in_flight, "{}: {spent} of {most}", scope.session());
        let pool = pool::Pool::Session(scope.session().to_owned()).to_string();
        let limit = Limit { unit: Unit::MicroUsd, window: Window::Ever, most };
        let draws = vec![PoolDraw { pool, limits: vec![limit] }];
        let levels = ledger.limit_levels(draws, NOON_MS).await.unwrap();
        prop_assert_eq!((levels[0].held, levels[0].used), (0, spent), "counted with all below it");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn child_session_never_exceeds_the_spending_caps_of_its_parents(
        members in prop::collection::vec(
            (
                prop::collection::vec(any_call(), 1..6),
                any::<prop::sample::Index>(),
                prop::option::of(0_u64..500_000),
            ),
            2..=pool::MAX_DEPTH,
        ),
        cap in 0_u64..2_000_000,
    ) {
        on_a_clock(check_family(members, cap))?;
    }
}

/// No tool runs and nobody waits between two calls when an answer is continued.
#[test]
fn call_is_settled_in_the_ledger_before_the_next_reservation() {
    let usage = Usage { output: 15_000, ..Usage::default() };
    let cut = Call { usage, pause_ms: 0, ending: Ending::Cut };
    let cap = PRICE.cost_micro_usd(&usage) / 2;
    on_a_clock(check(vec![vec![cut; 3]], cap)).unwrap();
}

/// Two arms with prices of their own; the first breaks down after its tokens were told.
#[test]
fn abandoned_answer_is_charged_at_the_price_of_its_model() {
    on_a_clock(async {
        let ledger = FakeLedger::default();
        let usage = Usage { input: 1_000, output: 1_000, ..Usage::default() };
        let broken = Call { usage, pause_ms: 0, ending: Ending::Broken };
        let whole = Call { ending: Ending::Words, ..broken };
        let dear = Price { input: 5_000_000, output: 25_000_000, ..Price::default() };
        let one = Arc::new(FakeProvider::new([broken.answer(0), whole.answer(1)]));
        let other = Arc::new(FakeProvider::new([whole.answer(2), whole.answer(3)]));
        let arms = [("dear", one, dear, 0.9), ("cheap", other, PRICE, 0.5)];
        let mut handle = spawn_arms(Scope::new("s"), arms, &ledger, caps(10_000_000));
        let mut told = Vec::new();
        for _ in 0..2 {
            assert!(handle.send_command(Command::Send {
                content: vec![Content::from_text("fix the parser")]
            }));
            loop {
                match timeout(MAX_WAIT, handle.next()).await.unwrap().unwrap() {
                    Event::Cost { arm, call_micro_usd, .. } => {
                        told.push((arm.model, call_micro_usd));
                    }
                    Event::State(SessionState::Idle) => break,
                    _ => (),
                }
            }
        }
        let (dear, cheap) = (dear.cost_micro_usd(&usage), PRICE.cost_micro_usd(&usage));
        let expected = [("dear", dear), ("cheap", cheap), ("cheap", cheap)];
        assert_eq!(told, expected.map(|(arm, paid)| (arm.to_owned(), Some(paid))));
        handle.send_command(Command::Close);
        while handle.next().await.is_some() {}
        let totals = ledger.daily_totals(0).await.unwrap();
        let totals: Vec<_> = totals
            .iter()
            .map(|total| (&*total.arm.model, total.amount.requests, total.amount.micro_usd))
            .collect();
        assert_eq!(totals, [("cheap", 2, 2 * cheap), ("dear", 1, dear)]);
        assert_eq!(ledger.held_reservations(), []);
    });
}

#[test]
fn session_dropped_mid_call_releases_its_ledger_reservation() {
    on_a_clock(async {
        let ledger = FakeLedger::default();
        let provider = Arc::new(FakeProvider::new([Answer::endless_silence()]));
        let mut handle = spawn(Scope::new("s"), &provider, &ledger, caps(1_000_000));
        assert!(handle.send_command(Command::Send { content: vec![Content::from_text("go on")] }));
        while !matches!(handle.next().await, Some(Event::RoundStarted { .. })) {}
        assert_eq!(ledger.held_reservations().len(), 1);
        drop(handle);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(ledger.held_reservations(), []);
    });
}

#[test]
fn ledger_calls_record_api_key_agent_and_mcp_server() {
    on_a_clock(async {
        let ledger = FakeLedger::default();
        let tells = || Ok(StreamEvent::Usage(Usage { input: 9, output: 9, ..Usage::default() }));
        let mut calls = Answer::calls(&[("c1", "mcp__github__look", "{}")]);
        calls.events.insert(0, tells());
        let says = Ok(StreamEvent::TextDelta { slot: 0, text: "done".into() });
        let stop = Ok(StreamEvent::Stop(StopReason::EndTurn));
        let provider = FakeProvider::new([calls, Answer::from_events(vec![says, tells(), stop])]);
        let arms = [("m", Arc::new(provider), PRICE, 0.5)];
        let scope = Scope::new("s").with_agent("reviewer");
        let look =
            FakeTool::new("mcp__github__look", Access::Read, |_| ToolOutcome::success_text("seen"));
        let options = session_options(scope, arms, &ledger, caps(10_000_000));
        let mut handle = Session::spawn(Options { tools: vec![Arc::new(look)], ..options });
        assert!(handle.send_command(Command::Send { content: vec![Content::from_text("go on")] }));
        while !matches!(handle.next().await.unwrap(), Event::State(SessionState::Idle)) {}
        handle.send_command(Command::Close);
        while handle.next().await.is_some() {}
        let settled = ledger.settled_calls();
        let [first, second] = &settled[..] else { panic!("{settled:?}") };
        for call in [first, second] {
            assert_eq!((&*call.origin.account, &*call.origin.agent), ("FAKE_KEY", "reviewer"));
        }
        assert_eq!((&*first.origin.mcp, &*second.origin.mcp), ("", "github"));
    });
}
