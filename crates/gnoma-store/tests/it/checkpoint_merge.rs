//! Several copies of a workspace, worked on side by side, come back into it: nothing is lost, what is at
//! odds is told, and what comes out is what some order of the merges gives.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
    time::Duration,
};

use gnoma_core::merge::merge_texts;
use gnoma_store::checkpoint::{
    Candidate, Conflict, Merge, MergeClash, MergeRevert, SnapshotId, Vault, Workspace,
};

use crate::checkpoint_support::{Dice, look, look_at_git, often, shell, vault};

const RUNS: u64 = 12;
const KILLS: u64 = 12;
const ELFS: u64 = 8;
/// A child that nobody kills ends by itself.
const MAX_STEPS: u64 = 300;

type Files = BTreeMap<String, String>;

struct Place {
    folder: tempfile::TempDir,
    vault: Vault,
    work: Workspace,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let vault = vault(&folder.path().join("vault"));
        let work = vault.open_workspace(&folder.path().join("work")).unwrap();
        Self { folder, vault, work }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn copy(&self, name: &str) -> Copied {
        let root = self.folder.path().join(name);
        fs::create_dir(&root).unwrap();
        let base = self.work.take_snapshot("base").unwrap().id;
        copy_to(&self.work, &base, &root);
        Copied {
            work: self.vault.open_workspace(&root).unwrap(),
            root,
            base,
            name: name.to_owned(),
        }
    }

    fn merge(&self, copy: &Copied) -> Merge {
        self.work.merge(&copy.base, &copy.work, &copy.name).unwrap()
    }
}

struct Copied {
    work: Workspace,
    root: PathBuf,
    base: SnapshotId,
    name: String,
}

