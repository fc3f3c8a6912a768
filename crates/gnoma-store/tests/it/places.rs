//! Places that make trouble: full, read-only, without shared memory.

use std::{
    fs, os::unix::fs::MetadataExt, path::Path, process::Command, sync::Arc, thread, time::Duration,
};

use gnoma_core::store::{
    Durability, NewEntry, ResultStore, SessionId, SessionStore, StoreErrorKind,
};
use gnoma_store::{Journal, Store};

use crate::support::{append, begin, entry, load, log_of, open, options, says, try_open, wait};

#[test]
fn store_works_with_a_rollback_journal() {
    let home = tempfile::tempdir().unwrap();
    let mut slow = options(home.path());
    slow.journal = Journal::Rollback;
    let store = Store::open(slow).unwrap().store;
    let session = begin(&store, 0);
    append(&store, &session, says("kept"));
    assert!(!home.path().join("anything.db-wal").exists());
    drop(store);
    let log = open(home.path());
    assert_eq!(load(&log, &session).entries.len(), 1);
}

#[test]
fn unwritable_store_folder_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "in the way").unwrap();
    assert!(try_open(&file.join("below")).is_err());
}

/// Runs one of this file's tests in a process with mounts of its own, that go with it.
pub(crate) fn with_own_mounts(test: &str) {
    // The child cannot remove a folder on which it has mounted something.
    let temporary = tempfile::tempdir().unwrap();
    let inside = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env(MOUNTS, "own")
        .env("TMPDIR", temporary.path())
        .output();
    let Ok(output) = inside else { return gnoma_testkit::skip_test("`unshare` is not installed") };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare:") {
        return gnoma_testkit::skip_test(&format!(
            "no sandbox: this system allows no mounts: {}",
            said.trim()
        ));
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
}

/// Set for the process that may mount.
const MOUNTS: &str = "GNOMA_STORE_TEST_MOUNTS";

#[expect(clippy::disallowed_methods, reason = "how the test speaks to its child")]
pub(crate) fn has_own_mounts() -> bool {
    std::env::var(MOUNTS).is_ok()
}

pub(crate) fn mount(options: &str, folder: &Path) {
    let status =
        Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(folder).status();
    assert!(status.unwrap().success());
}

#[test]
fn full_disk_is_reported_and_damages_nothing() {
    with_own_mounts("places::full_disk_child");
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn full_disk_child() {
    if !has_own_mounts() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    mount("size=2m", home.path());
    let ballast = home.path().join("ballast");
    fs::write(&ballast, vec![1; 500_000]).unwrap();
    let store = Arc::new(open(home.path()));
    let session = begin(&store, 0);
    let results = store.result_store(session.clone());
    wait(results.save_result("kept".into())).unwrap();
    let mut kept = 0;
    let error = loop {
        match wait(store.append(entry(&session, says("x".repeat(10_000))))) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1000);
    };
    assert_eq!(error.kind, StoreErrorKind::Full, "{error:?}");
    let noise: String = (0..300_000_u64).map(|n| format!("{:x}", n * n * 7919)).collect();
    let error = wait(results.save_result(noise)).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Full, "{error:?}");
    assert_eq!(load(&store, &session).entries.len(), kept);
    let only_reads = Store::open_to_read(options(home.path())).unwrap();
    assert_eq!(load(&only_reads, &session).entries.len(), kept);
    drop(only_reads);
    assert_eq!(wait(store.search("nothing".into(), 9)).unwrap(), []);
    // Long enough for a pause, in which there is no room to be made.
    thread::sleep(Duration::from_millis(400));
    fs::remove_file(ballast).unwrap();
    append(&store, &session, says("room again"));
    drop((results, store));
    let store = Arc::new(open(home.path()));
    assert_eq!(load(&store, &session).entries.len(), kept + 1);
    assert_eq!(wait(store.search("room again".into(), 9)).unwrap().len(), 1);
    wait(store.check_integrity()).unwrap();
}

#[test]
fn database_recovery_on_a_full_disk_changes_nothing() {
    with_own_mounts("places::no_room_child");
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn no_room_child() {
    if !has_own_mounts() {
        return;
    }
    let mut bytes = crate::harm::sound(20, 60);
    bytes[..100].fill(0xff);
    let home = tempfile::tempdir().unwrap();
    mount(&format!("size={}k", bytes.len() * 5 / 2 / 1024), home.path());
    let path = crate::harm::place(home.path(), &bytes);
    let ballast = home.path().join("ballast");
    for ballast_bytes in [bytes.len(), bytes.len() / 2, bytes.len() / 8] {
        fs::write(&ballast, vec![1; ballast_bytes]).unwrap();
        let Err(error) = try_open(home.path()) else { panic!("{ballast_bytes}: there was room") };
        assert_eq!(error.kind, StoreErrorKind::Full, "{error:?}");
        assert!(fs::read(&path).unwrap() == bytes, "{ballast_bytes}");
        let files =
            fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().metadata().unwrap());
        let used: u64 = files.map(|facts| facts.len()).sum();
        let most = u64::try_from(bytes.len() + ballast_bytes).unwrap();
        assert_eq!(used, most, "nothing of the attempt takes room");
    }
    fs::remove_file(ballast).unwrap();
    mount_again("size=64m", home.path());
    let rescued = try_open(home.path()).unwrap().rescued.unwrap();
    assert_eq!((rescued.sessions, rescued.lost), (20, 0), "{rescued}");
}

