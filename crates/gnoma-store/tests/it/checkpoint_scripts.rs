//! Random scripts of what tools and people do to files; whatever they do can be rewound and redone.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gnoma_store::checkpoint::{Conflict, History, SnapshotId, Step, Workspace};

use crate::checkpoint_support::{
    Dice, Seen, difference, look, look_at_git, often, quick, shell, vault,
};

/// Scripts of an ordinary run, and of a thorough one.
const SCRIPTS: u64 = 60;

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
        8 => format!("chmod {} {name}", dice.pick(&["755", "644", "600", "700", "4711", "1777"])),
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

struct Script {
    root: PathBuf,
    workspace: Workspace,
    history: History,
    states: BTreeMap<SnapshotId, BTreeMap<PathBuf, Seen>>,
}

impl Script {
    fn snapshot(&mut self, label: &str) -> SnapshotId {
        let id = self.workspace.snapshot(label).unwrap().id;
        self.states.insert(id.clone(), look(&self.root));
        id
    }

    fn restore(&mut self, id: &SnapshotId) -> SnapshotId {
        let git = look_at_git(&self.root);
        let now = look(&self.root);
        let restored = self.workspace.restore(id, Conflict::KeepTheirs).unwrap();
        assert_eq!(restored.left, [], "{id}");
        assert_eq!(difference(&look(&self.root), &self.states[id]), [""; 0], "restoring {id}");
        assert_eq!(look_at_git(&self.root), git);
        self.states.insert(restored.before.clone(), now);
        self.states.insert(restored.after, look(&self.root));
        restored.before
    }
}

fn play(seed: u64, folder: &Path, is_repository: bool, watch: bool) {
    let mut dice = Dice(seed);
    let root = folder.join("work");
    fs::create_dir(&root).unwrap();
    if is_repository {
        shell(&root, "git init -q; git config user.email a@b; git config user.name n");
        shell(&root, "seq 9 > a; mkdir sub; seq 99 > sub/e; git add -A; git commit -qm one");
        shell(&root, "seq 7 > a; rm sub/e; git add -A; git commit -qm two");
    }
    let mut options = quick();
    options.watch = watch;
    // Ignored files are to be brought back here, however large.
    options.limits.ignored_file_bytes = 16 << 20;
    let vault = gnoma_store::checkpoint::Vault::open(&folder.join("vault"), options).unwrap();
    let workspace = vault.workspace(&root).unwrap();
    let (history, states) = (History::default(), BTreeMap::new());
    let mut script = Script { root: root.clone(), workspace, history, states };
    for number in 0..STEPS {
        let id = script.snapshot(&format!("step {number}"));
        script.history.record(id);
        shell(&root, &step(&mut dice, number));
    }
    script.snapshot("end");
    for _ in 0..STEPS {
        let (is_back, count) = (dice.roll(2) == 0, 1 + dice.roll(5) as usize);
        let way = Step { is_back, count };
        if let Some(target) = script.history.target(way).cloned() {
            let before = script.restore(&target);
            script.history = script.history.after(way, before);
        }
        if dice.roll(4) == 0 {
            // Somebody works on without asking.
            shell(&root, &step(&mut dice, 99));
        }
    }
    let ids: Vec<_> = script.states.keys().cloned().collect();
    for _ in 0..6 {
        let id = &ids[dice.roll(ids.len() as u64) as usize];
        script.restore(id);
    }
}

fn play_all(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        println!("script {seed}");
        let folder = tempfile::tempdir().unwrap();
        let done = std::panic::catch_unwind(|| {
            play(seed, folder.path(), seed % 2 == 0, seed % 3 != 0);
        });
        shell(folder.path(), "chmod -R u+rwX .");
        assert!(done.is_ok(), "script {seed}");
    }
}

#[test]
fn whatever_scripts_do_is_rewound_and_redone_byte_for_byte() {
    play_all(0..often("GNOMA_STORE_SCRIPTS", SCRIPTS));
}

#[test]
fn names_need_not_be_text() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("work");
    fs::create_dir(&root).unwrap();
    let odd = root.join(OsStr::from_bytes(b"\xff\xfe\n\x01"));
    fs::write(&odd, "kept").unwrap();
    let workspace = vault(&folder.path().join("vault")).workspace(&root).unwrap();
    let id = workspace.snapshot("odd").unwrap().id;
    fs::remove_file(&odd).unwrap();
    workspace.restore(&id, Conflict::KeepTheirs).unwrap();
    assert_eq!(fs::read(&odd).unwrap(), b"kept");
}