impl Copied {
    fn put(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn landed(merge: Merge) -> (SnapshotId, Vec<PathBuf>) {
    match merge {
        Merge::Landed { after, paths, .. } => (after, paths),
        other => panic!("{other:?}"),
    }
}

fn clashes(merge: Merge) -> Vec<(String, MergeClash)> {
    let Merge::Conflict { conflicts, .. } = merge else { panic!("{merge:?}") };
    conflicts.into_iter().map(|it| (it.path.display().to_string(), it.why)).collect()
}

#[test]
fn workspace_copy_equals_the_snapshot_and_its_changes_merge_back() {
    let place = Place::new();
    place.put("src/a", "1\n2\n3\n4\n5\n");
    place.put("script", "run\n");
    fs::set_permissions(place.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("src/a", place.path("link")).unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    let copy = place.copy("copy");
    assert_eq!(look(&copy.root), look(&place.path("")));
    assert_eq!(place.merge(&copy), Merge::Nothing { ignored: Vec::new() });

    copy.put("src/a", "1\n2\n3\n4\nfive\n");
    copy.put("new/deep/b", "new\n");
    let lends = fs::Permissions::from_mode(0o4755);
    fs::set_permissions(copy.root.join("new/deep/b"), lends).unwrap();
    fs::remove_file(copy.root.join("script")).unwrap();
    fs::remove_file(copy.root.join("link")).unwrap();
    symlink("new", copy.root.join("link")).unwrap();
    place.put("src/a", "one\n2\n3\n4\n5\n");
    place.put("mine", "mine\n");
    let (_, paths) = landed(place.merge(&copy));
    let names: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(names, ["link", "new/deep/b", "script", "src/a"]);
    assert_eq!(place.read("src/a"), "one\n2\n3\n4\nfive\n");
    assert_eq!((place.read("new/deep/b"), place.read("mine")), ("new\n".into(), "mine\n".into()));
    assert!(!place.path("script").exists());
    assert_eq!(fs::read_link(place.path("link")).unwrap(), Path::new("new"));
    let mode = fs::metadata(place.path("new/deep/b")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755, "it lends no rights");
}

#[test]
fn merge_conflicts_change_nothing_and_show_both_sides() {
    let place = Place::new();
    for name in ["lines", "gone-here", "gone-there", "mode", "renamed", "kind"] {
        place.put(name, &format!("{name}\n"));
    }
    fs::write(place.path("binary"), [0, 1, 2]).unwrap();
    let copy = place.copy("copy");
    copy.put("lines", "theirs\n");
    copy.put("clean", "clean\n");
    copy.put("added", "theirs\n");
    copy.put("gone-here", "changed\n");
    fs::remove_file(copy.root.join("gone-there")).unwrap();
    fs::write(copy.root.join("binary"), [0, 2]).unwrap();
    fs::rename(copy.root.join("renamed"), copy.root.join("renamed-there")).unwrap();
    fs::remove_file(copy.root.join("kind")).unwrap();
    copy.put("kind/inside", "folder\n");
    let mode = |path: PathBuf, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(copy.root.join("mode"), 0o700);
    mode(place.path("mode"), 0o755);
    place.put("lines", "ours\n");
    place.put("added", "ours\n");
    place.put("gone-there", "changed\n");
    place.put("kind", "changed\n");
    fs::remove_file(place.path("gone-here")).unwrap();
    fs::write(place.path("binary"), [0, 3]).unwrap();
    fs::rename(place.path("renamed"), place.path("renamed-here")).unwrap();
    let before = look(&place.path(""));
    let merge = place.merge(&copy);
    assert_eq!(look(&place.path("")), before, "nothing changed, not even what is clean");
    let Merge::Conflict { conflicts, diff } = &merge else { panic!("{merge:?}") };
    let text = &conflicts.iter().find(|it| it.path == Path::new("lines")).unwrap().text;
    let sides = "<<<<<<< the project now\nours\n||||||| before\nlines\n=======\ntheirs\n>>>>>>>";
    assert!(text.contains(sides), "{text}");
    assert!(diff.contains("+++ b/clean\n") && diff.contains("+clean\n"), "{diff}");
    let expected = [
        ("added", MergeClash::Added),
        ("binary", MergeClash::Binary),
        ("gone-here", MergeClash::RemovedHere),
        ("gone-there", MergeClash::RemovedThere),
        ("kind", MergeClash::Kind),
        ("lines", MergeClash::Lines),
        ("mode", MergeClash::Mode),
        ("renamed", MergeClash::Renamed),
    ];
    assert_eq!(clashes(merge), expected.map(|(name, why)| (name.to_owned(), why)));
}

#[test]
fn workspace_copy_is_rebased_and_lands_only_on_the_state_it_was_built_on() {
    let place = Place::new();
    place.put("a", "1\n");
    place.put("b", "1\n");
    let mut copy = place.copy("copy");
    let look_at =
        |copy: &Copied| place.work.build_candidate(&copy.base, &copy.work, &copy.name).unwrap();
    assert_eq!(look_at(&copy), Candidate::Nothing);
    copy.put("a", "2\n");
    assert_eq!(look_at(&copy), Candidate::Same);

    place.put("b", "2\n");
    place.put("c", "new\n");
    let landing = place.work.merge_checked(&copy.base, &copy.work, "copy").unwrap();
    assert!(matches!(landing, Merge::Moved { ref diff } if diff.contains("+2")), "{landing:?}");
    assert_eq!(place.read("a"), "1\n");
    let Candidate::BroughtUp(base) = look_at(&copy) else { panic!("nothing was brought up") };
    copy.base = base;
    let in_copy = |name: &str| fs::read_to_string(copy.root.join(name)).unwrap();
    assert_eq!(
        (in_copy("a"), in_copy("b"), in_copy("c")),
        ("2\n".into(), "2\n".into(), "new\n".into())
    );
    assert_eq!(place.read("a"), "1\n", "nothing has landed");
    assert_eq!(look_at(&copy), Candidate::Same);
    let (_, paths) = landed(place.work.merge_checked(&copy.base, &copy.work, "copy").unwrap());
    assert_eq!(paths, [PathBuf::from("a")]);

    place.put("a", "here\n");
    copy.put("a", "there\n");
    assert_eq!(look_at(&copy), Candidate::Conflict);
    assert_eq!(
        (place.read("a"), fs::read_to_string(copy.root.join("a")).unwrap()),
        ("here\n".into(), "there\n".into())
    );
}

#[test]
fn merge_follows_a_rename_with_a_change_on_the_other_side() {
    let place = Place::new();
    let lines: String = (0..8).map(|line| format!("line {line}\n")).collect();
    for name in ["here", "there", "both", "dir/in", "gone", "odd"] {
        place.put(name, &format!("{name}\n{lines}"));
    }
    let copy = place.copy("copy");
    let named = |name: &str, last: &str| format!("{name}\n{lines}{last}\n");
    fs::rename(place.path("here"), place.path("here2")).unwrap();
    copy.put("here", &named("here", "theirs"));
    fs::rename(copy.root.join("there"), copy.root.join("there2")).unwrap();
    place.put("there", &named("there", "ours"));
    fs::rename(place.path("dir"), place.path("moved")).unwrap();
    copy.put("dir/in", &named("dir/in", "theirs"));
    let (_, paths) = landed(place.merge(&copy));
    assert_eq!(place.read("here2"), named("here", "theirs"));
    assert_eq!(place.read("there2"), named("there", "ours"));
    assert_eq!(place.read("moved/in"), named("dir/in", "theirs"));
    assert!(!["here", "there", "dir"].iter().any(|name| place.path(name).exists()), "{paths:?}");

    let copy = place.copy("other");
    fs::rename(place.path("both"), place.path("ours")).unwrap();
    fs::rename(copy.root.join("both"), copy.root.join("theirs")).unwrap();
    fs::remove_file(place.path("gone")).unwrap();
    fs::rename(copy.root.join("gone"), copy.root.join("gone2")).unwrap();
    fs::remove_file(place.path("odd")).unwrap();
    place.put("odd2", &named("odd", "ours"));
    copy.put("odd", &named("odd", "theirs"));
    let Merge::Conflict { conflicts, .. } = place.merge(&copy) else { panic!() };
    let told: Vec<_> = conflicts.iter().map(|it| (it.path.to_str().unwrap(), it.why)).collect();
    let expected = [
        ("both", MergeClash::Renamed),
        ("gone", MergeClash::RemovedHere),
        ("odd", MergeClash::RenamedHere),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        conflicts[0].text,
        "in the project it is now `ours`\nin the copy it is now `theirs`\n"
    );
    assert!(conflicts[2].text.starts_with("in the project it is now `odd2`\n"), "{conflicts:?}");
}

#[test]
fn merge_excludes_gitignored_and_build_output_files() {
    let place = Place::new();
    shell(&place.path(""), "git init -q . && git config user.email a@b && git config user.name a");
    place.put(".gitignore", "*.log\ntarget\nout/\n");
    place.put("kept", "1\n");
    place.put("target/built", "here\n");
    place.put("old.log", "old\n");
    shell(
        &place.path(""),
        "git add -A && git commit -qm one && git stash -q; echo 2 >>kept; git add kept",
    );
    let git = look_at_git(&place.path(""));
    let copy = place.copy("copy");
    assert!(!copy.root.join("target").exists() && !copy.root.join(".git").exists());
    copy.put("run.log", "log\n");
    copy.put("old.log", "changed\n");
    copy.put("target/built", "there\n");
    copy.put("out/x", "x\n");
    copy.put("new", "new\n");
    let Merge::Landed { paths, ignored, .. } = place.merge(&copy) else { panic!() };
    assert_eq!(paths, [Path::new("new")]);
    assert_eq!(ignored, ["old.log", "out/x", "run.log"].map(PathBuf::from));
    assert_eq!(
        (place.read("target/built"), place.read("old.log")),
        ("here\n".into(), "old\n".into())
    );
    assert_eq!(look_at_git(&place.path("")), git, "nothing of git was touched");
}

#[test]
fn merge_of_a_deleted_workspace_copy_changes_nothing() {
    let place = Place::new();
    place.put("a", "a\n");
    let copy = place.copy("copy");
    fs::remove_file(copy.root.join("a")).unwrap();
    assert!(place.work.merge(&copy.base, &copy.work, "copy").is_err(), "emptied");
    fs::remove_dir(&copy.root).unwrap();
    assert!(place.work.merge(&copy.base, &copy.work, "copy").is_err(), "removed");
    assert_eq!(place.read("a"), "a\n");
}

#[test]
fn merge_can_be_rewound_redone_and_reverted_alone() {
    let place = Place::new();
    place.put("a", "a\n");
    place.put("b", "b\n");
    let start = place.work.take_snapshot("start").unwrap().id;
    let (one, two) = (place.copy("one"), place.copy("two"));
    one.put("a", "one\n");
    one.put("new/c", "one\n");
    two.put("b", "two\n");
    let (one, _) = landed(place.merge(&one));
    landed(place.merge(&two));
    assert_eq!(place.work.find_merge("one").unwrap(), Some(one.clone()));
    let MergeRevert::Target(target) = place.work.state_without_merge(&one).unwrap() else {
        panic!()
    };
    let back = place.work.restore(&target, Conflict::Refuse).unwrap();
    assert_eq!((place.read("a"), place.read("b")), ("a\n".into(), "two\n".into()));
    assert!(!place.path("new").exists());
    place.work.restore(&back.before, Conflict::Refuse).unwrap();
    assert_eq!((place.read("a"), place.read("b")), ("one\n".into(), "two\n".into()));

    place.put("new/c", "mine\n");
    let without = place.work.state_without_merge(&one).unwrap();
    assert_eq!(without, MergeRevert::Changed(vec!["new/c".into()]));
    place.work.take_snapshot("end").unwrap();
    let restored = place.work.restore(&start, Conflict::KeepTheirs).unwrap();
    assert_eq!(restored.theirs, [Path::new("new/c")], "merges are the session's own");
    assert_eq!((place.read("a"), place.read("b")), ("a\n".into(), "b\n".into()));
}

/// The new name that a file has on one side, where it was renamed and nothing else.
fn renamed(base: &Files, side: &Files, name: &str) -> Option<String> {
    let text = base.get(name).filter(|text| !text.is_empty() && !side.contains_key(name))?;
    let mut new = side.iter().filter(|(new, has)| !base.contains_key(*new) && *has == text);
    let found = new.next().map(|(new, _)| new.clone());
    found.filter(|_| new.next().is_none())
}

/// What a merge of simple files gives; `None` where the sides are at odds.
fn oracle(base: &Files, ours: &Files, theirs: &Files) -> Option<Files> {
    let mut merge = ours.clone();
    // A file that one side has renamed is the same file for the other.
    let (mut base, mut theirs) = (base.clone(), theirs.clone());
    for name in base.clone().keys() {
        let (here, there) = (renamed(&base, ours, name), renamed(&base, &theirs, name));
        match (here, there) {
            (Some(here), None) if theirs.contains_key(name) && !theirs.contains_key(&here) => {
                let was = base.remove(name)?;
                base.insert(here.clone(), was);
                let their = theirs.remove(name)?;
                theirs.insert(here, their);
            }
            (None, Some(there)) if ours.contains_key(name) && !ours.contains_key(&there) => {
                let was = base.remove(name)?;
                base.insert(there.clone(), was);
                let our = merge.remove(name)?;
                merge.insert(there, our);
            }
            _ => (),
        }
    }
    let (base, theirs, ours) = (&base, &theirs, &merge.clone());
    let new = |files: &Files, text: &str| -> Vec<String> {
        let is_new = |(name, has): &(&String, &String)| !base.contains_key(*name) && *has == text;
        files.iter().filter(is_new).map(|(name, _)| name.clone()).collect()
    };
    for name in base.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let (was, our, their) = (base.get(name), ours.get(name), theirs.get(name));
        if let (Some(was), None, None) = (was, our, their) {
            let (here, there) = (new(ours, was), new(theirs, was));
            if !here.is_empty() && !there.is_empty() && here != there {
                return None;
            }
        }
        let text = match (was, our, their) {
            _ if was == their || our == their => continue,
            _ if our == was => their.cloned(),
            (Some(was), Some(our), Some(their)) => Some(merge_texts(was, our, their, None).ok()?),
            _ => return None,
        };
        match text {
            Some(text) => drop(merge.insert(name.clone(), text)),
            None => drop(merge.remove(name)),
        }
    }
    Some(merge)
}

fn files(root: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.insert(name, fs::read_to_string(path).unwrap());
        }
    }
    files
}

