//! Processes that die at any moment: what was acknowledged is there, and the next request is legal.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use gnoma_core::store::{
    NewSession, ResultId, ResultStore, SessionId, SessionStore, StoreErrorKind,
};
use gnoma_store::{Retention, Store};

use crate::{
    migrations::{SESSION, old_database},
    support::{append, begin, fold, is_legal, load, log_of, open, options, try_open, turn, wait},
};

/// Names the folder to write to; set for the child only.
const FOLDER: &str = "GNOMA_STORE_TEST_CRASH";

/// Sets how often a child is killed.
const KILLS: &str = "GNOMA_STORE_KILLS";

#[expect(clippy::disallowed_methods, reason = "how the test speaks to its child and its caller")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn kills(usual: u64) -> u64 {
    variable(KILLS).and_then(|kills| kills.parse().ok()).unwrap_or(usual)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

/// Waits of up to `most_us` microseconds, the same in each run.
fn waits(most_us: u64) -> impl Iterator<Item = Duration> {
    let next = move |last: &u64| {
        Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(Some(1), next)
        .map(move |state: u64| Duration::from_micros((state >> 20) % most_us))
}

/// What `child` said before it was killed `after` its line that starts with `signal`.
fn run_and_kill(child: &str, folder: &Path, signal: &str, after: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", child, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    while let Some(Ok(line)) = lines.next() {
        let is_signal = line.starts_with(signal);
        said.push(line);
        if is_signal {
            break;
        }
    }
    let mut killed = child;
    let killer = thread::spawn(move || {
        thread::sleep(after);
        killed.kill().unwrap();
        killed.wait().unwrap();
    });
    said.extend(lines.map_while(Result::ok));
    killer.join().unwrap();
    said
}

/// What was said after `word`; the last line may be cut short by the kill.
fn said_after<'s>(said: &'s [String], word: &str) -> Vec<&'s str> {
    let whole = said.len().saturating_sub(1);
    said[..whole].iter().filter_map(|line| line.strip_prefix(word)).collect()
}

/// A turn's large result, before the turn.
fn large(number: usize) -> String {
    format!("line of {number}\n").repeat(500)
}

/// A child: writes turns until it is killed, and says what was acknowledged.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn child() {
    write_turns(100_000);
}

/// A child: writes some turns and then nothing, so that upkeep begins.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn quiet_child() {
    write_turns(20);
}

