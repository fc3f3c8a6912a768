//! Ten sessions in three processes over one ledger.

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use gnoma_core::{
    Command, Content, Event, Tool, ToolOutcome,
    session::{Outcome, PermissionMode, SessionState},
    tool::Access,
};
use gnoma_engine::{
    GatePlace, Handle, Limits, PersistenceOptions, Routes, Session, connect_arm,
    routing::{OWN, RoutingPorts},
    session,
};
use gnoma_guard::{
    firewall::{self, Connection, Firewall, Policy},
    permission::Permissions,
    secrets::Scanner,
};
use gnoma_llm::{Profile, Protocol, connect_provider};
use gnoma_net::{Http, HttpOptions};
use gnoma_router::{
    Arm, Router, RouterSettings, Strategy, Tuning, Verify,
    pool::{self, Caps},
};
use gnoma_store::{OpenedLedger, SqliteLedger};
use gnoma_testkit::FakeTool;
use tokio::{process::Child, task::JoinSet, time::timeout};

use super::{CAP, PRICE, check, vendor};
use crate::support::finish;

/// How many sessions each process has.
const PROCESSES: [usize; 3] = [4, 3, 3];

/// `ledger|address|sessions` for a child.
const TASK: &str = "GNOMA_TEST_SPENDING";

/// Noon of a day: no call falls into another.
const NOON_MS: i64 = 1_800_014_400_000;

/// No turn takes longer.
const MAX_TURN: Duration = Duration::from_secs(60);

/// Turns that a session would take, if it were let.
const TURNS: usize = 20;

/// What a child says of a turn that was not let.
const REFUSED: &str = "refused: ";

#[expect(clippy::disallowed_methods, reason = "how the test speaks to its children")]
fn given() -> Option<String> {
    std::env::var(TASK).ok()
}

fn firewall() -> Arc<Firewall> {
    Arc::new(Firewall::new(firewall::FirewallOptions {
        scanner: Scanner::new(Default::default()).unwrap(),
        policy: Policy::default(),
        allowed: Vec::new(),
        first_placeholder: 1,
    }))
}

/// Routes over the one arm, as a program makes them.
fn routes(url: &str, ledger: &Arc<SqliteLedger>) -> Routes {
    let routes = Routes::new(
        Router::new(Tuning::default()),
        RouterSettings {
            strategy: Strategy::Single,
            verify: Verify::Off,
            limits: pool::PoolLimits::new(Caps { day: Some(CAP), ..Caps::default() }),
            ..RouterSettings::default()
        },
        RoutingPorts {
            ledger: Some(Arc::clone(ledger) as _),
            now_ms: Box::new(|| NOON_MS),
            ..RoutingPorts::default()
        },
    );
    let profile = Profile::new("test", Protocol::OpenAi, format!("{url}/v1"));
    let provider = connect_provider(profile, Http::new(HttpOptions::default()));
    let connection = Connection::new(provider, false);
    let (arm, connection) = connect_arm(connection, "m1");
    routes.set_arms([(Arm { price: Some(PRICE), ..arm }, connection)]);
    routes
}

fn start(id: String, routes: Arc<Routes>, firewall: Arc<Firewall>) -> Handle {
    let read = FakeTool::new("fs.read", Access::Read, |call| {
        ToolOutcome::success_text(format!("what {:?} asks for", call.arguments))
    });
    Session::spawn(session::Options {
        id,
        place: GatePlace::from_folder(Path::new("/")),
        tools: vec![Arc::new(read) as Arc<dyn Tool>],
        routes,
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
        scope: None,
        step: None,
        above: None,
        gauge: Arc::default(),
        spawner: None,
        spans: None,
        lifecycle: None,
        held_to: None,
        forbidden: Arc::default(),
        ready: None,
    })
}

/// How the turn ended that `words` begin.
async fn turn(handle: &mut Handle, words: &str) -> Outcome {
    assert!(handle.send_command(Command::Send { content: vec![Content::from_text(words)] }));
    let mut ended = None;
    loop {
        let event = timeout(MAX_TURN, handle.next()).await.expect("the session hangs");
        match event.expect("the session closed") {
            Event::TurnEnded { outcome, .. } => ended = Some(outcome),
            Event::State(SessionState::Idle) => return ended.expect("a turn's end"),
            _ => (),
        }
    }
}

/// Turns until there is no room for one; what was told then.
async fn live(mut handle: Handle) -> Option<String> {
    let mut refusal = None;
    for number in 0..TURNS {
        match turn(&mut handle, &format!("read it line by line, time {number}")).await {
            Outcome::Complete { .. } => (),
            Outcome::Failed { error, .. } if error.provider == OWN => {
                refusal = Some(error.message);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    handle.send_command(Command::Close);
    while handle.next().await.is_some() {}
    refusal
}

/// A child: several sessions in one process, with what a process shares.
#[tokio::test]
#[ignore = "another test runs it in a process of its own"]
async fn child() {
    let Some(task) = given() else { return };
    let words: Vec<&str> = task.split('|').collect();
    let OpenedLedger { ledger, set_aside } = SqliteLedger::open(Path::new(words[0])).unwrap();
    assert_eq!(set_aside, None);
    let (ledger, firewall) = (Arc::new(ledger), firewall());
    let routes = Arc::new(routes(words[1], &ledger));
    let mut living = JoinSet::new();
    for number in 0..words[2].parse().unwrap() {
        let id = format!("{}-{number}", std::process::id());
        living.spawn(live(start(id, Arc::clone(&routes), Arc::clone(&firewall))));
    }
    for refusal in living.join_all().await {
        println!("\n{REFUSED}{}", refusal.unwrap_or_default());
    }
}

fn process(ledger: &Path, url: &str, sessions: usize) -> Child {
    tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "spending::sessions::child", "--nocapture"])
        .env(TASK, format!("{}|{url}|{sessions}", ledger.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn ten_sessions_in_three_processes_pass_a_cap_by_no_more_than_their_calls_in_flight() {
    let (server, bill) = vendor();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let started = PROCESSES.map(|sessions| process(&path, &server.url(), sessions));
    let mut refusals = Vec::new();
    for run in futures_util::future::join_all(started.into_iter().map(finish)).await {
        assert_eq!(run.code, Some(0), "{run:?}");
        let refused = run.out.lines().filter_map(|line| line.strip_prefix(REFUSED));
        refusals.extend(refused.map(str::to_owned));
    }
    let sessions = PROCESSES.iter().sum::<usize>();
    assert_eq!(refusals.len(), sessions);
    for refusal in &refusals {
        assert!(refusal.contains("the day cap of $0.40"), "{refusals:?}");
    }
    let OpenedLedger { ledger, .. } = SqliteLedger::open(&path).unwrap();
    check(&ledger, &bill, sessions as u64).await;
}