/// Changes some files at random; every line that is new is like no other.
fn change(root: &Path, who: &str, dice: &mut Dice) {
    for step in 0..=dice.roll(3) {
        let names: Vec<String> = files(root).into_keys().collect();
        let Some(name) = names.get(dice.roll(names.len().max(1) as u64) as usize) else { return };
        let path = root.join(name);
        match dice.roll(10) {
            0 => fs::remove_file(path).unwrap(),
            1 => fs::rename(&path, root.join(format!("{who}-{step}"))).unwrap(),
            2 => {
                let new = root.join(format!("new{}/{who}-{step}", dice.roll(2)));
                fs::create_dir_all(new.parent().unwrap()).unwrap();
                fs::write(new, format!("{who} {step} new\n")).unwrap();
            }
            kind => {
                let text = fs::read_to_string(&path).unwrap();
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                let at = dice.roll(lines.len() as u64 + 1) as usize;
                let new = format!("{who} {step} {kind}");
                match (kind, lines.get_mut(at)) {
                    (3..=5, Some(line)) => *line = new,
                    (6, Some(_)) => drop(lines.remove(at)),
                    _ => lines.insert(at, new),
                }
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                fs::write(path, text).unwrap();
            }
        }
    }
}

/// One run: elfs begin at several moments, the person works as well, and all are merged at once.
fn run(seed: u64) -> (usize, usize) {
    let mut dice = Dice(seed);
    let place = Place::new();
    for file in 0..6 {
        let text: String = (0..12).map(|line| format!("file {file} line {line}\n")).collect();
        place.put(&format!("folder{}/file{file}", file % 2), &text);
    }
    let mut copies = Vec::new();
    for elf in 0..ELFS {
        let copy = place.copy(&format!("elf{elf}"));
        let base = files(&copy.root);
        change(&copy.root, &copy.name, &mut dice);
        let theirs = files(&copy.root);
        copies.push((copy, base, theirs));
        if dice.roll(4) == 0 {
            change(&place.path(""), &format!("person{elf}"), &mut dice);
        }
    }
    let mut now = files(&place.path(""));
    let outcomes: Vec<Merge> = std::thread::scope(|scope| {
        let place = &place;
        let merging: Vec<_> =
            copies.iter().map(|(copy, ..)| scope.spawn(move || place.merge(copy))).collect();
        merging.into_iter().map(|merge| merge.join().unwrap()).collect()
    });
    let mut order: Vec<(&SnapshotId, usize)> = Vec::new();
    let mut conflicts = 0;
    for (elf, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Merge::Landed { after, .. } => order.push((after, elf)),
            Merge::Nothing { .. } => {}
            Merge::Moved { .. } => panic!("seed {seed}: nothing was checked"),
            Merge::Conflict { conflicts: told, diff } => {
                assert!(!told.is_empty() && !diff.is_empty(), "seed {seed}");
                conflicts += 1;
            }
        }
    }
    order.sort();
    for (_, elf) in &order {
        let (_, base, theirs) = &copies[*elf];
        now = oracle(base, &now, theirs).unwrap_or_else(|| panic!("seed {seed}: elf {elf}"));
    }
    assert_eq!(files(&place.path("")), now, "seed {seed}");
    // Nothing of who was at odds is there.
    let all: String = now.values().map(String::as_str).collect();
    for (elf, outcome) in outcomes.iter().enumerate() {
        let own = format!("elf{elf} ");
        if matches!(outcome, Merge::Conflict { .. }) {
            assert!(!all.contains(&own), "seed {seed}: half of elf {elf}");
        }
    }
    (order.len(), conflicts)
}

