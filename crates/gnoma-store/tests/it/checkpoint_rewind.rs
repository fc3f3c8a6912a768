//! Rewind, redo and changes as the commands use them, and the engine's port.

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use gnoma_core::store::{Checkpoints, StoreErrorKind};
use gnoma_store::checkpoint::{
    ChangeKind, Checkpointer, Conflict, Error, Point, SnapshotCause, SnapshotId, Workspace,
};

use crate::checkpoint_support::{shell, vault};

struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    fn open(&self, session: &str) -> Workspace {
        let vault = vault(&self.folder.path().join("vault"));
        let workspace = vault.open_workspace(&self.folder.path().join("work")).unwrap();
        workspace.set_session(Some(session));
        workspace
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("work").join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join("work").join(name)).unwrap_or_default()
    }

    /// A turn that writes each of `texts` to the file, as the engine would have it kept; gives the
    /// snapshot it began with.
    fn turn(&self, workspace: &Workspace, name: &str, texts: &[&str]) -> SnapshotId {
        let mut start = None;
        for text in texts {
            let id = workspace.take_snapshot("before a tool").unwrap().id;
            start.get_or_insert(id);
            self.write(name, text);
        }
        let end = workspace.take_snapshot("end of the turn").unwrap().id;
        start.unwrap_or(end)
    }
}

const KEEP: Conflict = Conflict::KeepTheirs;

#[test]
fn states_are_rewound_and_redone() {
    let desk = Desk::new();
    let workspace = desk.open("s");
    desk.write("a", "0");
    desk.turn(&workspace, "a", &["1", "2"]);
    desk.turn(&workspace, "a", &[]);
    desk.turn(&workspace, "a", &["3"]);
    workspace.rewind(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "2");
    // The turn that changed nothing is no step.
    workspace.rewind(2, KEEP).unwrap();
    assert_eq!(desk.read("a"), "0");
    assert!(matches!(workspace.rewind(1, KEEP), Err(Error::NothingBefore(0))));
    assert!(matches!(workspace.redo(3, KEEP), Err(Error::NothingAfter(2))));
    // Another process takes it up.
    let workspace = desk.open("s");
    workspace.redo(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "2");
    workspace.redo(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "3");
    assert!(matches!(workspace.redo(1, KEEP), Err(Error::NothingAfter(0))));
    let ahead = workspace.rewind(2, KEEP).unwrap().before;
    assert_eq!(desk.read("a"), "1");
    desk.turn(&workspace, "a", &["new"]);
    assert!(matches!(workspace.redo(1, KEEP), Err(Error::NothingAfter(0))));
    // Out of reach of redo, yet not lost.
    workspace.restore(&ahead, KEEP).unwrap();
    assert_eq!(desk.read("a"), "3");
    workspace.rewind(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "new");
}

#[test]
fn rewind_reports_and_saves_user_changes_for_redo() {
    let desk = Desk::new();
    let workspace = desk.open("s");
    desk.write("a", "0");
    desk.turn(&workspace, "a", &["1"]);
    desk.write("a", "by hand");
    let refused = workspace.rewind(2, Conflict::Refuse);
    assert!(matches!(refused, Err(Error::Conflict { paths }) if paths == [PathBuf::from("a")]));
    let rewound = workspace.rewind(2, KEEP).unwrap();
    assert_eq!((rewound.theirs, desk.read("a")), (vec![PathBuf::from("a")], "0".to_owned()));
    let made = SnapshotCause::Restored { target: rewound.target, before: rewound.before };
    assert_eq!(workspace.get(&rewound.after).unwrap().made, made);
    let redone = workspace.redo(1, KEEP).unwrap();
    assert_eq!((redone.theirs, desk.read("a")), (Vec::new(), "by hand".to_owned()));
}

