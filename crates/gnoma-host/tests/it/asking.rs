//! What clients are told: one answer to a question, one error for what cannot be, and nobody waits for
//! who does not read.

use std::{path::PathBuf, sync::Arc, time::Duration};

use gnoma_core::{
    CallId, StopReason, StreamEvent,
    protocol::{
        ClientMessage, ProcessEvent, Reply, Request, RequestErrorKind, RequestId, SessionSpec,
        Start,
    },
    session::{PermissionAnswer, SessionState},
    store::SessionId,
};
use gnoma_testkit::{Answer, FakeProvider};

use super::support::{Window, World, attached, kept, kind, say, truth, writer};

fn answer(call: &str) -> Request {
    Request::Answer { call: CallId::new(call), answer: PermissionAnswer::Allow }
}

#[tokio::test(start_paused = true)]
async fn permission_question_is_answered_by_one_client_only() {
    let tool = writer();
    let provider = Arc::new(FakeProvider::new([
        Answer::calls(&[("c", "write", "{}")]),
        Answer::text("written"),
    ]));
    let world = World::new(Box::new(move |_| Arc::clone(&provider) as _), vec![tool.clone()]);
    let host = world.host();
    let (mut one, mut other) = (Window::new(&host, "one"), Window::new(&host, "other"));
    let session = one.open(kept()).await;
    one.attach(&session).await;
    other.attach(&session).await;
    assert_eq!(kind(other.ask(Some(&session), answer("c")).await), RequestErrorKind::NotAsked);
    one.ask(Some(&session), say("go")).await.unwrap();
    let asks = |own: &Window| own.views[&session].status().questions == 1;
    one.until(asks).await;
    other.until(asks).await;
    assert_eq!(kind(one.ask(Some(&session), answer("d")).await), RequestErrorKind::NotAsked);

    let ids = [one.send(Some(&session), answer("c")), one.send(Some(&session), answer("c"))];
    let late = other.send(Some(&session), answer("c"));
    let has = |own: &Window, id: RequestId| own.replies.iter().any(|(known, _)| *known == id);
    one.until(|own| ids.iter().all(|id| has(own, *id))).await;
    other.until(|own| has(own, late)).await;
    let outcomes = one.replies.iter().chain(&other.replies);
    let told = outcomes.filter(|(_, outcome)| *outcome == Ok(Reply::Done)).count();
    // Two attachments, one message, and one of the three answers.
    assert_eq!(told, 4, "{:?} {:?}", one.replies, other.replies);
    one.until_state(&session, SessionState::Idle).await;
    assert_eq!(tool.calls().len(), 1);
    assert_eq!(kind(one.ask(Some(&session), answer("c")).await), RequestErrorKind::NotAsked);
}