#[test]
fn parallel_elf_merges_lose_nothing_and_equal_some_serial_order() {
    let (mut landed, mut conflicts) = (0, 0);
    for seed in 0..often("GNOMA_MERGES", RUNS) {
        let (more, at_odds) = run(seed);
        (landed, conflicts) = (landed + more, conflicts + at_odds);
    }
    println!("{landed} landed, {conflicts} at odds");
    assert!(landed > 0 && conflicts > 0);
}

/// Prints how long it takes; `GNOMA_COPIED` says of how many files.
#[test]
fn a_large_workspace_is_copied_and_merged() {
    let count = often("GNOMA_COPIED", 300);
    let place = Place::new();
    for file in 0..count {
        place.put(&format!("f{}/{file}", file / 100), &format!("{file}\n").repeat(40));
    }
    let timed = |what: &str, began: std::time::Instant| println!("{what}: {:?}", began.elapsed());
    let began = std::time::Instant::now();
    place.work.take_snapshot("first").unwrap();
    timed("the first checkpoint", began);
    let began = std::time::Instant::now();
    let copy = place.copy("copy");
    timed("the copy", began);
    copy.put("f0/0", "changed\n");
    let began = std::time::Instant::now();
    landed(place.merge(&copy));
    timed("the merge", began);
    assert_eq!(place.read("f0/0"), "changed\n");
}

