//! Rewind, redo and changes as the commands use them, and the engine's port.

use std::{
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use gnoma_core::{
    message::{Content, Message},
    store::{Checkpoints, Entry, EntryId, Record, StoreErrorKind},
};
use gnoma_store::checkpoint::{
    Back, ChangeKind, Conflict, Error, Keeper, Made, Point, SnapshotId, Workspace, turn_starts,
};

use crate::checkpoint_support::{shell, vault};

struct Desk {
    folder: tempfile::TempDir,
    entries: Vec<Entry>,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder, entries: Vec::new() }
    }

    fn open(&self, session: &str) -> Workspace {
        let vault = vault(&self.folder.path().join("vault"));
        let workspace = vault.workspace(&self.folder.path().join("work")).unwrap();
        workspace.set_session(Some(session));
        workspace
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join("work").join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join("work").join(name)).unwrap_or_default()
    }

    fn log(&mut self, record: Record) {
        let number = self.entries.len() as i64;
        let parent = number.checked_sub(1).filter(|before| *before >= 0).map(EntryId);
        self.entries.push(Entry { id: EntryId(number), parent, at_ms: number, record });
    }

    /// A turn that writes each of `texts` to the file, as the engine would have it kept.
    fn turn(&mut self, workspace: &Workspace, name: &str, texts: &[&str]) {
        let said = Message::user(vec![Content::text("go on")]).unwrap();
        self.log(Record::Message(Arc::new(said)));
        for text in texts {
            let id = workspace.snapshot("before a tool").unwrap().id.to_string();
            self.log(Record::Checkpoint { id });
            self.write(name, text);
        }
        let id = workspace.snapshot("end of the turn").unwrap().id.to_string();
        self.log(Record::Checkpoint { id });
    }
}

const KEEP: Conflict = Conflict::KeepTheirs;

#[test]
fn turns_are_rewound_and_redone() {
    let mut desk = Desk::new();
    let workspace = desk.open("s");
    desk.write("a", "0");
    desk.turn(&workspace, "a", &["1", "2"]);
    desk.turn(&workspace, "a", &[]);
    desk.turn(&workspace, "a", &["3"]);
    let starts = turn_starts(&desk.entries);
    let turns = |count| Back::Turns { count, starts: &starts };
    workspace.rewind(turns(1), KEEP).unwrap();
    assert_eq!(desk.read("a"), "2");
    // The turn that changed nothing is no step.
    workspace.rewind(turns(1), KEEP).unwrap();
    assert_eq!(desk.read("a"), "0");
    assert!(matches!(workspace.rewind(turns(1), KEEP), Err(Error::NothingBefore(0))));
    assert!(matches!(workspace.redo(3, KEEP), Err(Error::NothingAfter(2))));
    // Another process takes it up.
    let workspace = desk.open("s");
    workspace.redo(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "2");
    workspace.redo(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "3");
    assert!(matches!(workspace.redo(1, KEEP), Err(Error::NothingAfter(0))));
    workspace.rewind(turns(2), KEEP).unwrap();
    assert_eq!(desk.read("a"), "0");
    workspace.redo(1, KEEP).unwrap();
    assert_eq!(desk.read("a"), "3");
    workspace.rewind(Back::States(2), KEEP).unwrap();
    assert_eq!(desk.read("a"), "1");
    let ahead = workspace.history().unwrap();
    desk.turn(&workspace, "a", &["new"]);
    assert!(matches!(workspace.redo(1, KEEP), Err(Error::NothingAfter(0))));
    // Out of reach of redo, yet not lost.
    workspace.restore(ahead.future().first().unwrap(), KEEP).unwrap();
    assert_eq!(desk.read("a"), "3");
    workspace.rewind(Back::States(1), KEEP).unwrap();
    assert_eq!(desk.read("a"), "new");
}

#[test]
fn the_persons_change_is_said_kept_and_brought_back() {
    let mut desk = Desk::new();
    let workspace = desk.open("s");
    desk.write("a", "0");
    desk.turn(&workspace, "a", &["1"]);
    desk.write("a", "by hand");
    let starts = turn_starts(&desk.entries);
    let back = Back::Turns { count: 1, starts: &starts };
    let refused = workspace.rewind(back, Conflict::Refuse);
    assert!(matches!(refused, Err(Error::Conflict { paths }) if paths == [PathBuf::from("a")]));
    let rewound = workspace.rewind(back, KEEP).unwrap();
    assert_eq!((rewound.theirs, desk.read("a")), (vec![PathBuf::from("a")], "0".to_owned()));
    let made = Made::Restored { target: rewound.target, before: rewound.before };
    assert_eq!(workspace.get(&rewound.after).unwrap().made, made);
    let redone = workspace.redo(1, KEEP).unwrap();
    assert_eq!((redone.theirs, desk.read("a")), (Vec::new(), "by hand".to_owned()));
}

#[test]
fn changes_since_a_turn_began_are_shown() {
    let mut desk = Desk::new();
    let workspace = desk.open("s");
    desk.write("a", "one\n");
    desk.turn(&workspace, "a", &["two\n"]);
    desk.turn(&workspace, "b", &["new\n"]);
    let starts = turn_starts(&desk.entries);
    let changes = workspace.changes(starts.last().unwrap(), Point::Now).unwrap();
    let kinds: Vec<_> = changes.iter().map(|change| (change.kind, change.kind.letter())).collect();
    assert_eq!(kinds, [(ChangeKind::Added, 'A')]);
    let diff = workspace.diff(&changes[0]).unwrap();
    assert_eq!(diff, "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+new\n");
}