#[test]
fn external_changes_are_those_made_between_turns() {
    let desk = Desk::new();
    let workspace = desk.open("s");
    for name in ["a", "b", "c", "d"] {
        desk.write(name, "0");
    }
    let first = desk.turn(&workspace, "a", &["1"]);
    desk.write("b", "by hand");
    let second = desk.turn(&workspace, "a", &["2"]);
    desk.turn(&workspace, "c", &["3"]);
    let starts = [first.clone(), second.clone()];
    let theirs = |id: &SnapshotId| workspace.external_changes(id, &starts).unwrap();
    assert_eq!(theirs(&second), [""; 0].map(PathBuf::from), "the edit stays where it is");
    assert_eq!(theirs(&first), [PathBuf::from("b")]);
    let refused = workspace.restore_turns(&first, &starts, Conflict::Refuse);
    assert!(matches!(refused, Err(Error::Conflict { paths }) if paths == [PathBuf::from("b")]));
    assert_eq!(desk.read("b"), "by hand");
    let restored = workspace.restore_turns(&first, &starts, KEEP).unwrap();
    assert_eq!(restored.theirs, [PathBuf::from("b")]);
    assert_eq!(
        workspace.restore(&restored.before, Conflict::Refuse).unwrap().theirs,
        [""; 0].map(PathBuf::from)
    );
    assert_eq!(desk.read("b"), "by hand");
    // After a going back, what differs before the next step is the person's, too.
    workspace.restore_turns(&second, &starts, KEEP).unwrap();
    desk.write("d", "by hand");
    desk.turn(&workspace, "a", &["4"]);
    assert_eq!(theirs(&first), ["b", "d"].map(PathBuf::from));
}

#[test]
fn restore_splits_files_that_became_hard_links() {
    let desk = Desk::new();
    let workspace = desk.open("s");
    desk.write("a", "same");
    desk.write("b", "same");
    let apart = workspace.take_snapshot("apart").unwrap().id;
    shell(workspace.root(), "ln -f a b");
    assert_eq!(workspace.list_changes(&apart, Point::Now).unwrap(), []);
    assert!(!workspace.is_at(&apart).unwrap());
    workspace.restore(&apart, KEEP).unwrap();
    assert!(workspace.is_at(&apart).unwrap());
    desk.write("a", "other");
    assert_eq!(desk.read("b"), "same");
}

#[test]
fn diff_since_the_start_of_a_turn_is_shown() {
    let desk = Desk::new();
    let workspace = desk.open("s");
    desk.write("a", "one\n");
    desk.turn(&workspace, "a", &["two\n"]);
    let start = desk.turn(&workspace, "b", &["new\n"]);
    let changes = workspace.list_changes(&start, Point::Now).unwrap();
    let kinds: Vec<_> =
        changes.iter().map(|change| (change.kind, change.kind.status_letter())).collect();
    assert_eq!(kinds, [(ChangeKind::Added, 'A')]);
    let diff = workspace.render_diff(&changes[0]).unwrap();
    assert_eq!(diff, "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+new\n");
}

#[test]
fn session_rewinds_its_own_snapshots_and_reports_changes_of_others() {
    let desk = Desk::new();
    let (mine, yours) = (desk.open("mine"), desk.open("yours"));
    desk.write("a", "0");
    desk.turn(&mine, "a", &["1"]);
    desk.turn(&yours, "a", &["2"]);
    let own = |workspace: &Workspace| workspace.own_snapshots().unwrap();
    let of = |id: &SnapshotId| mine.get(id).unwrap().session.unwrap();
    assert!(own(&mine).iter().all(|id| of(id) == "mine"));
    assert!(own(&yours).iter().all(|id| of(id) == "yours"));
    let rewound = mine.rewind(2, KEEP).unwrap();
    assert_eq!((rewound.theirs, desk.read("a")), (vec![PathBuf::from("a")], "0".to_owned()));
    assert!(matches!(yours.redo(1, KEEP), Err(Error::NothingAfter(0))));
    yours.rewind(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "2");
}

#[test]
fn rewind_stops_at_the_oldest_snapshot_after_pruning() {
    let desk = Desk::new();
    let workspace = desk.open("s");
    for text in ["1", "2", "3"] {
        desk.turn(&workspace, "a", &[text]);
    }
    let limits = gnoma_store::checkpoint::Limits { snapshots: 3, ..Default::default() };
    vault(&desk.folder.path().join("vault"))
        .prune(&limits, &Default::default(), &false.into())
        .unwrap();
    assert!(matches!(workspace.rewind(9, KEEP), Err(Error::NothingBefore(1))));
    workspace.rewind(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "2");
}

