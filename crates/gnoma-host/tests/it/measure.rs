//! What many sessions in one process cost. Prints figures and asserts nothing that depends on the
//! machine:
//!
//!     cargo test --release -p gnoma-host --test it -- --ignored --nocapture measure

#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use gnoma_core::{
    Event, EventStream, ModelInfo, ModelRequest, Provider, ProviderError, StopReason, StreamEvent,
    protocol::{Request, ServerMessage, SessionSpec},
    session::SessionState,
    tool::BoxFuture,
};
use gnoma_host::live::Host;
use gnoma_testkit::FakeProvider;
use tokio::task::JoinSet;

use super::support::{Window, World, kept, say, writer};

const IDLE_SESSIONS: u64 = 50;
const STREAMING: usize = 10;
const SUBSCRIBERS: usize = 3;
const DELTAS: usize = 1_000;
const BETWEEN_DELTAS: Duration = Duration::from_millis(10);
const IDLE: Duration = Duration::from_secs(5);

/// Tells when it said what.
struct Ticking(Instant);

impl Provider for Ticking {
    fn name(&self) -> &'static str {
        "ticking"
    }

    fn stream(&self, _: ModelRequest) -> EventStream {
        let begun = self.0;
        let deltas = stream::iter(0..DELTAS).then(move |_| async move {
            tokio::time::sleep(BETWEEN_DELTAS).await;
            let text = format!("{} ", begun.elapsed().as_micros());
            Ok(StreamEvent::TextDelta { slot: 0, text })
        });
        Box::pin(deltas.chain(stream::iter([Ok(StreamEvent::Stop(StopReason::EndTurn))])))
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

fn pss_bytes() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    pss.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Hundredths of a second of processor time that this process has taken.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Microseconds from a delta's making, and from its place in the log, to a subscriber.
async fn listen(
    host: Arc<Host>,
    session: gnoma_core::store::SessionId,
    begun: Instant,
) -> [Vec<u64>; 2] {
    let mut client = host.connect("listener");
    client.send_request(Some(&session), Request::Attach { from: None }).unwrap();
    let [mut whole, mut own] = [Vec::new(), Vec::new()];
    while let Some(message) = client.next().await {
        let now = u64::try_from(begun.elapsed().as_micros()).unwrap();
        let ServerMessage::Event(envelope) = message else { continue };
        match &envelope.event {
            Event::Text { text } => {
                own.push(now.saturating_sub(u64::try_from(envelope.at_ms).unwrap()));
                let said = text.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
                whole.extend(said.map(|said| now.saturating_sub(said)));
            }
            Event::State(SessionState::Idle) => break,
            _ => (),
        }
    }
    [whole, own]
}

fn print_latency(name: &str, mut all: Vec<u64>) {
    all.sort_unstable();
    let at = |share: usize| all[(all.len() - 1) * share / 1_000];
    println!(
        "{name}: {} times, p50 {} µs, p99 {} µs, most {} µs",
        all.len(),
        at(500),
        at(990),
        at(1_000)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: it prints figures"]
async fn many_sessions() {
    let begun = Instant::now();
    let quiet = World::new(Box::new(|_| Arc::new(FakeProvider::default()) as _), vec![writer()]);
    let host = quiet.host();
    let mut window = Window::new(&host, "w");
    let long = SessionSpec { profile: Some("long".to_owned()), ..kept() };
    window.open(long.clone()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = pss_bytes();
    for _ in 0..IDLE_SESSIONS {
        window.open(long.clone()).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let each = pss_bytes().saturating_sub(before) / IDLE_SESSIONS;
    println!("idle session with 100 messages of 2 KB: {} KB", each >> 10);

    let world = World::timed(Box::new(move |_| Arc::new(Ticking(begun)) as _), begun);
    let busy = Arc::new(world.host());
    let mut window = Window::new(&busy, "w");
    let mut listeners = JoinSet::new();
    let mut sessions = Vec::new();
    for _ in 0..STREAMING {
        let session = window.open(kept()).await;
        for _ in 0..SUBSCRIBERS {
            listeners.spawn(listen(Arc::clone(&busy), session.clone(), begun));
        }
        sessions.push(session);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ticks = cpu_ticks();
    for session in &sessions {
        window.ask(Some(session), say("go")).await.unwrap();
    }
    let [mut whole, mut own] = [Vec::new(), Vec::new()];
    while let Some(heard) = listeners.join_next().await {
        let [one, other] = heard.unwrap();
        whole.extend(one);
        own.extend(other);
    }
    println!("processor time while streaming: {} ms", (cpu_ticks() - ticks) * 10);
    print_latency("a delta, from the provider to a subscriber", whole);
    print_latency("an event, from the log to a subscriber", own);

    for session in &sessions {
        window.attach(session).await;
    }
    let ticks = cpu_ticks();
    tokio::time::sleep(IDLE).await;
    println!("processor time of an idle host in {IDLE:?}: {} ms", (cpu_ticks() - ticks) * 10);
}
