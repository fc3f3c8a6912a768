//! Large results: kept beside the session, read in slices, shared with forks.

use std::{
    borrow::Cow,
    path::Path,
    sync::{Arc, Mutex},
};

use gnoma_core::store::{
    EntryId, ResultId, ResultSlice, ResultStore, SessionId, SessionStore, StoreError,
    StoreErrorKind,
};
use gnoma_store::{Options, RecoveryCallback, Store};
use proptest::prelude::*;

use crate::support::{append, begin, open, options, says, turn, wait};

/// A store with one session.
fn with_session(folder: &Path) -> (Arc<Store>, SessionId) {
    let store = Arc::new(open(folder));
    let session = begin(&store, 0);
    (store, session)
}

fn put(store: &Arc<Store>, session: &SessionId, text: &str) -> ResultId {
    wait(store.result_store(session.clone()).save_result(text.to_owned())).unwrap()
}

fn read(
    store: &Arc<Store>,
    session: &SessionId,
    id: &str,
    from: u64,
    max_bytes: usize,
) -> Result<ResultSlice, StoreError> {
    wait(store.result_store(session.clone()).read_slice(ResultId::new(id), from, max_bytes))
}

/// All slices of a result, one after the other.
fn slices(store: &Arc<Store>, session: &SessionId, id: &ResultId, max_bytes: usize) -> Vec<String> {
    let mut slices = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        let slice = read(store, session, id.as_str(), from, max_bytes).unwrap();
        next = slice.next;
        slices.push(slice.text);
    }
    slices
}

/// A turn whose results speak of what was put before; the last entry.
fn turn_after(store: &Store, session: &SessionId) -> EntryId {
    turn(0).into_iter().map(|record| append(store, session, record)).last().unwrap()
}