#[tokio::test(start_paused = true)]
async fn impossible_requests_get_one_error_reply() {
    let (world, _) = World::of(vec![]);
    let host = world.host();
    let mut window = Window::new(&host, "w");
    let session = window.open(kept()).await;
    let unknown = SessionId::new("unknown");
    let outcome = window.ask(None, say("to whom?")).await;
    assert_eq!(kind(outcome), RequestErrorKind::NoSession);
    for request in [Request::Status, Request::Detach, say("hello"), Request::Close] {
        let outcome = window.ask(Some(&unknown), request).await.unwrap_err();
        assert_eq!(outcome.kind, RequestErrorKind::NoSession);
        assert!(outcome.cause.contains("`unknown`") && outcome.remedy.is_some());
    }
    let outcome = window.ask(Some(&session), Request::List).await;
    assert_eq!(kind(outcome), RequestErrorKind::Invalid);
    let broken = SessionSpec { profile: Some("broken".to_owned()), ..kept() };
    let outcome = window.ask(None, Request::Open(Box::new(broken))).await;
    assert_eq!(kind(outcome), RequestErrorKind::Invalid);
    assert_eq!(host.sessions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn repeated_request_over_two_connections_has_one_effect() {
    let (world, provider) = World::of(vec![Answer::text("hello")]);
    let (host, mut window, session) = attached(&world).await;
    let message =
        ClientMessage { id: RequestId(900), session: Some(session.clone()), request: say("once") };
    assert!(window.put(message.clone()) && window.put(message.clone()));
    window.until_state(&session, SessionState::Active).await;
    window.until_state(&session, SessionState::Idle).await;
    drop(window);
    let mut window = Window::new(&host, "w");
    assert!(window.put(message));
    window.settle(Duration::from_secs(1)).await;
    assert_eq!(window.replies, [(RequestId(900), Ok(Reply::Done))]);
    assert_eq!((provider.requests().len(), truth(&host, &session).await.messages), (1, 2));

    // Also one that is still being answered when it comes again.
    let export = Request::Export { path: PathBuf::from("a") };
    let message =
        ClientMessage { id: RequestId(901), session: Some(session.clone()), request: export };
    assert!(window.put(message.clone()));
    tokio::time::sleep(Duration::from_millis(10)).await;
    drop(window);
    let mut window = Window::new(&host, "w");
    assert!(window.put(message.clone()) && window.put(message));
    window.settle(Duration::from_secs(1)).await;
    assert_eq!(window.replies.len(), 2);
    assert_eq!(world.effects.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_clients_opening_one_stored_session_share_it() {
    let (world, _) = World::of(vec![]);
    let host = world.host();
    let start = Start::Stored { id: "stored".to_owned(), fork: false };
    let spec = SessionSpec { start, profile: Some("slow".to_owned()), ..kept() };
    let mut windows = [Window::new(&host, "one"), Window::new(&host, "other")];
    for window in &mut windows {
        window.send(None, Request::Open(Box::new(spec.clone())));
    }
    for window in &mut windows {
        window.until(|own| !own.replies.is_empty()).await;
        let session = SessionId::new("stored");
        assert_eq!(window.replies[0].1, Ok(Reply::Opened { session: session.clone() }));
        window.attach(&session).await;
    }
    assert_eq!(host.sessions()[0].subscribers, 2, "both see the same session");
}

#[tokio::test(start_paused = true)]
async fn slow_client_delays_no_other_and_gets_a_snapshot() {
    const PIECES: usize = 6_000;
    let piece = |number| Ok(StreamEvent::TextDelta { slot: 0, text: format!("{number} ") });
    let mut events: Vec<_> = (0..PIECES).map(piece).collect();
    events.push(Ok(StreamEvent::Stop(StopReason::EndTurn)));
    let (world, _) =
        World::of(vec![Answer::from_events(events).with_event_delay(Duration::from_millis(10))]);
    let host = world.host();
    let (mut slow, mut quick) = (Window::new(&host, "slow"), Window::new(&host, "quick"));
    let session = quick.open(kept()).await;
    slow.attach(&session).await;
    quick.attach(&session).await;
    let begun = tokio::time::Instant::now();
    quick.turn(&session, "go").await;
    let took = begun.elapsed();
    let due = Duration::from_millis(10) * u32::try_from(PIECES).unwrap();
    assert!(took < due + Duration::from_secs(1), "{took:?}");
    assert!(took + Duration::from_secs(1) > due, "{took:?}");
    assert_eq!(quick.snapshots, 1, "whoever reads is told everything");
    assert_eq!(slow.views[&session].state, SessionState::Idle);
    slow.settle(Duration::from_secs(1)).await;
    assert_eq!(slow.snapshots, 2);
    assert_eq!(slow.views[&session], truth(&host, &session).await);
}

#[tokio::test(start_paused = true)]
async fn watching_client_gets_events_of_all_sessions() {
    let (world, _) = World::of(vec![Answer::text("hello")]);
    let host = world.host();
    let (mut watcher, mut window) = (Window::new(&host, "watcher"), Window::new(&host, "w"));
    watcher.ask(None, Request::Watch).await.unwrap();
    let session = window.open(kept()).await;
    window.ask(Some(&session), say("go")).await.unwrap();
    window.attach(&session).await;
    window.settle(Duration::from_secs(1)).await;
    window.ask(Some(&session), Request::Close).await.unwrap();
    watcher
        .until(|own| own.process.contains(&ProcessEvent::Closed { session: session.clone() }))
        .await;
    assert_eq!(watcher.process.first(), Some(&ProcessEvent::Opened { session: session.clone() }));
    let state = SessionState::Active;
    let began = ProcessEvent::Changed { session: session.clone(), state, questions: 0 };
    assert!(watcher.process.contains(&began), "{:?}", watcher.process);
    assert!(window.process.is_empty(), "only those who watch");
}
