//! Recovering a database while the world goes on: killed on the way, twice at once, with too little room,
//! and with much to recover. `GNOMA_STORE_KILLS` says how often it is killed, `GNOMA_STORE_LARGE_MB` how
//! large a database is measured; by default a small one.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use gnoma_core::store::SessionStore;

use crate::{
    harm::{place, sound},
    support::{append, begin, fold, load, open, options, says, try_open, wait},
};

/// Names the folder for a child.
const FOLDER: &str = "GNOMA_STORE_TEST_SALVAGE";

const SESSIONS: usize = 6;
const TURNS: usize = 20;
const ENTRIES: usize = SESSIONS * TURNS * 7;

/// Memory beyond what the process had: some for each entry's id, whatever they hold.
const MOST_MEMORY_MB: u64 = 64;

#[expect(clippy::disallowed_methods, reason = "how the test speaks to its child and its caller")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A database whose header is broken: all the rest of it can be recovered.
fn damaged() -> Vec<u8> {
    let mut bytes = sound(SESSIONS, TURNS);
    bytes[..100].fill(0xff);
    bytes
}

/// A child: opens the database and ends.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn child() {
    if let Some(folder) = variable(FOLDER) {
        try_open(Path::new(&folder)).unwrap();
    }
}

fn spawn(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "salvage::child", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// All is there, and the damaged file as it was beside it.
fn is_recovered(folder: &Path, damaged: &[u8]) {
    let store = try_open(folder).unwrap().store;
    wait(store.check_integrity()).unwrap();
    let sessions = wait(store.list(100)).unwrap();
    let entries = sessions.iter().map(|facts| load(&store, &facts.id).entries.len());
    assert_eq!((sessions.len(), entries.sum::<usize>()), (SESSIONS, ENTRIES));
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.iter().any(|file| fs::read(file).unwrap() == damaged), "{files:?}");
    let name = |ending: &str| format!("{}.{ending}", options(folder).path().display());
    for leftover in ["copy", "found", "building", "rescued", "doubt"] {
        assert!(!fs::exists(name(leftover)).unwrap(), "{leftover}");
    }
}

#[test]
fn killed_database_recovery_is_restarted_or_finished() {
    let damaged = damaged();
    let whole = tempfile::tempdir().unwrap();
    place(whole.path(), &damaged);
    let began = Instant::now();
    assert!(spawn(whole.path()).wait().unwrap().success());
    let takes = began.elapsed();
    is_recovered(whole.path(), &damaged);
    let kills = variable("GNOMA_STORE_KILLS").and_then(|kills| kills.parse().ok()).unwrap_or(12);
    for number in 0..kills {
        let home = tempfile::tempdir().unwrap();
        place(home.path(), &damaged);
        for kill in [number, (number * 7 + 3) % kills] {
            let mut child = spawn(home.path());
            thread::sleep(takes * kill / kills);
            child.kill().unwrap();
            child.wait().unwrap();
        }
        is_recovered(home.path(), &damaged);
    }
}

#[test]
fn one_process_recovers_the_database_while_others_wait() {
    let damaged = damaged();
    let home = tempfile::tempdir().unwrap();
    place(home.path(), &damaged);
    let children: Vec<Child> = (0..4).map(|_| spawn(home.path())).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    is_recovered(home.path(), &damaged);
    let aside = fs::read_dir(home.path()).unwrap().filter(|file| {
        let name = file.as_ref().unwrap().file_name().into_string().unwrap();
        name.contains(".damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    });
    assert_eq!(aside.count(), 1, "it is recovered once");
}

/// Most memory that the process has had.
fn peak_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// A child, so that the memory is that of the recovery alone.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn large_child() {
    let Some(folder) = variable(FOLDER) else { return };
    let (began, before) = (Instant::now(), peak_mb());
    let rescued = try_open(Path::new(&folder)).unwrap().rescued.unwrap();
    println!(
        "recovered {} entries in {:?} with {} MB beyond {before} MB; {} lost",
        rescued.entries,
        began.elapsed(),
        peak_mb() - before,
        rescued.lost
    );
    assert!(peak_mb() - before < MOST_MEMORY_MB, "{} MB", peak_mb() - before);
    assert_eq!((rescued.lost, rescued.unknown), (0, false));
}

#[test]
fn a_large_database_is_recovered_without_being_held_in_memory() {
    let megabytes = variable("GNOMA_STORE_LARGE_MB").and_then(|mb| mb.parse().ok()).unwrap_or(4);
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let mut last = None;
    for number in 0..megabytes * 50 {
        if number % 1000 == 0 {
            last = Some(begin(&store, number));
        }
        append(&store, last.as_ref().unwrap(), says(format!("{number} words ").repeat(1_600)));
    }
    let path = store.path().to_owned();
    drop(store);
    fold(&path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[..100].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "salvage::large_child", "--nocapture"])
        .env(FOLDER, home.path())
        .output()
        .unwrap();
    print!("{} MB: {}", bytes.len() >> 20, String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
