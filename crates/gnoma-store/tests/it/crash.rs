//! Processes that die at any moment: what was acknowledged is there, and the next request is legal.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use gnoma_core::store::{NewSession, SessionId, SessionStore};

use crate::support::{append, is_legal, load, open, turn, wait};

/// Names the folder to write to; set for the child only.
const FOLDER: &str = "GNOMA_STORE_TEST_CRASH";

/// Sets how often a child is killed.
const KILLS: &str = "GNOMA_STORE_KILLS";

#[expect(clippy::disallowed_methods, reason = "how the test speaks to its child and its caller")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The child: writes turns until it is killed, and says what was acknowledged.
#[test]
fn child() {
    let Some(folder) = variable(FOLDER) else { return };
    let store = open(Path::new(&folder));
    let session = wait(store.begin(NewSession { at_ms: 0, title: None })).unwrap();
    wait(store.hold(session.clone(), 0)).unwrap();
    say(&format!("session {session}"));
    for number in 0..100_000 {
        for record in turn(number) {
            let id = append(&store, &session, record);
            say(&format!("entry {id}"));
        }
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost() {
    let kills: u64 = variable(KILLS).and_then(|kills| kills.parse().ok()).unwrap_or(200);
    let home = tempfile::tempdir().unwrap();
    let mut wait_us = 1_u64;
    for _ in 0..kills {
        wait_us = wait_us.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695) % 30_011;
        let said = run_and_kill(home.path(), Duration::from_micros(wait_us));
        check(home.path(), &said);
    }
}

/// What the child said before it was killed `after` its first word.
fn run_and_kill(folder: &Path, after: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    while let Some(Ok(line)) = lines.next() {
        let begun = line.starts_with("session ");
        said.push(line);
        if begun {
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

fn check(folder: &Path, said: &[String]) {
    let session = said.iter().find_map(|line| line.strip_prefix("session ")).unwrap();
    let session = SessionId::new(session);
    // The last line may be cut short by the kill.
    let acknowledged: Vec<i64> =
        said.iter().filter_map(|line| line.strip_prefix("entry ")?.parse().ok()).collect();
    let store = open(folder);
    let taken = wait(store.hold(session.clone(), 0)).unwrap();
    assert!(taken.left_by.is_some());
    let entries = load(&store, &session).entries;
    let whole = acknowledged.len().saturating_sub(1);
    for id in &acknowledged[..whole] {
        assert!(entries.iter().any(|entry| entry.id.0 == *id), "entry {id} is lost");
    }
    assert!(entries.len() >= acknowledged.len());
    assert!(is_legal(&entries) || entries.len() < 2, "{entries:?}");
    let expected: Vec<_> = (0..).flat_map(turn).take(whole).collect();
    for (entry, record) in entries.iter().zip(&expected) {
        assert_eq!(&entry.record, record);
    }
    wait(store.check()).unwrap();
}