fn write_turns(turns: usize) {
    let Some(folder) = variable(FOLDER) else { return };
    let store = Arc::new(open(Path::new(&folder)));
    let session = wait(store.begin(NewSession::default())).unwrap();
    wait(store.hold_session(session.clone(), 0)).unwrap();
    let results = store.result_store(session.clone());
    say(&format!("session {session}"));
    for number in 0..turns {
        wait(results.save_result(large(number))).unwrap();
        say(&format!("result {number}"));
        for record in turn(number) {
            let id = append(&store, &session, record);
            say(&format!("entry {id}"));
        }
    }
    say("quiet");
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost() {
    let home = tempfile::tempdir().unwrap();
    for after in waits(30_000).take(usize::try_from(kills(100)).unwrap()) {
        let said = run_and_kill("crash::child", home.path(), "session ", after);
        check(home.path(), &said);
    }
}

#[test]
fn entries_survive_a_kill_during_idle_maintenance() {
    let home = tempfile::tempdir().unwrap();
    for (after, round) in waits(80_000).zip(0..kills(24)) {
        let folder = home.path().join(round.to_string());
        let after = Duration::from_millis(140) + after;
        let said = run_and_kill("crash::quiet_child", &folder, "quiet", after);
        check(&folder, &said);
        let store = open(&folder);
        assert!(!wait(store.search("answer 19".into(), 9)).unwrap().is_empty());
        wait(store.check_integrity()).unwrap();
        drop(store);
        fs::remove_dir_all(&folder).unwrap();
    }
}

fn check(folder: &Path, said: &[String]) {
    let session = said.iter().find_map(|line| line.strip_prefix("session ")).unwrap();
    let session = SessionId::new(session);
    let acknowledged = said_after(said, "entry ");
    let store = Arc::new(open(folder));
    let taken = wait(store.hold_session(session.clone(), 0)).unwrap();
    assert!(taken.left_by.is_some());
    let entries = load(&store, &session).entries;
    for id in &acknowledged {
        assert!(entries.iter().any(|entry| entry.id.to_string() == *id), "entry {id} is lost");
    }
    assert!(is_legal(&entries) || entries.len() < 2, "{entries:?}");
    let expected: Vec<_> = (0..).flat_map(turn).take(acknowledged.len()).collect();
    for (entry, record) in entries.iter().zip(&expected) {
        assert_eq!(&entry.record, record);
    }
    for number in said_after(said, "result ") {
        let number: usize = number.parse().unwrap();
        let id = ResultId::new(format!("r{}", number + 1));
        let kept = wait(store.result_store(session.clone()).read_slice(id, 0, usize::MAX)).unwrap();
        assert_eq!(kept.text, large(number));
    }
    wait(store.check_integrity()).unwrap();
}

/// A child: opens an old database.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn migrating_child() {
    let Some(folder) = variable(FOLDER) else { return };
    say("opening");
    let store = open(Path::new(&folder));
    wait(store.search("question".into(), 1)).unwrap();
    say("open");
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn killed_while_it_is_made_a_database_is_whole_or_missing() {
    let home = tempfile::tempdir().unwrap();
    let mut cut_short = 0;
    for (after, round) in waits(12_000).zip(0..kills(24)) {
        let folder = home.path().join(round.to_string());
        let said = run_and_kill("crash::migrating_child", &folder, "opening", after);
        cut_short += u64::from(!said.iter().any(|line| line == "open"));
        let store = open(&folder);
        append(&store, &begin(&store, 0), turn(0).remove(0));
        wait(store.check_integrity()).unwrap();
        drop(store);
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(cut_short > 0);
}

#[test]
fn old_or_new_database_exists_after_a_kill_during_migration() {
    const TURNS: usize = 300;
    let home = tempfile::tempdir().unwrap();
    let mut cut_short = 0;
    for (after, round) in waits(200_000).zip(0..kills(24)) {
        let folder = home.path().join(round.to_string());
        fs::create_dir(&folder).unwrap();
        old_database(&options(&folder).path(), usize::try_from(round % 3 + 1).unwrap(), TURNS);
        let said = run_and_kill("crash::migrating_child", &folder, "opening", after);
        cut_short += u64::from(!said.iter().any(|line| line == "open"));
        let store = open(&folder);
        let entries = load(&store, &SessionId::new(SESSION)).entries;
        assert_eq!(entries.len(), TURNS * turn(0).len());
        assert!(is_legal(&entries));
        assert_eq!(wait(store.search("question".into(), 9)).unwrap().len(), 3);
        wait(store.check_integrity()).unwrap();
        drop(store);
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(cut_short > 0);
}

/// A child: forgets one session after the other.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn pruning_child() {
    let Some(folder) = variable(FOLDER) else { return };
    let store = open(Path::new(&folder));
    say("pruning");
    for left in (0..SESSIONS).rev() {
        let keep = Retention { max_sessions: Some(left), ..Retention::default() };
        for forgotten in wait(store.prune(keep, 1_000_000)).unwrap().forgotten {
            say(&format!("forgotten {forgotten}"));
        }
    }
    thread::sleep(Duration::from_secs(60));
}

const SESSIONS: usize = 24;

/// Sessions with turns and results, every second a fork of the one before.
fn many_sessions(folder: &Path) {
    let store = Arc::new(open(folder));
    let mut last: Option<(SessionId, _)> = None;
    for number in 0..SESSIONS {
        let at_ms = i64::try_from(number).unwrap();
        let session = match last.take() {
            Some((source, tip)) if number % 2 == 1 => wait(store.fork(source, tip, at_ms)).unwrap(),
            _ => begin(&store, at_ms),
        };
        wait(store.result_store(session.clone()).save_result(large(number))).unwrap();
        let tip = (0..6).flat_map(turn).map(|record| append(&store, &session, record)).last();
        last = tip.map(|tip| (session, tip));
    }
}

#[test]
fn killed_in_a_pruning_each_session_is_whole_or_gone() {
    let home = tempfile::tempdir().unwrap();
    let full = home.path().join("full");
    many_sessions(&full);
    fold(&options(&full).path());
    for (after, round) in waits(60_000).zip(0..kills(24)) {
        let folder = home.path().join(round.to_string());
        fs::create_dir(&folder).unwrap();
        fs::copy(options(&full).path(), options(&folder).path()).unwrap();
        let said = run_and_kill("crash::pruning_child", &folder, "pruning", after);
        let store = Arc::new(open(&folder));
        wait(store.check_integrity()).unwrap();
        for forgotten in said_after(&said, "forgotten ") {
            let error = wait(store.session_facts(SessionId::new(forgotten))).unwrap_err();
            assert_eq!(error.kind, StoreErrorKind::NotFound);
        }
        for facts in wait(store.list(SESSIONS)).unwrap() {
            is_whole(&store, &facts.id);
        }
        drop(store);
        fs::remove_dir_all(&folder).unwrap();
    }
}

/// A child: recovers a database that is said to be damaged.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn rescuing_child() {
    let Some(folder) = variable(FOLDER) else { return };
    say("opening");
    let opened = try_open(Path::new(&folder)).unwrap();
    say("open");
    thread::sleep(Duration::from_secs(60));
    drop(opened);
}

#[test]
fn old_or_new_database_exists_after_a_kill_during_recovery() {
    let home = tempfile::tempdir().unwrap();
    let full = home.path().join("full");
    many_sessions(&full);
    let mut cut_short = 0;
    for (after, round) in waits(150_000).zip(0..kills(24)) {
        let folder = home.path().join(round.to_string());
        fs::create_dir(&folder).unwrap();
        let database = options(&folder).path();
        fs::copy(options(&full).path(), &database).unwrap();
        fs::copy(log_of(&options(&full).path()), log_of(&database)).unwrap();
        fs::write(format!("{}.doubt", database.display()), "").unwrap();
        let said = run_and_kill("crash::rescuing_child", &folder, "opening", after);
        cut_short += u64::from(!said.iter().any(|line| line == "open"));
        let store = Arc::new(try_open(&folder).unwrap().store);
        wait(store.check_integrity()).unwrap();
        let listed = wait(store.list(SESSIONS)).unwrap();
        assert_eq!(listed.len(), SESSIONS);
        for facts in listed {
            is_whole(&store, &facts.id);
        }
        drop(store);
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(cut_short > 0);
}

fn is_whole(store: &Arc<Store>, session: &SessionId) {
    let entries = load(store, session).entries;
    let turns = entries.len() / turn(0).len();
    assert!(turns == 6 || turns == 12, "{turns}");
    assert!(is_legal(&entries));
    for result in 1..=turns / 6 {
        let id = ResultId::new(format!("r{result}"));
        let kept = wait(store.result_store(session.clone()).read_slice(id, 0, usize::MAX)).unwrap();
        assert!(kept.text.ends_with('\n') && kept.next.is_none());
    }
}
