//! Random scripts of what tools and people do to files; whatever they do can be rewound and redone.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use gnoma_store::checkpoint::{
    Conflict, Error, RestoreReport, SnapshotId, UnrestoredPath, Workspace,
};

use crate::checkpoint_support::{
    Dice, Seen, difference, look_at_git, look_without, often, quick, shell, vault,
};

/// Scripts of an ordinary run.
const SCRIPTS: u64 = 20;

/// Files of an ordinary run among many.
const FILES: u64 = 600;

const STEPS: u64 = 14;

/// Names that scripts draw from; few, so that they meet often.
const NAMES: [&str; 12] = [
    "a",
    "b",
    "c.txt",
    "d",
    "sub/e",
    "sub/f",
    "sub/deep/g",
    "sub",
    "sub/deep",
    "ü ñ",
    "- odd 'q'",
    "line\nbreak",
];

/// Modes that scripts draw from.
const MODES: [&str; 6] = ["755", "644", "600", "700", "4711", "1777"];

fn quoted(name: &str) -> String {
    format!("'./{}'", name.replace('\'', r"'\''"))
}

/// One step of a script, as a shell command.
fn step(dice: &mut Dice, number: u64) -> String {
    let name = quoted(dice.pick(&NAMES));
    let other = quoted(dice.pick(&NAMES));
    let lines = dice.roll(400);
    let parent = format!("mkdir -p \"$(dirname {name})\" \"$(dirname {other})\" 2>/dev/null;");
    let act = match dice.roll(26) {
        0..=2 => format!("seq {number} {lines} > {name}"),
        3 => format!("head -c {} /dev/urandom > {name}", dice.roll(90_000)),
        4 => format!("echo more {number} >> {name}"),
        5 => format!("rm -rf {name}"),
        6 => format!("mv -fT {name} {other}"),
        7 => format!("mv {name} {other}"),
        // Folders stay open to their owner, so that the test can look into them.
        8 => format!("chmod {} {name}; [ -d {name} ] && chmod u+rx {name}", dice.pick(&MODES)),
        9 => format!("ln -sfn {other} {name}"),
        10 => format!("ln -f {name} {other}"),
        11 => format!("mkdir -p {name}; rmdir {other}"),
        12 => format!("sed -i 's/1/x/g' {name}"),
        13 => format!("truncate -s {} {name}", dice.roll(5_000)),
        14 => format!("cp -a {name} {other}"),
        15 => format!("rm -rf {name}; mkdir -p {name}/in/side; echo {number} > {name}/in/file"),
        16 => format!("rm -rf {name}; echo {number} > {name}"),
        17 => "git add -A; git commit -qm step".to_owned(),
        18 => "git checkout -q -f HEAD~1 -- . ; git checkout -q -f HEAD~1".to_owned(),
        19 => "git clean -fdxq".to_owned(),
        20 => format!("tar cf t.tar {name} {other}; rm -rf {name}; tar xf t.tar; rm t.tar"),
        21 => format!("printf '%s' {number} > \"$(printf 'raw\\377\\200')\""),
        22 => format!("mv {name} tmp; mv {other} {name}; mv tmp {other}"),
        23 => format!("printf 'same size %04d' {number} > {name}; touch -d @1000000 {name}"),
        24 => format!("chmod 555 {name}; chmod u-w sub"),
        _ => format!("echo '*.txt' >> .gitignore; head -c 1500000 /dev/zero > {name}"),
    };
    format!("{parent} {act}")
}

/// Where and how a script is played.
#[derive(Clone, Copy)]
struct Setting {
    seed: u64,
    is_repository: bool,
    watch: bool,
    /// Files that lie about beside those of the script.
    others: u64,
    /// Somebody writes to a file all the time.
    grows: bool,
}

/// A file that somebody else writes to.
const GROWING: &str = "growing";

/// Whether it is that file, or what was written to it while it was brought back.
fn is_growing(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(GROWING.as_bytes()))
}

type Tree = BTreeMap<PathBuf, Seen>;

/// What an editor would hold: snapshots behind and ahead, and of these the ones rewinds set out from.
#[derive(Default)]
struct Editor {
    past: Vec<SnapshotId>,
    future: Vec<SnapshotId>,
    rewound: Vec<SnapshotId>,
}

impl Editor {
    fn record(&mut self, id: SnapshotId) {
        self.future.clear();
        self.rewound.clear();
        self.past.push(id);
    }

