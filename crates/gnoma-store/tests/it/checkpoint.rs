//! What a person sees of checkpoints: what is kept, what is left alone, and what is said.

use std::{
    fs,
    io::Write,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use gnoma_store::checkpoint::{
    ChangeKind, Conflict, Error, Options, Point, Side, SkipCause, UnrestoredReason, Vault,
    Workspace,
};

use crate::checkpoint_support::{Dice, difference, look, quick, shell, vault};

struct Place {
    folder: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        Self { folder, root }
    }

    fn vault(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    fn workspace(&self) -> Workspace {
        vault(&self.vault()).open_workspace(&self.root).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.root.join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn snapshot_changes_list_differing_files_with_diffs() {
    let place = Place::new();
    let workspace = place.workspace();
    place.write("edited", "one\ntwo\n");
    place.write("gone", "x\n");
    place.write("mode", "m\n");
    let id = workspace.take_snapshot("first").unwrap().id;
    place.write("edited", "one\n2\n");
    fs::remove_file(place.root.join("gone")).unwrap();
    place.write("new", "n\n");
    fs::set_permissions(place.root.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    let changes = workspace.list_changes(&id, Point::Now).unwrap();
    let kinds: Vec<_> =
        changes.iter().map(|change| (change.path.to_str().unwrap(), change.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("edited", ChangeKind::Edited),
            ("gone", ChangeKind::Removed),
            ("mode", ChangeKind::Mode),
            ("new", ChangeKind::Added),
        ]
    );
    assert_eq!(
        workspace.render_diff(&changes[0]).unwrap(),
        "--- a/edited\n+++ b/edited\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );
    assert!(workspace.render_diff(&changes[1]).unwrap().starts_with("--- a/gone\n+++ /dev/null\n"));
    assert!(workspace.render_diff(&changes[2]).unwrap().contains("new mode 0755"));
    let second = workspace.take_snapshot("second").unwrap();
    assert_eq!(second.changed, 4);
    assert_eq!(workspace.list_changes(&id, Point::Snapshot(&second.id)).unwrap(), changes);
}

#[test]
fn restore_reports_user_changes_as_conflicts_and_can_undo_them() {
    let place = Place::new();
    let workspace = place.workspace();
    place.write("a", "before\n");
    let id = workspace.take_snapshot("before the tool").unwrap().id;
    place.write("a", "by the tool\n");
    workspace.take_snapshot("after the turn").unwrap();
    place.write("a", "by the person\n");
    place.write("unrelated", "untouched\n");
    let Err(Error::Conflict { paths }) = workspace.restore(&id, Conflict::Refuse) else {
        panic!("the person's change was overwritten");
    };
    assert_eq!(paths, [PathBuf::from("a"), PathBuf::from("unrelated")]);
    assert_eq!(place.read("a"), "by the person\n");
    let restored = workspace.restore(&id, Conflict::KeepTheirs).unwrap();
    assert_eq!(restored.theirs, paths);
    assert_eq!(place.read("a"), "before\n");
    // Right after a restore nothing is the person's.
    let back = workspace.restore(&restored.before, Conflict::Refuse).unwrap();
    assert_eq!(back.theirs, Vec::<PathBuf>::new());
    assert_eq!(place.read("a"), "by the person\n");
}

#[test]
fn another_process_sees_the_same_snapshots() {
    let place = Place::new();
    place.write("a", "1");
    let first = place.workspace();
    let second = place.workspace();
    let one = first.take_snapshot("one").unwrap().id;
    place.write("a", "2");
    let two = second.take_snapshot("two").unwrap();
    assert!(two.id > one);
    place.write("a", "3");
    first.take_snapshot("three").unwrap();
    first.restore(&two.id, Conflict::Refuse).unwrap();
    assert_eq!(place.read("a"), "2");
    second.restore(&one, Conflict::Refuse).unwrap();
    assert_eq!(place.read("a"), "1");
}

#[test]
fn snapshots_of_two_processes_sort_as_they_were_taken() {
    for watch in [true, false] {
        let place = Place::new();
        let seat = || {
            let options = Options { watch, ..quick() };
            Vault::open(&place.vault(), options).unwrap().open_workspace(&place.root).unwrap()
        };
        let seats = [seat(), seat()];
        let mut last = None;
        for number in 0..300 {
            place.write("a", &number.to_string());
            let taken = seats[number % 2].take_snapshot("x").unwrap();
            assert!(last < Some(taken.id.clone()), "{watch} {number}");
            assert_eq!(taken.changed, 1, "{watch} {number}");
            last = Some(taken.id);
        }
    }
}

#[test]
fn restore_reports_damaged_objects_and_never_writes_them() {
    let place = Place::new();
    let mut dice = Dice(1);
    let noise: Vec<u8> = (0..6 << 20).map(|_| dice.roll(256) as u8).collect();
    fs::write(place.root.join("large"), &noise).unwrap();
    fs::write(place.root.join("small"), &noise[..5000]).unwrap();
    let id = place.workspace().take_snapshot("kept").unwrap().id;
    fs::write(place.root.join("large"), "l").unwrap();
    fs::write(place.root.join("small"), "s").unwrap();
    // One bit of each object's bytes.
    for stored in files_below(&place.vault()) {
        if stored.starts_with(place.vault().join("packs"))
            || stored.starts_with(place.vault().join("large"))
        {
            let file = fs::File::options().read(true).write(true).open(stored).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, 2000).unwrap();
            file.write_all_at(&[byte[0] ^ 1], 2000).unwrap();
        }
    }
    let workspace = place.workspace();
    let restored = workspace.restore(&id, Conflict::KeepTheirs).unwrap();
    let damaged: Vec<_> = restored
        .left
        .iter()
        .map(|left| (left.path.to_str().unwrap(), left.why == UnrestoredReason::Damaged))
        .collect();
    assert_eq!(damaged, [("large", true), ("small", true)]);
    assert_eq!((place.read("large"), place.read("small")), ("l".into(), "s".into()));
    assert_eq!(fs::read_dir(&place.root).unwrap().count(), 2);
}

#[test]
fn restore_with_missing_objects_or_unknown_ids_changes_nothing() {
    let place = Place::new();
    place.write("a", "1");
    let workspace = place.workspace();
    let id = workspace.take_snapshot("one").unwrap().id;
    place.write("a", "2");
    for pack in files_below(&place.vault().join("packs")) {
        fs::remove_file(pack).unwrap();
    }
    assert!(matches!(workspace.restore(&id, Conflict::KeepTheirs), Err(Error::Damaged(_))));
    let unknown = "0123456789abcdef".parse().unwrap();
    assert!(matches!(workspace.restore(&unknown, Conflict::KeepTheirs), Err(Error::Unknown(_))));
    assert!("../../etc/passwd".parse::<gnoma_store::checkpoint::SnapshotId>().is_err());
    assert_eq!(place.read("a"), "2");
    // What is there is stored anew, also what the state believed to be stored.
    let id = place.workspace().take_snapshot("again").unwrap().id;
    place.write("a", "3");
    place.workspace().restore(&id, Conflict::KeepTheirs).unwrap();
    assert_eq!(place.read("a"), "2");
}

#[test]
fn checkpoint_vault_of_a_newer_version_is_rejected() {
    let place = Place::new();
    fs::create_dir(place.vault()).unwrap();
    fs::write(place.vault().join("format"), "gnoma checkpoints 2\n").unwrap();
    assert!(matches!(Vault::open(&place.vault(), Options::default()), Err(Error::Newer(_))));
}

#[test]
fn checkpoint_vault_is_readable_by_its_owner_only() {
    let place = Place::new();
    place.write("a", "secret");
    place.workspace().take_snapshot("x").unwrap();
    for path in files_below(&place.vault()) {
        assert_eq!(path.metadata().unwrap().mode() & 0o077, 0, "{}", path.display());
    }
    assert_eq!(place.vault().metadata().unwrap().mode() & 0o777, 0o700);
}

#[test]
fn restore_skips_large_ignored_files_special_files_and_git_state() {
    let place = Place::new();
    place.write(".gitignore", "*.log\nnode_modules/\n!keep.log\n");
    shell(&place.root, "mkfifo pipe; mkdir -p node_modules/x sub/.git; echo 1 > node_modules/x/y");
    shell(&place.root, "echo state > sub/.git/HEAD; echo src > sub/src");
    let large = "x".repeat(2 << 20);
    for name in ["big.log", "keep.log"] {
        place.write(name, &large);
    }
    place.write("small.log", "small");
    let workspace = place.workspace();
    let taken = workspace.take_snapshot("first").unwrap();
    let skipped: Vec<_> =
        taken.skipped.iter().map(|skip| (skip.path.to_str().unwrap(), skip.why)).collect();
    assert_eq!(
        skipped,
        [
            ("big.log", SkipCause::Ignored),
            ("node_modules", SkipCause::Rebuilt),
            ("pipe", SkipCause::Special)
        ]
    );
    place.write("small.log", "changed");
    place.write("keep.log", "changed");
    place.write("big.log", "mine");
    place.write("node_modules/x/y", "2");
    shell(&place.root, "echo moved > sub/.git/HEAD; echo changed > sub/src");
    workspace.restore(&taken.id, Conflict::KeepTheirs).unwrap();
    assert_eq!(place.read("small.log"), "small");
    assert_eq!(place.read("keep.log"), large);
    assert_eq!(place.read("sub/src"), "src\n");
    assert_eq!(place.read("big.log"), "mine");
    assert_eq!(place.read("node_modules/x/y"), "2");
    assert_eq!(place.read("sub/.git/HEAD"), "moved\n");
}

#[test]
fn restore_reports_deleted_files_that_had_no_snapshot() {
    let place = Place::new();
    place.write(".gitignore", "*.bin\n/node_modules\n");
    shell(&place.root, "mkdir -p target node_modules/x sub; echo made > target/made");
    shell(&place.root, "echo 'Signature: 8a477f597d28d172789f06886806bc55' > target/CACHEDIR.TAG");
    for name in ["gone.bin", "small.bin", "sub/big.bin"] {
        place.write(name, &"x".repeat(2 << 20));
    }
    let workspace = place.workspace();
    let taken = workspace.take_snapshot("first").unwrap();
    assert_eq!(taken.skipped_count, 5);
    shell(&place.root, "rm -r gone.bin target node_modules sub; echo now > small.bin; mkfifo pipe");
    let changes = workspace.list_changes(&taken.id, Point::Now).unwrap();
    let told: Vec<_> = changes
        .iter()
        .map(|change| (change.path.to_str().unwrap(), change.kind, change.before.clone()))
        .collect();
    let lost = |name, kind| (name, kind, Some(Side::NotKept));
    assert_eq!(
        told,
        [
            lost("gone.bin", ChangeKind::Removed),
            lost("node_modules", ChangeKind::Removed),
            lost("small.bin", ChangeKind::Edited),
            ("sub", ChangeKind::Removed, Some(Side::Folder { mode: 0o755 })),
            lost("sub/big.bin", ChangeKind::Removed),
            lost("target", ChangeKind::Removed),
        ]
    );
    assert!(workspace.render_diff(&changes[0]).unwrap().contains("not all of it was saved"));
    let restored = workspace.restore(&taken.id, Conflict::KeepTheirs).unwrap();
    let mut left: Vec<_> = restored.left.iter().map(|left| left.path.to_str().unwrap()).collect();
    left.sort_unstable();
    let lost = ["gone.bin", "node_modules", "pipe", "small.bin", "sub/big.bin", "target"];
    assert_eq!(left, lost);
    assert!(restored.left.iter().all(|left| left.why == UnrestoredReason::NotKept));
    assert_eq!(place.read("small.bin"), "now\n");
}

#[test]
fn folder_named_target_or_venv_is_saved_without_build_markers() {
    let place = Place::new();
    shell(
        &place.root,
        "mkdir target venv; echo source > target/a; echo source > venv/CACHEDIR.TAG",
    );
    let workspace = place.workspace();
    let taken = workspace.take_snapshot("first").unwrap();
    assert_eq!(taken.skipped, []);
    shell(&place.root, "rm -r target venv");
    workspace.restore(&taken.id, Conflict::KeepTheirs).unwrap();
    assert_eq!(place.read("target/a"), "source\n");
    assert_eq!(place.read("venv/CACHEDIR.TAG"), "source\n");
}

#[test]
fn restore_does_not_remove_folders_with_unsaved_content() {
    let place = Place::new();
    let workspace = place.workspace();
    let empty = workspace.take_snapshot("empty").unwrap().id;
    shell(&place.root, "mkdir -p made/.git; echo x > made/file; echo y > made/.git/HEAD");
    let restored = workspace.restore(&empty, Conflict::KeepTheirs).unwrap();
    assert_eq!(restored.left.len(), 1);
    assert_eq!(restored.left[0].why, UnrestoredReason::NotEmpty);
    assert!(place.root.join("made/.git/HEAD").exists());
    assert!(!place.root.join("made/file").exists());
}

#[test]
fn restore_does_not_follow_a_folder_replaced_by_a_symlink() {
    let place = Place::new();
    let outside = place.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "not ours").unwrap();
    fs::create_dir(place.root.join("sub")).unwrap();
    place.write("sub/file", "ours");
    let workspace = place.workspace();
    let id = workspace.take_snapshot("first").unwrap().id;
    fs::remove_dir_all(place.root.join("sub")).unwrap();
    symlink(&outside, place.root.join("sub")).unwrap();
    let linked = workspace.take_snapshot("linked").unwrap().id;
    workspace.restore(&id, Conflict::KeepTheirs).unwrap();
    assert_eq!(place.read("sub/file"), "ours");
    workspace.restore(&linked, Conflict::KeepTheirs).unwrap();
    assert_eq!(fs::read_link(place.root.join("sub")).unwrap(), outside);
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "not ours");
}

#[test]
fn snapshot_detects_a_change_with_a_preserved_mtime() {
    for watch in [true, false] {
        let place = Place::new();
        let options = Options { watch, ..quick() };
        let vault = Vault::open(&place.vault(), options).unwrap();
        let workspace = vault.open_workspace(&place.root).unwrap();
        place.write("a", "aaaa");
        shell(&place.root, "touch -d @1000000000 a");
        let id = workspace.take_snapshot("one").unwrap().id;
        place.write("a", "bbbb");
        shell(&place.root, "touch -d @1000000000 a");
        assert_eq!(workspace.list_changes(&id, Point::Now).unwrap().len(), 1);
        workspace.restore(&id, Conflict::KeepTheirs).unwrap();
        assert_eq!(place.read("a"), "aaaa");
    }
}

#[test]
fn snapshot_detects_writes_within_one_clock_tick() {
    for watch in [true, false] {
        let place = Place::new();
        let options = Options { watch, ..quick() };
        let workspace =
            Vault::open(&place.vault(), options).unwrap().open_workspace(&place.root).unwrap();
        place.write("a", "0000");
        for number in 1..200 {
            workspace.take_snapshot("before").unwrap();
            fs::File::options()
                .write(true)
                .open(place.root.join("a"))
                .and_then(|mut file| write!(file, "{number:04}"))
                .unwrap();
            assert_eq!(workspace.take_snapshot("after").unwrap().changed, 1, "{watch} {number}");
        }
    }
}

#[test]
fn snapshot_detects_symlinks_recreated_within_one_clock_tick() {
    for watch in [true, false] {
        let place = Place::new();
        let options = Options { watch, ..quick() };
        let workspace =
            Vault::open(&place.vault(), options).unwrap().open_workspace(&place.root).unwrap();
        for number in 0..200 {
            let link = place.root.join("link");
            drop(fs::remove_file(&link));
            symlink(format!("{number:04}"), &link).unwrap();
            assert_eq!(workspace.take_snapshot("x").unwrap().changed, 1, "{watch} {number}");
        }
    }
}

#[test]
fn snapshot_skips_and_reports_unreadable_files() {
    let place = Place::new();
    fs::create_dir(place.root.join("closed")).unwrap();
    for name in ["closed/inner", "sealed", "open"] {
        place.write(name, "1");
    }
    shell(&place.root, "chmod 000 sealed closed");
    if fs::read(place.root.join("sealed")).is_ok() {
        // An administrator reads everything.
        return;
    }
    let workspace = place.workspace();
    let taken = workspace.take_snapshot("x").unwrap();
    let skipped: Vec<_> =
        taken.skipped.iter().map(|skip| (skip.path.to_str().unwrap(), skip.why)).collect();
    assert_eq!(skipped, [("closed", SkipCause::Unreadable), ("sealed", SkipCause::Unreadable)]);
    place.write("open", "2");
    let Err(Error::Conflict { paths }) = workspace.restore(&taken.id, Conflict::Refuse) else {
        panic!("the person's change was overwritten");
    };
    // Of what could not be read nobody can say that it changed.
    assert_eq!(paths, [PathBuf::from("open")]);
    assert_eq!(workspace.restore(&taken.id, Conflict::KeepTheirs).unwrap().left, []);
    assert_eq!(place.read("open"), "1");
    shell(&place.root, "chmod 700 sealed closed");
    assert_eq!((place.read("sealed"), place.read("closed/inner")), ("1".into(), "1".into()));
    // Now they are new, and nothing that was never kept is overwritten or removed.
    workspace.restore(&taken.id, Conflict::KeepTheirs).unwrap();
    assert_eq!((place.read("sealed"), place.read("closed/inner")), ("1".into(), "1".into()));
}

#[test]
fn hard_linked_symlink_survives_removal_of_its_other_name() {
    let place = Place::new();
    let workspace = place.workspace();
    shell(&place.root, "mkdir sub");
    let without = workspace.take_snapshot("without").unwrap().id;
    shell(&place.root, "ln -s nowhere link; ln link sub/other");
    workspace.take_snapshot("linked").unwrap();
    // Nobody tells of this where `link` is.
    fs::remove_file(place.root.join("sub/other")).unwrap();
    workspace.take_snapshot("one name").unwrap();
    let restored = workspace.restore(&without, Conflict::KeepTheirs).unwrap();
    assert_eq!((restored.left, restored.removed), (vec![], 1));
}

#[test]
fn restore_works_in_folders_without_permissions_and_resets_modes() {
    for watch in [true, false] {
        let place = Place::new();
        let options = Options { watch, ..quick() };
        let workspace =
            Vault::open(&place.vault(), options).unwrap().open_workspace(&place.root).unwrap();
        fs::create_dir_all(place.root.join("sub/deep")).unwrap();
        for name in ["sub/deep/inner", "sub/file", "file"] {
            place.write(name, "1");
        }
        let open = workspace.take_snapshot("open").unwrap().id;
        let shall = look(&place.root);
        shell(&place.root, "echo 2 > sub/file; chmod -R 600 sub; chmod 000 file sub");
        let modes = || {
            ["sub", "file"]
                .map(|name| place.root.join(name).metadata().unwrap().permissions().mode() & 0o777)
        };
        let refused = workspace.restore(&open, Conflict::Refuse);
        assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
        assert_eq!(modes(), [0, 0]);
        workspace.take_snapshot("closed").unwrap();
        let restored = workspace.restore(&open, Conflict::KeepTheirs).unwrap();
        assert_eq!(restored.left, []);
        assert_eq!(difference(&look(&place.root), &shall), [""; 0]);
        let back = workspace.restore(&restored.before, Conflict::KeepTheirs).unwrap();
        assert_eq!((back.left, modes()), (vec![], [0, 0]));
        workspace.restore(&open, Conflict::KeepTheirs).unwrap();
        assert_eq!(difference(&look(&place.root), &shall), [""; 0]);
        // The folder itself, as `chmod -R` of everything does it.
        shell(&place.root, "chmod -R 644 .");
        assert_eq!(workspace.restore(&open, Conflict::KeepTheirs).unwrap().left, []);
        assert_eq!(difference(&look(&place.root), &shall), [""; 0]);
    }
}

#[test]
fn snapshot_detects_a_change_through_a_hard_link() {
    let place = Place::new();
    fs::create_dir(place.root.join("sub")).unwrap();
    place.write("a", "1");
    let workspace = place.workspace();
    workspace.take_snapshot("one").unwrap();
    fs::hard_link(place.root.join("a"), place.root.join("sub/b")).unwrap();
    let id = workspace.take_snapshot("linked").unwrap().id;
    place.write("sub/b", "2");
    let changes = workspace.list_changes(&id, Point::Now).unwrap();
    assert_eq!(changes.len(), 2);
    workspace.restore(&id, Conflict::KeepTheirs).unwrap();
    let inode = |name: &str| place.root.join(name).metadata().unwrap().ino();
    assert_eq!((place.read("a").as_str(), inode("a")), ("1", inode("sub/b")));
}

#[test]
fn growing_file_is_saved_partially_and_reported() {
    let place = Place::new();
    let path = place.root.join("growing");
    fs::write(&path, vec![b'x'; 3 << 20]).unwrap();
    let stop = AtomicBool::new(false);
    let workspace = place.workspace();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            while !stop.load(Ordering::Relaxed) {
                file.write_all(b"more\n").unwrap();
            }
        });
        let taken: Vec<_> = (0..5).map(|_| workspace.take_snapshot("growing").unwrap()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(
            taken.iter().all(|taken| taken.skipped.iter().all(|s| s.why == SkipCause::Unsteady))
        );
    });
    let whole = fs::read(&path).unwrap();
    let taken = workspace.take_snapshot("quiet").unwrap();
    assert_eq!(taken.skipped, []);
    fs::write(&path, "").unwrap();
    workspace.restore(&taken.id, Conflict::KeepTheirs).unwrap();
    assert!(fs::read(&path).unwrap() == whole);
}

