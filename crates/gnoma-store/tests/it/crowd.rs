//! Several processes on one project: nothing is lost, and nobody hears of locks.

use std::{path::Path, process::Command, thread};

use gnoma_core::store::{SessionId, SessionStore};

use crate::support::{append, begin, is_legal, load, open, turn, wait};

/// `folder|shared session` for a child.
const TASK: &str = "GNOMA_STORE_TEST_CROWD";

const PROCESSES: usize = 8;
const TURNS: usize = 125;

#[expect(clippy::disallowed_methods, reason = "how the test speaks to its children")]
fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn child() {
    let Some(task) = task() else { return };
    let (folder, shared) = task.split_once('|').unwrap();
    let store = open(Path::new(folder));
    let own = begin(&store, 0);
    wait(store.hold_session(own.clone(), 0)).unwrap();
    let shared = SessionId::new(shared);
    for number in 0..TURNS {
        for record in turn(number) {
            append(&store, &own, record);
        }
        append(&store, &shared, crate::support::says(format!("turn {number} of {own}")));
    }
}

#[test]
fn eight_processes_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let shared = begin(&store, 0);
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--ignored", "--exact", "crowd::child", "--nocapture"])
                .env(TASK, format!("{}|{shared}", home.path().display()));
            thread::spawn(move || command.output())
        })
        .collect();
    for child in children {
        let output = child.join().unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let sessions = wait(store.list(100)).unwrap();
    assert_eq!(sessions.len(), PROCESSES + 1);
    for facts in sessions {
        assert_eq!(facts.held_by, None);
        let entries = load(&store, &facts.id).entries;
        if facts.id == shared {
            assert_eq!(entries.len(), PROCESSES * TURNS);
        } else {
            assert_eq!(entries.len(), TURNS * turn(0).len());
            assert!(is_legal(&entries));
        }
    }
}