    fn restored(&mut self, target: &SnapshotId, before: SnapshotId) {
        let (is_back, is_ahead) = (self.past.contains(target), self.future.contains(target));
        if !is_back && !is_ahead {
            return self.record(before);
        }
        let (from, to) = match is_back {
            true => (&mut self.past, &mut self.future),
            false => (&mut self.future, &mut self.past),
        };
        to.push(before.clone());
        while let Some(passed) = from.pop().filter(|id| id != target) {
            to.push(passed);
        }
        if is_back {
            self.rewound.push(before);
        }
        self.rewound.retain(|id| self.future.contains(id));
    }
}

struct Script {
    setting: Setting,
    root: PathBuf,
    workspace: Workspace,
    history: Editor,
    states: BTreeMap<SnapshotId, Tree>,
}

impl Script {
    /// The tree without what nobody can say anything about.
    fn look(&self) -> Tree {
        let mut tree = look_without(&self.root, |path| self.setting.grows && is_growing(path));
        if self.setting.grows {
            // It is one of the names that links have, should a script link it.
            tree.retain(|_, seen| !matches!(seen, Seen::File { links, .. } if links.len() > 1));
        }
        tree
    }

    fn snapshot(&mut self, label: &str) {
        let id = self.workspace.take_snapshot(label).unwrap().id;
        self.states.insert(id.clone(), self.look());
        self.history.record(id);
    }

    /// Restores by whatever way `go` has and compares everything.
    fn restore(&mut self, go: impl FnOnce(&Workspace) -> RestoreReport) -> SnapshotId {
        let git = look_at_git(&self.root);
        let now = self.look();
        let restored = go(&self.workspace);
        let id = restored.target;
        let is_odd = |left: &&UnrestoredPath| self.setting.grows && is_growing(&left.path);
        let left: Vec<_> = restored.left.iter().filter(|left| !is_odd(left)).collect();
        assert!(left.is_empty(), "restoring {id}: {left:?}");
        assert_eq!(difference(&self.look(), &self.states[&id]), [""; 0], "restoring {id}");
        assert_eq!(look_at_git(&self.root), git);
        self.history.restored(&id, restored.before.clone());
        self.states.insert(restored.before, now);
        self.states.insert(restored.after, self.look());
        assert_eq!(self.workspace.past_snapshots().unwrap(), self.history.past);
        id
    }

    /// The snapshot that `count` changes of state along `ids` lead to.
    fn along<'i>(
        &self,
        ids: impl Iterator<Item = &'i SnapshotId>,
        count: usize,
    ) -> Option<SnapshotId> {
        let mut here = self.look();
        let mut distinct = ids.filter(|id| {
            let differs = self.states[id] != here;
            here.clone_from(&self.states[id]);
            differs
        });
        distinct.nth(count - 1).cloned()
    }

    fn rewind(&mut self, count: usize) {
        let wanted = self.along(self.history.past.iter().rev(), count);
        if wanted.is_none() && !self.setting.grows {
            let refused = self.workspace.rewind(count, Conflict::KeepTheirs);
            assert!(matches!(refused, Err(Error::NothingBefore(met)) if met < count));
        } else if let Some(wanted) = wanted {
            let id =
                self.restore(|workspace| workspace.rewind(count, Conflict::KeepTheirs).unwrap());
            assert!(id == wanted || self.setting.grows);
        }
    }

    fn redo(&mut self, count: usize) {
        let wanted = self.along(self.history.rewound.iter().rev(), count);
        if let Some(wanted) = wanted {
            let id = self.restore(|workspace| workspace.redo(count, Conflict::KeepTheirs).unwrap());
            assert!(id == wanted || self.setting.grows);
        }
    }
}

fn make_others(root: &Path, others: u64) {
    for number in 0..others {
        let folder = root.join(format!("others/{}/{}", number / 1_000, number / 40 % 25));
        if number % 40 == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(folder.join(format!("file{number}")), format!("{number}\n").repeat(9)).unwrap();
    }
}

/// What happens to many files at once.
fn stir_others(dice: &mut Dice, others: u64) -> String {
    let part = format!("others/{}", dice.roll(others.div_ceil(1_000).max(1)));
    match dice.roll(5) {
        0 => format!("rm -rf {part}"),
        1 => format!("mv {part} others/moved{}", dice.roll(99)),
        2 => format!("sed -i 's/1/one/' {part}/3/*"),
        3 => format!("chmod -R go-rwx {part}"),
        _ => format!("cp -al {part} others/linked{}", dice.roll(99)),
    }
}