#[test]
fn read_only_file_system_is_reported() {
    with_own_mounts("places::read_only_child");
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn read_only_child() {
    if !has_own_mounts() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    mount("size=4m", home.path());
    let session = {
        let store = open(home.path());
        let session = begin(&store, 0);
        append(&store, &session, says("kept"));
        session
    };
    mount_again("ro", home.path());
    let Err(error) = try_open(home.path()) else { panic!("a read-only place was written to") };
    assert_eq!(error.kind, StoreErrorKind::ReadOnly, "{error:?}");
    let Err(error) = try_open(&home.path().join("new")) else { panic!("a folder was made") };
    assert_eq!(error.kind, StoreErrorKind::ReadOnly, "{error:?}");
    reads_and_cannot_write(home.path(), &session);
    mount_again("rw", home.path());
    assert_eq!(load(&open(home.path()), &session).entries.len(), 1);
}

/// What was stored last is in the log alone.
fn reads_and_cannot_write(home: &Path, session: &SessionId) {
    let store = Store::open_to_read(options(home)).unwrap();
    assert_eq!(wait(store.list(9)).unwrap().len(), 1);
    assert_eq!(load(&store, session).entries.len(), 1);
    assert!(wait(store.search("kept".into(), 9)).is_ok());
    wait(store.check_integrity()).unwrap();
    let refused = [
        wait(store.append(entry(session, says("more")))).unwrap_err(),
        wait(store.hold_session(session.clone(), 0)).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind, StoreErrorKind::ReadOnly, "{error:?}");
    }
}

pub(crate) fn mount_again(mode: &str, folder: &Path) {
    let options = format!("remount,{mode}");
    let status = Command::new("mount").args(["-o", &options]).arg(folder).status();
    assert!(status.unwrap().success());
}

/// Waits for something that happens in a pause.
fn soon(mut has_happened: impl FnMut() -> bool) {
    for _ in 0..200 {
        if has_happened() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("it did not happen");
}

#[test]
fn idle_store_updates_the_search_index_and_preallocates_the_wal() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    let last = append(&store, &session, says("walrus"));
    let log = log_of(store.path());
    soon(|| fs::metadata(&log).unwrap().len() >= 1024 * 1024);
    let other = rusqlite::Connection::open(store.path()).unwrap();
    let indexed =
        || -> i64 { other.query_row("SELECT up_to FROM indexed", [], |row| row.get(0)).unwrap() };
    soon(|| indexed() == last.0);
    for number in 0..300 {
        append(&store, &session, says(format!("entry {number}")));
    }
    soon(|| indexed() == last.0 + 300);
    assert_eq!(wait(store.search("walrus".into(), 9)).unwrap().len(), 1);
    wait(store.check_integrity()).unwrap();
}

#[test]
fn wal_is_continued_by_the_next_run() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (path, session) = (store.path().to_owned(), begin(&store, 0));
    append(&store, &session, says("first"));
    drop(store);
    let before = fs::metadata(log_of(&path)).unwrap();
    let store = open(home.path());
    append(&store, &session, says("second"));
    drop(store);
    let after = fs::metadata(log_of(&path)).unwrap();
    assert!(before.ino() == after.ino() && before.len() < after.len());
    assert_eq!(load(&open(home.path()), &session).entries.len(), 2);
}

#[test]
fn wal_stays_short_without_idle_time() {
    const MOST_BYTES: u64 = 2 * 1024 * 1024;
    let home = tempfile::tempdir().unwrap();
    for run in 0..60 {
        let store = open(home.path());
        let session = begin(&store, run);
        for number in 0..9 {
            append(&store, &session, says(format!("entry {number}")));
        }
        let last = NewEntry { durability: Durability::Disk, ..entry(&session, says("last")) };
        wait(store.append(last)).unwrap();
        let bytes = fs::metadata(log_of(store.path())).unwrap().len();
        assert!(bytes < MOST_BYTES, "{bytes} after {run}");
    }
}

#[test]
fn wal_contains_no_deleted_text() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    append(&store, &session, says("a walrus"));
    let log = log_of(store.path());
    let holds_it = || fs::read(&log).unwrap().windows(8).any(|bytes| bytes == b"a walrus");
    assert!(holds_it());
    wait(store.delete(session)).unwrap();
    drop(store);
    assert!(!holds_it());
}

#[test]
fn search_index_keeps_up_with_continuous_appends() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let session = begin(&store, 0);
    for number in 0..3000 {
        append(&store, &session, says(format!("entry {number}")));
    }
    let other = rusqlite::Connection::open(store.path()).unwrap();
    let indexed: i64 = other.query_row("SELECT up_to FROM indexed", [], |row| row.get(0)).unwrap();
    assert!(indexed > 500, "{indexed}");
    assert_eq!(wait(store.search("2999".into(), 9)).unwrap().len(), 1);
}