#[test]
fn sessions_rewind_their_own_and_say_what_was_the_others() {
    let mut desk = Desk::new();
    let (mine, yours) = (desk.open("mine"), desk.open("yours"));
    desk.write("a", "0");
    desk.turn(&mine, "a", &["1"]);
    desk.turn(&yours, "a", &["2"]);
    assert_eq!(mine.latest_session().unwrap().as_deref(), Some("yours"));
    let own = |workspace: &Workspace| workspace.history().unwrap().past().to_vec();
    let of = |id: &SnapshotId| mine.get(id).unwrap().session.unwrap();
    assert!(own(&mine).iter().all(|id| of(id) == "mine"));
    assert!(own(&yours).iter().all(|id| of(id) == "yours"));
    let rewound = mine.rewind(Back::States(2), KEEP).unwrap();
    assert_eq!((rewound.theirs, desk.read("a")), (vec![PathBuf::from("a")], "0".to_owned()));
    assert!(matches!(yours.redo(1, KEEP), Err(Error::NothingAfter(0))));
    yours.rewind(Back::States(1), KEEP).unwrap();
    assert_eq!(desk.read("a"), "2");
}

#[test]
fn a_pruned_past_ends_earlier() {
    let mut desk = Desk::new();
    let workspace = desk.open("s");
    for text in ["1", "2", "3"] {
        desk.turn(&workspace, "a", &[text]);
    }
    let limits = gnoma_store::checkpoint::Limits { snapshots: 3, ..Default::default() };
    vault(&desk.folder.path().join("vault")).prune(&limits, &Default::default()).unwrap();
    assert!(matches!(workspace.rewind(Back::States(9), KEEP), Err(Error::NothingBefore(1))));
    workspace.rewind(Back::States(1), KEEP).unwrap();
    assert_eq!(desk.read("a"), "2");
}

#[tokio::test]
async fn the_port_names_states_and_names_the_same_state_once() {
    let desk = Desk::new();
    let keeper = Keeper::start(Arc::new(desk.open("s"))).unwrap();
    keeper.prepare();
    keeper.prepare();
    desk.write("a", "1");
    let one = keeper.keep("before".to_owned()).await.unwrap();
    assert_eq!(keeper.keep("again".to_owned()).await.unwrap(), one);
    desk.write("a", "2");
    let two = keeper.keep("after".to_owned()).await.unwrap();
    assert!(two > one);
    keeper.ask(|workspace| workspace.rewind(Back::States(1), KEEP)).await.unwrap();
    assert_eq!(desk.read("a"), "1");
    // What is kept after a rewind can be come back to, though it is as it was.
    let three = keeper.keep("on".to_owned()).await.unwrap();
    assert!(three > two);
    desk.write("a", "3");
    let rewound = keeper.ask(|workspace| workspace.rewind(Back::States(1), KEEP)).await.unwrap();
    assert_eq!((rewound.target.to_string(), desk.read("a")), (three, "1".to_owned()));
    fs::remove_dir_all(desk.folder.path().join("work")).unwrap();
    let failed = keeper.keep("nothing there".to_owned()).await.unwrap_err();
    assert_eq!(failed.kind, StoreErrorKind::Io);
    assert!(failed.sentence.contains("work"), "{}", failed.sentence);
}

#[tokio::test]
async fn a_vault_that_cannot_be_written_to_is_said_and_unharmed() {
    let desk = Desk::new();
    let vault = desk.folder.path().join("vault");
    desk.write("a", "1");
    let keeper = Keeper::start(Arc::new(desk.open("s"))).unwrap();
    let one = keeper.keep("one".to_owned()).await.unwrap();
    shell(&vault, "chmod 500 unfinished");
    if fs::write(vault.join("unfinished/probe"), "").is_ok() {
        // An administrator writes everywhere.
        return;
    }
    desk.write("a", "2");
    let failed = keeper.keep("two".to_owned()).await.unwrap_err();
    assert_eq!(failed.kind, StoreErrorKind::ReadOnly);
    assert!(failed.sentence.contains("permissions"), "{}", failed.sentence);
    shell(&vault, "chmod 700 unfinished");
    let two = keeper.keep("two".to_owned()).await.unwrap();
    for (id, text) in [(one, "1"), (two, "2")] {
        let id = id.parse().unwrap();
        keeper.ask(move |workspace| workspace.restore(&id, KEEP)).await.unwrap();
        assert_eq!(desk.read("a"), text);
    }
}

#[test]
fn a_dropped_keeper_stops_at_once_and_the_next_goes_on() {
    let desk = Desk::new();
    for number in 0..4_000 {
        desk.write(&format!("f{number}"), &number.to_string());
    }
    let keeper = Keeper::start(Arc::new(desk.open("s"))).unwrap();
    let begun = Instant::now();
    keeper.prepare();
    drop(keeper.keep("never".to_owned()));
    drop(keeper);
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(desk.open("s").snapshot("all").unwrap().changed, 4_000);
}

#[test]
fn many_processes_keep_one_workspace() {
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
                    let taken = workspace.snapshot("x").unwrap();
                    assert!(last < Some(taken.id.clone()));
                    last = Some(taken.id);
                }
            });
        }
    });
    for number in 0..PROCESSES {
        let workspace = desk.open(&format!("s{number}"));
        let history = workspace.history().unwrap();
        assert_eq!(history.past().len(), KEPT);
        workspace.restore(&history.past()[KEPT / 2], KEEP).unwrap();
        assert_eq!(desk.read(&format!("f{number}")), (KEPT / 2).to_string());
    }
}
