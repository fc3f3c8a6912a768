//! Sessions that others have started: found with those, told once when they were cut off, gone with them.

use std::{
    thread,
    time::{Duration, Instant},
};

use gnoma_core::store::{
    NewSession, Record, SessionId, SessionStore as _, StoreError, StoreErrorKind,
};
use gnoma_store::{Retention, Store};

use crate::support::{append, begin, load, open, says, wait};

fn started(store: &Store, parent: &SessionId, name: &str) -> SessionId {
    let parent = Some((parent.clone(), name.to_owned()));
    wait(store.begin(NewSession { at_ms: 5, parent, ..NewSession::default() })).unwrap()
}

fn last_words(store: &Store, session: &SessionId) -> String {
    let Some(Record::Message(message)) = load(store, session).entries.pop().map(|last| last.record)
    else {
        panic!()
    };
    message.text_content()
}

#[test]
fn child_sessions_are_listed_only_under_their_parent() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let top = begin(&store, 1);
    let (one, two) = (started(&store, &top, "one"), started(&store, &top, "two"));
    let below = started(&store, &one, "below");
    let ids = |facts: Vec<gnoma_core::store::SessionFacts>| {
        facts.into_iter().map(|facts| facts.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(wait(store.list(9)).unwrap()), std::slice::from_ref(&top));
    assert_eq!(
        ids(wait(store.list(1)).unwrap()),
        std::slice::from_ref(&top),
        "and is not the newest"
    );
    assert_eq!(ids(wait(store.children(top)).unwrap()), [one.clone(), two]);
    assert_eq!(ids(wait(store.children(one.clone())).unwrap()), std::slice::from_ref(&below));
    let child = wait(store.session_facts(below)).unwrap().child.unwrap();
    assert_eq!((child.parent, child.name.as_str(), child.is_open), (one, "below", true));
    let nobody = Some((SessionId::new("20240101-000000-abcdef"), String::new()));
    let refused = wait(store.begin(NewSession { parent: nobody, ..NewSession::default() }));
    assert_eq!(refused.unwrap_err().kind, StoreErrorKind::NotFound);
}

/// What comes of it once a store that was dropped has let go of its sessions.
fn let_go<T>(mut attempt: impl FnMut() -> Result<T, StoreError>) -> T {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn interrupted_child_sessions_are_reported_once() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let top = begin(&store, 1);
    append(&store, &top, says("do it"));
    let (ended, cut, alive) =
        (started(&store, &top, "e"), started(&store, &top, "c"), started(&store, &top, "a"));
    for child in [&ended, &cut] {
        wait(store.hold_session(child.clone(), 2)).unwrap();
        append(&store, child, says("look at the tests"));
    }
    wait(store.release_session(ended.clone())).unwrap();
    let other = store.database().open_store(crate::support::options(home.path())).unwrap();
    wait(other.hold_session(alive, 2)).unwrap();
    assert_eq!(wait(store.hold_session(top.clone(), 3)).unwrap().cut_off, [], "all of them live");
    // As where the process dies: nothing is let go of in order.
    drop(store);
    let store = open(home.path());
    let report = let_go(|| wait(store.hold_session(top.clone(), 4)));
    let names: Vec<_> = report.cut_off.iter().map(|facts| facts.id.clone()).collect();
    assert_eq!(names, std::slice::from_ref(&cut));
    let told = last_words(&store, &top);
    assert!(told.starts_with("[system] gnoma ended while these elfs"), "{told}");
    let line =
        format!("`c` (resume: {cut}): look at the tests; 1 messages, it had not answered yet");
    assert!(told.contains(&line), "{told}");
    assert!(!told.contains(ended.as_str()), "{told}");
    wait(store.release_session(top.clone())).unwrap();
    let again = wait(store.hold_session(top.clone(), 5)).unwrap();
    assert!(again.cut_off.is_empty() && last_words(&store, &top) == told);
    // One that goes on is at work again, and then has ended.
    wait(store.hold_session(cut.clone(), 6)).unwrap();
    assert!(wait(store.session_facts(cut.clone())).unwrap().child.unwrap().is_open);
    wait(store.release_session(cut.clone())).unwrap();
    assert!(!wait(store.session_facts(cut)).unwrap().child.unwrap().is_open);
}

#[test]
fn child_sessions_are_deleted_with_their_parent() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (old, new) = (begin(&store, 1), begin(&store, 2));
    let child = started(&store, &old, "child");
    let below = started(&store, &child, "below");
    append(&store, &below, says("long ".repeat(2_000)));
    for session in [&old, &new] {
        append(&store, session, says("short"));
    }
    let retention = Retention { max_bytes: Some(5_000), ..Retention::default() };
    assert_eq!(wait(store.prune(retention, 9)).unwrap().forgotten, std::slice::from_ref(&old));
    for gone in [old, child, below] {
        assert_eq!(wait(store.session_facts(gone)).unwrap_err().kind, StoreErrorKind::NotFound);
    }
    let child = started(&store, &new, "child");
    let other = store.database().open_store(crate::support::options(home.path())).unwrap();
    wait(other.hold_session(child.clone(), 3)).unwrap();
    let held = wait(store.delete(new.clone())).unwrap_err();
    assert!(matches!(held.kind, StoreErrorKind::Held { .. }), "{held:?}");
    drop(other);
    let_go(|| wait(store.delete(new.clone())));
    assert_eq!(wait(store.session_facts(child)).unwrap_err().kind, StoreErrorKind::NotFound);
}
