//! A ledger that is opened for reading: in a read-only home, beside a process that writes, and where it must first be
//! repaired.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    ops::ControlFlow,
    path::Path,
    process::{Child, Command, Stdio},
};

use gnoma_core::{
    ModelRef,
    ledger::{
        Amount, CallOrigin, Ledger as _, Limit, PoolDraw, ReservationOutcome, ReservationRequest,
        Unit, Window,
    },
    store::StoreErrorKind,
};
use gnoma_store::SqliteLedger;

use crate::{
    places::{has_own_mounts, mount, mount_again, with_own_mounts},
    support::wait,
};

/// The ledger whose write lock a child process holds.
const HELD: &str = "GNOMA_STORE_TEST_HELD_LEDGER";

const NOW_MS: i64 = 1_800_014_400_000;

fn draws() -> Vec<PoolDraw> {
    let limit = Limit { unit: Unit::MicroUsd, window: Window::Day, most: 100 };
    vec![PoolDraw { pool: "all".into(), limits: vec![limit] }]
}

fn ask(micro_usd: u64) -> ReservationRequest {
    let arm = ModelRef { provider: "p".into(), model: "m".into() };
    let amount = Amount { requests: 1, micro_usd, ..Amount::default() };
    let origin = CallOrigin { branch: "main".into(), ..CallOrigin::default() };
    ReservationRequest { at_ms: NOW_MS, arm, amount, is_priced: true, draws: draws(), origin }
}

/// Makes a ledger with a settled call of 7 and a reserved one of 5 micro-dollars.
fn write_ledger(path: &Path) -> SqliteLedger {
    let ledger = SqliteLedger::open(path).unwrap().ledger;
    for (micro_usd, is_settled) in [(7, true), (5, false)] {
        let ask = ask(micro_usd);
        let amount = ask.amount;
        let Ok(ReservationOutcome::Held(hold)) = wait(ledger.reserve(ask)) else {
            panic!("no room")
        };
        if is_settled {
            wait(ledger.commit(hold, NOW_MS, amount.into())).unwrap();
        }
    }
    ledger
}

/// Reads everything that reports show. `held`: what calls in flight are expected to hold.
fn check_report(path: &Path, held: u64) {
    let ledger = SqliteLedger::open_to_read(path).unwrap().unwrap();
    let branches = wait(ledger.fold_calls(i64::MIN, Vec::new(), |branches, call| {
        branches.push(call.branch);
        ControlFlow::Continue(())
    }));
    let read = branches.unwrap();
    assert_eq!(read.totals.len(), 1);
    assert_eq!(read.totals[0].amount.micro_usd, 7);
    let names = wait(ledger.call_names(read.state)).unwrap();
    assert_eq!(names.into_values().collect::<Vec<_>>(), ["main"]);
    let levels = wait(ledger.limit_levels(draws(), NOW_MS)).unwrap();
    assert_eq!((levels[0].used, levels[0].held), (7, held));
    let Err(error) = wait(ledger.reserve(ask(1))) else { panic!("it was written") };
    assert_eq!(error.kind, StoreErrorKind::ReadOnly, "{error:?}");
}

#[test]
fn ledger_report_works_in_a_read_only_home() {
    with_own_mounts("ledger_reading::read_only_home_child");
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn read_only_home_child() {
    if !has_own_mounts() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    mount("size=4m", home.path());
    let path = home.path().join("ledger.db");
    drop(write_ledger(&path));
    mount_again("ro", home.path());
    assert!(SqliteLedger::open(&path).is_err());
    check_report(&path, 0);
    mount_again("rw", home.path());
    // A copy of the file alone, without SQLite's files for its log.
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let copy = home.path().join("a copy?#%.db");
    fs::copy(&path, &copy).unwrap();
    mount_again("ro", home.path());
    check_report(&copy, 0);
    assert!(SqliteLedger::open_to_read(&home.path().join("none.db")).is_err());
    mount_again("rw", home.path());
}

/// Starts a process that holds the write lock until its input ends. Its output must stay open for as long.
fn hold_write_lock(path: &Path) -> (Child, impl Sized) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "ledger_reading::write_lock_child", "--nocapture"])
        .env(HELD, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("the lock is held")));
    (child, lines)
}

#[test]
#[ignore = "another test runs it in a process of its own"]
#[expect(clippy::disallowed_methods, reason = "how the test speaks to its child")]
fn write_lock_child() {
    let Ok(path) = std::env::var(HELD) else { return };
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    writeln!(std::io::stdout(), "\nthe lock is held").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_report_does_not_wait_for_a_process_that_writes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    let writer = write_ledger(&path);
    let (mut other, _output) = hold_write_lock(&path);
    check_report(&path, 5);
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    drop(writer);
    check_report(&path, 0);
}

#[test]
fn reading_changes_no_file() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    drop(write_ledger(&path));
    let files = || {
        let mut files: Vec<_> = fs::read_dir(home.path())
            .unwrap()
            .map(|file| file.unwrap())
            // SQLite's locks of readers are in this one.
            .filter(|file| !file.file_name().to_string_lossy().ends_with("-shm"))
            .map(|file| (file.file_name(), fs::read(file.path()).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = files();
    check_report(&path, 0);
    assert!(files() == before);
}

#[test]
fn read_only_ledger_open_leaves_migration_to_the_next_writer() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger.db");
    drop(write_ledger(&path));
    let set_version = |version: i64| {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
    };
    set_version(4);
    assert!(SqliteLedger::open_to_read(&path).unwrap().is_none(), "it is of an older version");
    set_version(99);
    let Err(error) = SqliteLedger::open_to_read(&path) else { panic!("a newer one was read") };
    assert_eq!(error.kind, StoreErrorKind::TooNew, "{error:?}");
    assert!(error.sentence.contains("newer gnoma (version 99"), "{error:?}");
    for ending in ["-wal", "-shm"] {
        let mut file = path.clone().into_os_string();
        file.push(ending);
        fs::remove_file(file).unwrap();
    }
    fs::write(&path, "short").unwrap();
    assert!(matches!(SqliteLedger::open_to_read(&path), Ok(None)), "it is damaged");
    fs::write(&path, "x".repeat(9_000)).unwrap();
    assert!(!matches!(SqliteLedger::open_to_read(&path), Ok(Some(_))), "it is no database");
    let missing = home.path().join("none.db");
    assert!(SqliteLedger::open_to_read(&missing).is_err() && !missing.exists());
}