fn play(setting: Setting, folder: &Path) {
    let mut dice = Dice(setting.seed);
    let root = folder.join("work");
    fs::create_dir(&root).unwrap();
    make_others(&root, setting.others);
    if setting.is_repository {
        shell(&root, "git init -q; git config user.email a@b; git config user.name n");
        // It would tidy up in the background, between two looks at what it has.
        shell(&root, "git config gc.auto 0; git config maintenance.auto false");
        shell(&root, "seq 9 > a; mkdir sub; seq 99 > sub/e; git add -A; git commit -qm one");
        shell(&root, "seq 7 > a; rm sub/e; git add -A; git commit -qm two");
    }
    let mut options = quick();
    options.watch = setting.watch;
    // Ignored files are to be brought back here, however large.
    options.limits.ignored_file_bytes = 16 << 20;
    let vault = gnoma_store::checkpoint::Vault::open(&folder.join("vault"), options).unwrap();
    let workspace = vault.open_workspace(&root).unwrap();
    let (history, states) = (Editor::default(), BTreeMap::new());
    let mut script = Script { setting, root: root.clone(), workspace, history, states };
    let act = |dice: &mut Dice, number| {
        shell(&root, &step(dice, number));
        if setting.others > 0 {
            shell(&root, &stir_others(dice, setting.others));
        }
    };
    for number in 0..STEPS {
        script.snapshot(&format!("step {number}"));
        act(&mut dice, number);
    }
    script.snapshot("end");
    for _ in 0..STEPS {
        let count = 1 + dice.roll(5) as usize;
        if dice.roll(2) == 0 {
            script.rewind(count);
        } else {
            script.redo(1 + count / 3);
        }
        if dice.roll(4) == 0 {
            // Somebody works on without asking.
            act(&mut dice, 99);
        }
    }
    let ids: Vec<_> = script.states.keys().cloned().collect();
    for _ in 0..6 {
        let id = &ids[dice.roll(ids.len() as u64) as usize];
        script.restore(|workspace| workspace.restore(id, Conflict::KeepTheirs).unwrap());
    }
}

/// Appends to a file until told to stop; whatever becomes of it.
fn grow(root: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let opened = fs::File::options().append(true).create(true).open(root.join(GROWING));
        for _ in 0..50 {
            drop(opened.as_ref().map(|mut file| file.write_all(b"one more line\n")));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn play_all(settings: impl Iterator<Item = Setting>) {
    for setting in settings {
        println!("script {}", setting.seed);
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(!setting.grows);
        let done = std::thread::scope(|scope| {
            scope.spawn(|| grow(&folder.path().join("work"), &stop));
            let done = std::panic::catch_unwind(|| play(setting, folder.path()));
            stop.store(true, Ordering::Relaxed);
            done
        });
        shell(folder.path(), "chmod -R u+rwX .");
        assert!(done.is_ok(), "script {}", setting.seed);
    }
}

fn setting(seed: u64) -> Setting {
    let (is_repository, watch) = (seed.is_multiple_of(2), !seed.is_multiple_of(3));
    Setting { seed, is_repository, watch, others: 0, grows: false }
}

#[test]
fn random_scripts_are_rewound_and_redone_byte_for_byte() {
    let first = often("GNOMA_FIRST_SCRIPT", 0);
    play_all((first..first + often("GNOMA_SCRIPTS", SCRIPTS)).map(setting));
}

#[test]
fn scripts_among_many_files_are_rewound_and_redone() {
    let others = often("GNOMA_FILES", FILES);
    play_all((0..often("GNOMA_LARGE_SCRIPTS", 2)).map(|seed| Setting { others, ..setting(seed) }));
}

#[test]
fn scripts_beside_a_growing_file_are_rewound_and_redone() {
    let seeds = 0..often("GNOMA_SCRIPTS", SCRIPTS).div_ceil(4);
    play_all(seeds.map(|seed| Setting { grows: true, ..setting(seed) }));
}

#[test]
fn non_utf8_file_names_are_rewound_and_redone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    fs::create_dir(&root).unwrap();
    let odd = root.join(OsStr::from_bytes(b"\xff\xfe\n\x01"));
    fs::write(&odd, "kept").unwrap();
    let workspace = vault(&folder.path().join("vault")).open_workspace(&root).unwrap();
    let id = workspace.take_snapshot("odd").unwrap().id;
    fs::remove_file(&odd).unwrap();
    workspace.restore(&id, Conflict::KeepTheirs).unwrap();
    assert_eq!(fs::read(&odd).unwrap(), b"kept");
}