#[tokio::test]
async fn checkpointer_gives_an_unchanged_state_the_same_id() {
    let desk = Desk::new();
    let keeper = Checkpointer::start(Arc::new(desk.open("s"))).unwrap();
    keeper.preload_workspace();
    keeper.preload_workspace();
    desk.write("a", "1");
    let one = keeper.save_checkpoint("before".to_owned()).await.unwrap();
    assert_eq!(keeper.save_checkpoint("again".to_owned()).await.unwrap(), one);
    desk.write("a", "2");
    let two = keeper.save_checkpoint("after".to_owned()).await.unwrap();
    assert!(two > one);
    keeper.workspace().rewind(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "1");
    // What is kept after a rewind can be come back to, though it is as it was.
    let three = keeper.save_checkpoint("on".to_owned()).await.unwrap();
    assert!(three > two);
    desk.write("a", "3");
    let rewound = keeper.workspace().rewind(1, KEEP).unwrap();
    assert_eq!((rewound.target.to_string(), desk.read("a")), (three, "1".to_owned()));
    fs::remove_dir_all(desk.folder.path().join("work")).unwrap();
    let failed = keeper.save_checkpoint("nothing there".to_owned()).await.unwrap_err();
    assert_eq!(failed.kind, StoreErrorKind::Io);
    assert!(failed.sentence.contains("work"), "{}", failed.sentence);
}

#[tokio::test]
async fn unwritable_checkpoint_vault_is_reported_and_undamaged() {
    let desk = Desk::new();
    let vault = desk.folder.path().join("vault");
    desk.write("a", "1");
    let keeper = Checkpointer::start(Arc::new(desk.open("s"))).unwrap();
    let one = keeper.save_checkpoint("one".to_owned()).await.unwrap();
    shell(&vault, "chmod 500 unfinished");
    if fs::write(vault.join("unfinished/probe"), "").is_ok() {
        // An administrator writes everywhere.
        return;
    }
    desk.write("a", "2");
    let failed = keeper.save_checkpoint("two".to_owned()).await.unwrap_err();
    assert_eq!(failed.kind, StoreErrorKind::ReadOnly);
    assert!(failed.sentence.contains("permissions"), "{}", failed.sentence);
    shell(&vault, "chmod 700 unfinished");
    let two = keeper.save_checkpoint("two".to_owned()).await.unwrap();
    for (id, text) in [(one, "1"), (two, "2")] {
        keeper.workspace().restore(&id.parse().unwrap(), KEEP).unwrap();
        assert_eq!(desk.read("a"), text);
    }
}

#[test]
fn dropped_checkpointer_stops_at_once_and_the_next_one_works() {
    let desk = Desk::new();
    for number in 0..4_000 {
        desk.write(&format!("f{number}"), &number.to_string());
    }
    let keeper = Checkpointer::start(Arc::new(desk.open("s"))).unwrap();
    let begun = Instant::now();
    keeper.preload_workspace();
    drop(keeper.save_checkpoint("never".to_owned()));
    drop(keeper);
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(desk.open("s").take_snapshot("all").unwrap().changed, 4_000);
}

#[test]
fn many_processes_snapshot_one_workspace() {
    const PROCESSES: usize = 6;
    const KEPT: usize = 20;
    let desk = Desk::new();
    std::thread::scope(|scope| {
        for number in 0..PROCESSES {
            let desk = &desk;
            scope.spawn(move || {
                let workspace = desk.open(&format!("s{number}"));
                let mut last = None;
                for text in 0..KEPT {
                    desk.write(&format!("f{number}"), &text.to_string());
                    let taken = workspace.take_snapshot("x").unwrap();
                    assert!(last < Some(taken.id.clone()));
                    last = Some(taken.id);
                }
            });
        }
    });
    for number in 0..PROCESSES {
        let workspace = desk.open(&format!("s{number}"));
        let past = workspace.past_snapshots().unwrap();
        assert_eq!(past.len(), KEPT);
        workspace.restore(&past[KEPT / 2], KEEP).unwrap();
        assert_eq!(desk.read(&format!("f{number}")), (KEPT / 2).to_string());
    }
}