#[test]
fn cancelled_baseline_scan_continues_where_it_stopped() {
    let place = Place::new();
    for number in 0..200 {
        place.write(&format!("f{number}"), &number.to_string());
    }
    let workspace = place.workspace();
    assert!(matches!(workspace.scan_baseline(&AtomicBool::new(true)), Err(Error::Cancelled)));
    workspace.scan_baseline(&AtomicBool::new(false)).unwrap();
    let taken = workspace.take_snapshot("after").unwrap();
    let shall = look(&place.root);
    shell(&place.root, "rm -f f1*");
    workspace.restore(&taken.id, Conflict::KeepTheirs).unwrap();
    assert_eq!(difference(&look(&place.root), &shall), [""; 0]);
}

#[test]
fn saved_scan_state_avoids_rereading_unchanged_files() {
    let place = Place::new();
    for number in 0..50 {
        place.write(&format!("f{number}"), &number.to_string());
    }
    place.workspace().take_snapshot("one").unwrap();
    let packs = || files_below(&place.vault().join("packs")).len();
    let before = packs();
    let taken = place.workspace().take_snapshot("two").unwrap();
    assert_eq!((taken.changed, packs()), (0, before));
}

#[test]
fn deep_and_wide_folder_trees_are_saved_up_to_the_depth_limit() {
    let place = Place::new();
    let deep = ["d"; 150].join("/");
    fs::create_dir_all(place.root.join(&deep)).unwrap();
    place.write(&format!("{deep}/bottom"), "here");
    for number in 0..3_000 {
        place.write(&format!("wide{number}"), "");
    }
    let workspace = place.workspace();
    let id = workspace.take_snapshot("all").unwrap().id;
    let shall = look(&place.root);
    fs::remove_dir_all(place.root.join("d")).unwrap();
    workspace.restore(&id, Conflict::KeepTheirs).unwrap();
    assert_eq!(difference(&look(&place.root), &shall), [""; 0]);
    // Deeper than what is kept: named, not failed on.
    fs::create_dir_all(place.root.join(["e"; 230].join("/"))).unwrap();
    let taken = workspace.take_snapshot("deeper").unwrap();
    assert!(taken.skipped.iter().any(|skip| skip.why == SkipCause::TooDeep));
}