fn copy_to(work: &Workspace, base: &SnapshotId, root: &Path) {
    let room = work.reserve_room(base, root).unwrap();
    work.copy_to(base, root, &room, &AtomicBool::new(false)).unwrap();
}

#[test]
fn cancelled_workspace_copy_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (root, copy) = (folder.path().join("work"), folder.path().join("copy"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&copy).unwrap();
    fs::write(root.join("file"), "x").unwrap();
    let work = vault(&folder.path().join("vault")).open_workspace(&root).unwrap();
    let base = work.take_snapshot("base").unwrap().id;
    let room = work.reserve_room(&base, &copy).unwrap();
    assert!(work.copy_to(&base, &copy, &room, &AtomicBool::new(true)).is_err());
    assert_eq!(fs::read_dir(&copy).unwrap().count(), 0);
}

/// Does nothing unless it is started beside a job.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn child() {
    let Ok(first) = fs::read_to_string("merge-job") else { return };
    let first: u64 = first.trim().parse().unwrap();
    let vault = vault(Path::new("vault"));
    let work = vault.open_workspace(Path::new("work")).unwrap();
    work.recover_merge().unwrap();
    for number in first..first + MAX_STEPS {
        let root = PathBuf::from(format!("copy{number}"));
        fs::create_dir(&root).unwrap();
        let base = work.take_snapshot("base").unwrap().id;
        copy_to(&work, &base, &root);
        for file in 0..8 {
            fs::write(root.join(format!("file{file}")), number.to_string()).unwrap();
        }
        fs::write(root.join(format!("new{}", number % 3)), number.to_string()).unwrap();
        drop(fs::remove_file(root.join(format!("new{}", (number + 1) % 3))));
        let copy = vault.open_workspace(&root).unwrap();
        let merge = work.merge(&base, &copy, "elf").unwrap();
        assert!(matches!(merge, Merge::Landed { .. }), "{merge:?}");
        fs::write("merged", number.to_string()).unwrap();
        copy.forget_folder();
        fs::remove_dir_all(&root).unwrap();
    }
}

