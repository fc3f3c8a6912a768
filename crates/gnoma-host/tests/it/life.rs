//! How sessions begin, change and end.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use gnoma_core::{
    Event, EventStream, ModelInfo, ModelRequest, Provider, ProviderError,
    protocol::{Detach, ProcessEvent, Reply, Request, RequestErrorKind, SessionSpec, Switch},
    session::{Outcome, PermissionMode, SessionState},
    tool::BoxFuture,
};
use gnoma_testkit::Answer;

use super::support::{Window, World, attached, kept, kind, say, truth};

/// Long after anything in a host has run out.
const LONG: Duration = Duration::from_secs(300);

fn switch(model: &str) -> Request {
    Request::Switch(Switch::Model(model.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn session_without_subscribers_closes_unless_kept_running() {
    let (world, _) = World::of(vec![]);
    let host = world.host();
    let mut window = Window::new(&host, "w");
    window.open(SessionSpec::default()).await;
    let stays = window.open(kept()).await;
    let told = window.open(SessionSpec::default()).await;
    window.ask(Some(&told), Request::KeepRunning { keep: true }).await.unwrap();
    assert_eq!(host.sessions().len(), 3);
    tokio::time::sleep(LONG).await;
    let living = host.sessions();
    assert_eq!(living.len(), 2, "{living:?}");
    assert!(living.iter().any(|session| session.status.session == stays));
    window.ask(Some(&told), Request::KeepRunning { keep: false }).await.unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(host.sessions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn detaching_the_last_subscriber_closes_or_keeps_the_session() {
    for detach in [Detach::Close, Detach::Keep] {
        let (world, _) = World::of(vec![Answer::endless_silence()]);
        let host = world.host();
        let (mut one, mut other) = (Window::new(&host, "one"), Window::new(&host, "other"));
        let session = one.open(SessionSpec { detach, ..SessionSpec::default() }).await;
        one.attach(&session).await;
        other.attach(&session).await;
        one.ask(Some(&session), say("go")).await.unwrap();
        one.until_state(&session, SessionState::Active).await;
        one.ask(Some(&session), Request::Detach).await.unwrap();
        tokio::time::sleep(LONG).await;
        assert_eq!(host.sessions()[0].subscribers, 1);
        other.ask(Some(&session), Request::Detach).await.unwrap();
        tokio::time::sleep(LONG).await;
        assert_eq!(host.sessions().len(), usize::from(detach == Detach::Keep));
        let tidied = world.tidied.load(Ordering::SeqCst);
        assert_eq!(tidied, u64::from(detach == Detach::Close));
    }
}

#[tokio::test(start_paused = true)]
async fn broken_connection_does_not_count_as_detach() {
    let (world, _) = World::of(vec![Answer::endless_silence()]);
    let host = world.host();
    let mut window = Window::new(&host, "w");
    let (works, unused) =
        (window.open(SessionSpec::default()).await, window.open(SessionSpec::default()).await);
    window.attach(&works).await;
    window.attach(&unused).await;
    window.ask(Some(&works), say("go")).await.unwrap();
    window.until_state(&works, SessionState::Active).await;
    drop(window);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let living = host.sessions();
    assert_eq!(living.len(), 2, "it may come back");
    assert!(living.iter().any(|session| session.status.state == SessionState::Active));
    tokio::time::sleep(LONG).await;
    let living = host.sessions();
    assert_eq!(living.len(), 1, "nothing was said in the other: {living:?}");
    assert_eq!(living[0].status.session, works, "what was said can be come back to");
    let mut last = Window::new(&host, "w");
    last.attach(&works).await;
    last.ask(Some(&works), Request::Detach).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(host.sessions().is_empty(), "it was left");
}

#[tokio::test(start_paused = true)]
async fn background_jobs_of_a_session_learn_whether_it_is_in_use() {
    let (world, _) = World::of(vec![Answer::text("one"), Answer::text("two")]);
    let host = world.host();
    let used = || world.used.lock().unwrap().clone();
    let mut window = Window::new(&host, "w");
    let session = window.open(kept()).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(used(), [false], "open, and nobody has come");
    window.ask(Some(&session), say("work alone")).await.unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(used(), [false, true, false], "a turn without anybody");
    window.attach(&session).await;
    window.ask(Some(&session), say("work")).await.unwrap();
    window.settle(LONG).await;
    assert_eq!(used().len(), 4, "somebody looks on, also when the turn is over");
    window.ask(Some(&session), Request::Detach).await.unwrap();
    tokio::time::sleep(LONG).await;
    assert_eq!(used(), [false, true, false, true, false]);
}

/// A provider whose answer panics.
struct PanickingProvider;

impl Provider for PanickingProvider {
    fn name(&self) -> &str {
        "test"
    }

    fn stream(&self, _request: ModelRequest) -> EventStream {
        Box::pin(futures_util::stream::poll_fn(|_| panic!("a fault of gnoma")))
    }

    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

#[tokio::test(start_paused = true)]
async fn provider_panic_ends_the_turn_with_an_error_message() {
    let world = World::new(Box::new(|_| Arc::new(PanickingProvider)), Vec::new());
    let (_host, mut window, session) = attached(&world).await;
    window.recorded = Some(Vec::new());
    window.ask(Some(&session), say("go")).await.unwrap();
    window.until_state(&session, SessionState::Closed).await;
    let events = window.recorded.take().unwrap();
    let error = events.iter().find_map(|event| match event {
        Event::TurnEnded { outcome: Outcome::Failed { error, .. }, .. } => Some(error.to_string()),
        _ => None,
    });
    let error = error.expect("the turn has no end");
    assert!(error.contains("gnoma crashed in this turn"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn closing_a_session_cancels_its_turn_and_answers_late_requests() {
    let (world, _) = World::of(vec![Answer::endless_silence()]);
    let (host, mut window, session) = attached(&world).await;
    window.ask(Some(&session), say("go")).await.unwrap();
    window.until_state(&session, SessionState::Active).await;
    let export = Request::Export { path: "late".into() };
    let asked = [export, Request::Close, say("too late"), Request::Points]
        .map(|request| window.send(Some(&session), request));
    window.until(|own| asked.iter().all(|id| own.replies.iter().any(|(it, _)| it == id))).await;
    window.until_state(&session, SessionState::Closed).await;
    tokio::time::sleep(LONG).await;
    assert!(host.sessions().is_empty());
    assert_eq!(
        kind(window.ask(Some(&session), Request::Status).await),
        RequestErrorKind::NoSession
    );
    // What is attached to a session that has ended can be let go.
    window.ask(Some(&session), Request::Detach).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn closed_sessions_do_not_count_toward_the_attach_limit() {
    let (world, _) = World::of(vec![]);
    let host = world.host();
    let mut window = Window::new(&host, "w");
    for _ in 0..80 {
        let session = window.open(kept()).await;
        window.attach(&session).await;
        window.ask(Some(&session), Request::Close).await.unwrap();
        window.until_state(&session, SessionState::Closed).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn session_change_sends_every_client_a_snapshot_of_the_next_epoch() {
    let (world, _) = World::of(vec![Answer::text("one"), Answer::text("two")]);
    let host = world.host();
    let (mut one, mut other) = (Window::new(&host, "one"), Window::new(&host, "other"));
    let session = one.open(kept()).await;
    one.attach(&session).await;
    other.attach(&session).await;
    one.ask(Some(&session), say("first")).await.unwrap();
    one.settle(LONG).await;
    let before = one.views[&session].epoch;
    // A message that comes while the session is changed is kept for it.
    let changes = one.send(Some(&session), switch("m2"));
    one.ask(Some(&session), say("second")).await.unwrap();
    one.settle(LONG).await;
    other.settle(LONG).await;
    let outcome = one.replies.iter().find(|(id, _)| *id == changes);
    assert_eq!(outcome.unwrap().1, Ok(Reply::Done));
    for window in [&one, &other] {
        let view = &window.views[&session];
        assert!(view.epoch > before && window.snapshots >= 2);
        assert_eq!((view, view.messages), (&truth(&host, &session).await, 4));
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_rewind_leaves_the_session_running() {
    let (world, _) = World::of(vec![Answer::text("one"), Answer::text("two")]);
    let host = world.host();
    let mut window = Window::new(&host, "w");
    let session = window.open(kept()).await;
    window.attach(&session).await;
    window.ask(Some(&session), say("first")).await.unwrap();
    window.settle(LONG).await;
    let before = window.views[&session].clone();
    let rewind = Request::Rewind { turns: 99, files: true, conversation: true };
    // What is said meanwhile is not lost.
    let asked = window.send(Some(&session), rewind);
    window.ask(Some(&session), say("second")).await.unwrap();
    window.settle(LONG).await;
    let outcome = window.replies.iter().find(|(id, _)| *id == asked).unwrap().1.clone();
    assert_eq!(kind(outcome), RequestErrorKind::Invalid);
    let view = &window.views[&session];
    assert_eq!((view.epoch, view.messages), (before.epoch, 4));
    assert!(world.effects.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn failed_model_switch_restores_the_session() {
    // The change itself fails, its settings cannot be read, or it cannot be opened.
    for (model, expected) in [
        ("none", RequestErrorKind::NotFound),
        ("broken", RequestErrorKind::Invalid),
        ("locked", RequestErrorKind::Held),
    ] {
        let (world, _) = World::of(vec![Answer::text("one"), Answer::text("two")]);
        let (host, mut window, session) = attached(&world).await;
        window.ask(Some(&session), say("first")).await.unwrap();
        window.settle(LONG).await;
        let outcome = window.ask(Some(&session), switch(model)).await;
        assert_eq!(kind(outcome), expected, "{model}");
        window.ask(Some(&session), say("second")).await.unwrap();
        window.settle(LONG).await;
        let view = &window.views[&session];
        assert_eq!((view.state, view.messages), (SessionState::Idle, 4), "{model}");
        assert_eq!(*view, truth(&host, &session).await);
    }
}

#[tokio::test(start_paused = true)]
async fn model_switch_during_a_turn_is_rejected_as_busy() {
    let (world, _) = World::of(vec![Answer::endless_silence()]);
    let (_host, mut window, session) = attached(&world).await;
    window.ask(Some(&session), say("go")).await.unwrap();
    window.until_state(&session, SessionState::Active).await;
    assert_eq!(kind(window.ask(Some(&session), switch("m2")).await), RequestErrorKind::Busy);
    assert_eq!(window.views[&session].state, SessionState::Active);
}

#[tokio::test(start_paused = true)]
async fn session_that_fails_to_open_is_reported_as_closed() {
    let (world, _) = World::of(vec![]);
    let host = world.host();
    let mut window = Window::new(&host, "w");
    let session = window.open(SessionSpec { profile: Some("locked".to_owned()), ..kept() }).await;
    window.attach(&session).await;
    window.until_state(&session, SessionState::Closed).await;
    assert_eq!(kind(window.ask(Some(&session), say("hello")).await), RequestErrorKind::Closed);
    drop(window);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(host.is_idle(), "a session that never opened keeps no process alive");
}

#[tokio::test(start_paused = true)]
async fn shutting_down_ends_every_session_and_refuses_new_ones() {
    let (world, _) = World::of(vec![Answer::endless_silence()]);
    let host = world.host();
    let mut window = Window::new(&host, "w");
    let (busy, _idle) = (window.open(kept()).await, window.open(kept()).await);
    window.ask(None, Request::Watch).await.unwrap();
    window.ask(Some(&busy), say("go")).await.unwrap();
    window.attach(&busy).await;
    window.until_state(&busy, SessionState::Active).await;
    // One is being opened while the others end.
    let slow = SessionSpec { profile: Some("slow".to_owned()), ..kept() };
    let late = window.send(None, Request::Open(Box::new(slow)));
    window.ask(None, Request::Shutdown).await.unwrap();
    host.shutdown_wanted().await;
    let running = host.shut_down().await;
    let names: Vec<_> = running.iter().map(|session| &session.status.session).collect();
    assert_eq!(names, [&busy]);
    assert!(host.sessions().is_empty());
    assert_eq!(world.tidied.load(Ordering::SeqCst), 2);
    window.settle(LONG).await;
    assert!(window.process.contains(&ProcessEvent::Stopping));
    let late = window.replies.iter().find(|(id, _)| *id == late).unwrap().1.clone();
    assert_eq!(kind(late), RequestErrorKind::Closed);
    let outcome = window.ask(None, Request::Open(Box::default())).await;
    assert_eq!(kind(outcome), RequestErrorKind::Closed);
    assert!(host.sessions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_a_running_model_switch_or_rewind() {
    for request in [switch("m2"), Request::Rewind { turns: 1, files: true, conversation: true }] {
        let (world, provider) = World::of(vec![Answer::text("one"), Answer::text("two")]);
        let (host, mut window, session) = attached(&world).await;
        window.ask(Some(&session), say("first")).await.unwrap();
        window.settle(LONG).await;
        let asked = [request, Request::Close, say("too late")]
            .map(|request| window.send(Some(&session), request));
        window.until_state(&session, SessionState::Closed).await;
        window.settle(LONG).await;
        let outcomes = asked.map(|id| {
            let reply = window.replies.iter().find(|(it, _)| *it == id);
            reply.expect("every request gets a reply").1.clone()
        });
        assert_eq!(outcomes[..2], [Ok(Reply::Done), Ok(Reply::Done)]);
        assert_eq!(kind(outcomes[2].clone()), RequestErrorKind::Closed);
        assert_eq!(*world.effects.lock().unwrap(), ["changed"].map(std::path::PathBuf::from));
        assert!(host.sessions().is_empty());
        assert_eq!(provider.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn permission_mode_survives_a_model_switch() {
    let (world, _) = World::of(vec![]);
    let (host, mut window, session) = attached(&world).await;
    let mode = PermissionMode::Plan;
    window.ask(Some(&session), Request::SetMode { mode }).await.unwrap();
    window.ask(Some(&session), switch("m2")).await.unwrap();
    window.settle(LONG).await;
    assert_eq!(window.views[&session].mode, mode);
    assert_eq!(truth(&host, &session).await.mode, mode);
}

#[tokio::test(start_paused = true)]
async fn session_title_is_shown_to_all_clients_once_it_is_saved() {
    let (world, _) = World::of(vec![Answer::text("one")]);
    let (host, mut window, session) = attached(&world).await;
    window.ask(Some(&session), say("first words")).await.unwrap();
    window.settle(LONG).await;
    let title = |host: &gnoma_host::live::Host| host.sessions()[0].title.clone();
    let rename = |title: &str| Request::Rename { title: title.to_owned() };
    window.ask(Some(&session), rename("refused")).await.unwrap_err();
    assert_eq!(title(&host), "first words");
    let mut watcher = Window::new(&host, "watcher");
    watcher.ask(None, Request::Watch).await.unwrap();
    watcher.settle(LONG).await;
    let told = watcher.process.len();
    let renames = window.send(Some(&session), rename("mi\u{202e}ne"));
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(title(&host), "first words", "it is not stored yet");
    window.until(|own| own.replies.iter().any(|(id, _)| *id == renames)).await;
    assert_eq!(title(&host), "mine");
    watcher.settle(LONG).await;
    assert!(
        matches!(&watcher.process[told..], [ProcessEvent::Changed { .. }]),
        "others hear of it"
    );
}

#[tokio::test(start_paused = true)]
async fn lagging_watcher_gets_the_state_of_all_sessions() {
    let (world, _) = World::of(vec![]);
    let host = world.host();
    let (mut watcher, mut window) = (Window::new(&host, "watcher"), Window::new(&host, "w"));
    watcher.ask(None, Request::Watch).await.unwrap();
    let stays = window.open(kept()).await;
    for _ in 0..300 {
        let session = window.open(kept()).await;
        window.ask(Some(&session), Request::Close).await.unwrap();
        window.settle(Duration::from_millis(10)).await;
    }
    watcher.settle(LONG).await;
    let lagged = watcher.process.iter().rposition(|event| {
        matches!(event, ProcessEvent::Lagged { sessions }
            if sessions.len() == 1 && sessions[0].status.session == stays)
    });
    assert!(lagged.is_some(), "{:?}", watcher.process);
    let last = window.open(kept()).await;
    watcher.settle(LONG).await;
    assert_eq!(watcher.process.last(), Some(&ProcessEvent::Opened { session: last }));
}