#[test]
fn saved_result_is_read_after_reopen_in_whole_lines() {
    let home = tempfile::tempdir().unwrap();
    let (store, session) = with_session(home.path());
    let text: String = (0..50_000).map(|number| format!("line {number} ünï\n")).collect();
    let (first, second) = (put(&store, &session, &text), put(&store, &session, "short"));
    assert_eq!((first.as_str(), second.as_str()), ("r1", "r2"));
    drop(store);

    let store = Arc::new(open(home.path()));
    for max_bytes in [700, 60_000, usize::MAX] {
        let slices = slices(&store, &session, &first, max_bytes);
        assert!(slices.iter().all(|slice| slice.ends_with('\n')), "{max_bytes}");
        assert!(slices.iter().all(|slice| slice.len() <= max_bytes), "{max_bytes}");
        assert_eq!(slices.concat(), text);
    }
    let slice = read(&store, &session, "r1", 100, 10).unwrap();
    assert_eq!(slice.total_bytes, u64::try_from(text.len()).unwrap());
    assert_eq!(read(&store, &session, "r2", 5, 10).unwrap().text, "");
    assert_eq!(read(&store, &session, "r2", u64::MAX, 10).unwrap().next, None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn slices_join_to_the_whole(
        text in "[a-zß€𝄞\n]{0,300}",
        repeat in 1..3000_usize,
        max_bytes in 1..100_000_usize,
        from in any::<u64>(),
    ) {
        let home = tempfile::tempdir().unwrap();
        let (store, session) = with_session(home.path());
        let text = text.repeat(repeat);
        let id = put(&store, &session, &text);
        // Many tiny slices of a long text would only be slow.
        let max_bytes = max_bytes.max(text.len() / 200);
        prop_assert_eq!(slices(&store, &session, &id, max_bytes).concat(), text.as_str());
        let within = from % (u64::try_from(text.len()).unwrap() + 2);
        let slice = read(&store, &session, id.as_str(), within, max_bytes).unwrap();
        prop_assert!(text.contains(&slice.text));
    }
}

#[test]
fn fork_shares_results_of_the_common_history_and_continues_numbering() {
    let home = tempfile::tempdir().unwrap();
    let (store, session) = with_session(home.path());
    append(&store, &session, says("go"));
    put(&store, &session, "of the shared past");
    let shared = turn_after(&store, &session);
    put(&store, &session, "of the source alone");
    turn_after(&store, &session);

    let fork = wait(store.fork(session.clone(), shared, 1)).unwrap();
    assert_eq!(read(&store, &fork, "r1", 0, 99).unwrap().text, "of the shared past");
    assert_eq!(read(&store, &fork, "r2", 0, 99).unwrap_err().kind, StoreErrorKind::NotFound);
    assert_eq!(put(&store, &fork, "of the fork").as_str(), "r2");
    assert_eq!(read(&store, &fork, "r2", 0, 99).unwrap().text, "of the fork");
    assert_eq!(read(&store, &session, "r2", 0, 99).unwrap().text, "of the source alone");

    let tip = turn_after(&store, &fork);
    let grandchild = wait(store.fork(fork.clone(), tip, 2)).unwrap();
    wait(store.delete(session)).unwrap();
    wait(store.delete(fork)).unwrap();
    assert_eq!(read(&store, &grandchild, "r1", 0, 99).unwrap().text, "of the shared past");
    assert_eq!(read(&store, &grandchild, "r2", 0, 99).unwrap().text, "of the fork");
    wait(store.delete(grandchild)).unwrap();
    drop(store);
    let rows = |table: &str| -> i64 {
        rusqlite::Connection::open(options(home.path()).path())
            .unwrap()
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(["session", "entry", "result", "piece"].map(rows), [0; 4]);
}

#[test]
fn saved_results_count_toward_session_size_and_are_pruned_with_it() {
    let home = tempfile::tempdir().unwrap();
    let (store, session) = with_session(home.path());
    let before = wait(store.session_facts(session.clone())).unwrap().bytes;
    put(&store, &session, &format!("{:?}", (0..9000).collect::<Vec<_>>()));
    assert!(wait(store.session_facts(session.clone())).unwrap().bytes > before + 5000);
    let kept = gnoma_store::Retention { max_sessions: Some(0), ..Default::default() };
    wait(store.prune(kept, 9)).unwrap();
    assert_eq!(read(&store, &session, "r1", 0, 9).unwrap_err().kind, StoreErrorKind::NotFound);
    wait(store.check_integrity()).unwrap();
}

#[test]
fn result_id_of_another_session_is_not_found() {
    let home = tempfile::tempdir().unwrap();
    let (store, session) = with_session(home.path());
    let other = begin(&store, 1);
    put(&store, &other, "not yours");
    for id in ["r1", "r2", "r0", "r-1", "r+1", "1", "", "r", "r99999999999999999999", "../r1"] {
        let error = read(&store, &session, id, 0, 99).unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::NotFound, "{id}");
    }
    let nobody = SessionId::new("20200101-000000-000000");
    let refused = wait(store.result_store(nobody).save_result("x".into())).unwrap_err();
    assert_eq!(refused.kind, StoreErrorKind::NotFound);
    let second = Arc::new(open(home.path()));
    wait(second.hold_session(session.clone(), 0)).unwrap();
    let refused = wait(store.result_store(session).save_result("x".into())).unwrap_err();
    assert!(matches!(refused.kind, StoreErrorKind::Held { .. }));
}

#[test]
fn saved_result_is_redacted_and_size_limited() {
    let home = tempfile::tempdir().unwrap();
    let mut careful = options(home.path());
    careful.redact = Arc::new(|_, text: &str| Cow::Owned(text.replace("hush", "****")));
    let store = Arc::new(Store::open(careful).unwrap().store);
    let session = begin(&store, 0);
    let long = "hush and more\n".repeat(70 * 1024 * 1024 / 14);
    let id = put(&store, &session, &long);
    let facts = read(&store, &session, id.as_str(), 0, 10).unwrap();
    assert!((64 << 20..(64 << 20) + 200).contains(&facts.total_bytes), "{}", facts.total_bytes);
    let last = read(&store, &session, id.as_str(), facts.total_bytes - 300, 999).unwrap();
    assert!(last.text.contains("[cut here: the result has 70 MB"), "{}", last.text);
    assert!(last.text.contains("**** and more\n") && !last.text.contains("hush"));
    assert_eq!(last.next, None);
}

#[test]
fn intact_results_survive_database_recovery_and_damaged_ones_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let (store, session) = with_session(home.path());
    append(&store, &session, says("go"));
    put(&store, &session, "the first");
    let text: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    put(&store, &session, &text);
    turn_after(&store, &session);
    let path = store.path().to_owned();
    drop(store);
    let damaged = rusqlite::Connection::open(&path).unwrap();
    damaged.execute("DELETE FROM piece WHERE result = 2 AND start > 0", []).unwrap();
    drop(damaged);
    let heard = Arc::new(Mutex::new(None));
    let hears = Arc::clone(&heard);
    let recovered: Arc<RecoveryCallback> =
        Arc::new(move |rescued| *hears.lock().unwrap() = Some(rescued));
    let opened = Store::open(Options { recovered, ..options(home.path()) }).unwrap();
    let store = Arc::new(opened.store);
    let error = read(&store, &session, "r2", 900_000, 9).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::NotFound);
    assert_eq!(heard.lock().unwrap().as_ref().map(|rescued| rescued.lost), Some(1));
    assert_eq!(read(&store, &session, "r1", 0, 99).unwrap().text, "the first");
    assert_eq!(read(&store, &session, "r2", 0, 99).unwrap_err().kind, StoreErrorKind::NotFound);
    assert!(!wait(store.search("output".into(), 5)).unwrap().is_empty());
}