#[test]
fn merge_is_completed_or_undone_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("work")).unwrap();
    let mut dice = Dice(7);
    let (mut finished, mut last) = (0, 0_u64);
    for round in 0..often("GNOMA_KILLS", KILLS) {
        let first = (round + 1) * 10_000;
        fs::write(folder.join("merge-job"), first.to_string()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "checkpoint_merge::child", "--test-threads=1"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(15_000 + dice.roll(200_000)));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), None, "the child failed by itself in round {round}");
        let vault = vault(&folder.join("vault"));
        let work = vault.open_workspace(&folder.join("work")).unwrap();
        finished += usize::from(work.recover_merge().unwrap().is_some());
        let texts = files(&folder.join("work")).into_values();
        let mut numbers: BTreeSet<u64> = texts.map(|text| text.parse().unwrap()).collect();
        let done = fs::read_to_string(folder.join("merged")).unwrap_or_default();
        let newest = numbers.pop_last().unwrap_or_default();
        assert!(newest >= done.parse().unwrap_or(0) && newest >= last, "round {round}");
        // The one file that a merge leaves of the one before.
        assert!(numbers.len() <= 1, "round {round}: {newest} and {numbers:?}");
        let names = files(&folder.join("work")).into_keys();
        assert!(names.into_iter().all(|name| !name.starts_with(".gnoma")), "round {round}");
        assert_eq!(work.recover_merge().unwrap(), None);
        last = newest;
        shell(folder, "rm -rf copy*");
    }
    println!("{finished} merges were finished after a kill");
}
