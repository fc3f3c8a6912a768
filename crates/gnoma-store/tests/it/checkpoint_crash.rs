//! Killed at any moment: the vault opens, and every snapshot that was reported can be restored.
//!
//! A child, this program run again, shapes files, takes snapshots, restores and prunes as fast as it
//! can. Shape `n` is the same wherever it is made, so that the parent knows what each snapshot holds.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::Write,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
    time::Duration,
};

use gnoma_store::checkpoint::{Conflict, Limits, SnapshotId, Workspace};

use crate::checkpoint_support::{Dice, difference, look, often, shell, vault};

const ROUNDS: u64 = 30;

/// A child that nobody kills ends by itself.
const MAX_STEPS: u64 = 2_000;

/// Snapshots that pruning leaves.
const KEPT: usize = 12;

/// What the child does, by the number it rolled.
const ACTIONS: [&str; 9] = [
    "checkpoint",
    "checkpoint",
    "checkpoint",
    "checkpoint",
    "checkpoint",
    "restore",
    "restore",
    "collection",
    "pruning",
];

/// Makes `root` look like number `n`, whatever it was.
fn shape(root: &Path, number: u64) {
    let mut dice = Dice(number);
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }
    for folder in 0..4 {
        let folder = root.join(format!("folder{folder}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..6 {
            // Drawn from few, so that snapshots share objects.
            let size = 1 + dice.roll(5) * 997;
            fs::write(folder.join(format!("file{file}")), vec![b'a' + file as u8; size as usize])
                .unwrap();
        }
    }
    fs::write(root.join("number"), number.to_string()).unwrap();
    if number.is_multiple_of(5) {
        let noise: Vec<u8> = (0..5 << 20).map(|place| (place * number) as u8).collect();
        fs::write(root.join("large"), noise).unwrap();
    }
    symlink(format!("folder{}", dice.roll(4)), root.join("link")).unwrap();
    fs::hard_link(root.join("number"), root.join("folder1/again")).unwrap();
}

/// Does nothing unless it is started beside a job.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn child() {
    let Ok(first) = fs::read_to_string("job") else { return };
    let mut number: u64 = first.trim().parse().unwrap();
    let mut dice = Dice(number);
    let vault = vault(Path::new("vault"));
    let workspace = vault.open_workspace(Path::new("work")).unwrap();
    let open = |name| fs::File::options().append(true).create(true).open(name).unwrap();
    let (mut done, mut doing) = (open("done"), open("doing"));
    for _ in 0..MAX_STEPS {
        let action = dice.roll(9);
        if action <= 4 {
            number += 1;
            shape(Path::new("work"), number);
        }
        writeln!(doing, "{}", ACTIONS[action as usize]).unwrap();
        match action {
            0..=4 => {
                let id = workspace.take_snapshot(&number.to_string()).unwrap().id;
                writeln!(done, "{id}").unwrap();
            }
            5..=6 => {
                let ids = workspace.snapshots().unwrap();
                if !ids.is_empty() {
                    let id = &ids[dice.roll(ids.len() as u64) as usize];
                    workspace.restore(id, Conflict::KeepTheirs).unwrap();
                }
            }
            7 => drop(vault.collect_garbage().unwrap()),
            _ => {
                let limits = Limits { snapshots: KEPT, ..Limits::default() };
                vault.prune(&limits, &HashSet::new(), &AtomicBool::new(false)).unwrap();
            }
        }
        writeln!(doing, "nothing").unwrap();
    }
}

fn check(folder: &Path, workspace: &Workspace, id: &SnapshotId) {
    let restored = workspace.restore(id, Conflict::KeepTheirs).unwrap();
    assert_eq!(restored.left, [], "{id}");
    let Ok(number) = workspace.get(id).unwrap().label.parse() else { return };
    let pattern = folder.join("pattern");
    fs::create_dir_all(&pattern).unwrap();
    shape(&pattern, number);
    assert_eq!(difference(&look(&folder.join("work")), &look(&pattern)), [""; 0], "{id}");
}

fn kill_again_and_again(rounds: u64, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("work")).unwrap();
    let mut dice = Dice(seed);
    let mut killed_in: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..rounds {
        fs::write(folder.join("job"), (round * 10_000).to_string()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "checkpoint_crash::child", "--test-threads=1"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(10_000 + dice.roll(250_000)));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), None, "the child failed by itself in round {round}");

        let doing = fs::read_to_string(folder.join("doing")).unwrap_or_default();
        *killed_in.entry(doing.lines().last().unwrap_or("start").to_owned()).or_default() += 1;
        drop(fs::remove_file(folder.join("doing")));
        let vault = vault(&folder.join("vault"));
        let workspace = vault.open_workspace(&folder.join("work")).unwrap();
        workspace.past_snapshots().unwrap();
        let ids = workspace.snapshots().unwrap();
        let done = fs::read_to_string(folder.join("done")).unwrap_or_default();
        if let Some(last) = done.lines().last() {
            let after = ids.iter().filter(|id| id.as_str() > last).count();
            let is_there = ids.iter().any(|id| id.as_str() == last);
            assert!(is_there || after >= KEPT, "round {round} lost {last}");
        }
        for _ in 0..3.min(ids.len()) {
            check(folder, &workspace, &ids[dice.roll(ids.len() as u64) as usize]);
        }
        if let Some(newest) = ids.last() {
            check(folder, &workspace, newest);
        }
        if round % 5 == 4 {
            vault.collect_garbage().unwrap();
            for id in workspace.snapshots().unwrap() {
                check(folder, &workspace, &id);
            }
            let limits = Limits { snapshots: KEPT, ..Limits::default() };
            vault.prune(&limits, &HashSet::new(), &AtomicBool::new(false)).unwrap();
        }
    }
    println!("killed in {killed_in:?}");
    shell(folder, "rm -rf work");
}

#[test]
fn killed_at_any_moment_every_snapshot_can_be_restored() {
    kill_again_and_again(often("GNOMA_KILLS", ROUNDS), 1);
}
