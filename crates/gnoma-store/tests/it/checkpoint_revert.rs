//! Reverting one file, or one hunk of it, and undoing that.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use gnoma_core::diff::unified_diff;
use gnoma_store::checkpoint::{
    CommittedFile, Conflict, Point, Revert, RevertBase, SnapshotId, Workspace,
};

use crate::checkpoint_support::vault;

struct Place {
    folder: tempfile::TempDir,
    work: Workspace,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let vault = vault(&folder.path().join("vault"));
        let work = vault.open_workspace(&folder.path().join("work")).unwrap();
        Self { folder, work }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn save(&self) -> SnapshotId {
        self.work.take_snapshot("saved").unwrap().id
    }

    fn revert(&self, name: &str, base: &SnapshotId, hunk: Option<&str>) -> Revert {
        self.work.revert(name, RevertBase::Snapshot(base), hunk).unwrap()
    }

    /// Restores the state without a change; gives the state before.
    fn restore(&self, revert: Revert) -> SnapshotId {
        let Revert::Target(target) = revert else { panic!("{revert:?}") };
        self.work.restore(&target, Conflict::Refuse).unwrap().before
    }
}

fn lines(others: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let other = others.iter().find(|(at, _)| *at == number);
        other.map_or_else(|| format!("line {number}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=40).map(line).collect()
}

/// The hunks of a diff with three lines around a change.
fn hunks(old: &str, new: &str) -> Vec<String> {
    let text = unified_diff(old, new, 3, None);
    let parts = text.split("@@ -").filter(|part| !part.is_empty());
    parts.map(|part| format!("@@ -{part}")).collect()
}

#[test]
fn one_hunk_is_reverted_while_the_rest_of_the_file_and_others_stay() {
    let place = Place::new();
    place.put("a", &lines(&[]));
    place.put("b", "b\n");
    let base = place.save();
    let both = lines(&[(2, "two"), (38, "later")]);
    place.put("a", &both);
    place.put("b", "changed\n");
    let [first, second] = <[_; 2]>::try_from(hunks(&lines(&[]), &both)).unwrap();
    let before = place.restore(place.revert("a", &base, Some(&second)));
    assert_eq!((place.read("a"), place.read("b")), (lines(&[(2, "two")]), "changed\n".into()));
    assert_eq!(place.revert("a", &base, Some(&second)), Revert::Moved, "it is gone");
    place.work.restore(&before, Conflict::Refuse).unwrap();
    assert_eq!(place.read("a"), both, "what was there is saved first");

    place.put("a", &both.replace("later", "mine"));
    assert_eq!(place.revert("a", &base, Some(&second)), Revert::Moved, "it reads otherwise");
    place.restore(place.revert("a", &base, Some(&first)));
    assert_eq!(place.read("a"), lines(&[(38, "mine")]));
    assert_eq!(place.revert("a", &base, Some("@@ -1 +1 @@\n-line 1\n+evil\n")), Revert::Moved);
}

#[test]
fn revert_removes_a_new_file_and_restores_a_deleted_one() {
    let place = Place::new();
    place.put("gone", "a\nb");
    let base = place.save();
    fs::remove_file(place.path("gone")).unwrap();
    place.put("new", "x\n");
    place.restore(place.revert("new", &base, None));
    assert!(!place.path("new").exists());
    place.restore(place.revert("gone", &base, None));
    assert_eq!(place.read("gone"), "a\nb");
    assert_eq!(place.revert("gone", &base, None), Revert::Unchanged);
    assert_eq!(place.revert("../outside", &base, None), Revert::Unchanged);

    fs::remove_file(place.path("gone")).unwrap();
    place.put("new", "x\n");
    place.restore(place.revert("gone", &base, Some(&hunks("a\nb", "")[0])));
    place.restore(place.revert("new", &base, Some(&hunks("", "x\n")[0])));
    assert_eq!((place.read("gone"), place.path("new").exists()), ("a\nb".into(), false));
}

#[test]
fn revert_replaces_a_symlink_without_following_it() {
    let place = Place::new();
    place.put("a", "text\n");
    let base = place.save();
    let outside = place.folder.path().join("outside");
    fs::write(&outside, "outside\n").unwrap();
    fs::remove_file(place.path("a")).unwrap();
    symlink(&outside, place.path("a")).unwrap();
    let hunk = hunks("text\n", "outside\n").remove(0);
    assert_eq!(place.revert("a", &base, Some(&hunk)), Revert::Unsuitable);
    place.restore(place.revert("a", &base, None));
    assert_eq!(place.read("a"), "text\n");
    assert!(place.path("a").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read_to_string(outside).unwrap(), "outside\n");
}

#[test]
fn binary_file_is_reverted_only_as_a_whole() {
    let place = Place::new();
    fs::write(place.path("a"), b"one\n\xff\xfe\n").unwrap();
    let base = place.save();
    fs::write(place.path("a"), b"two\n\xff\xfe\n").unwrap();
    let change = &place.work.list_changes(&base, Point::Now).unwrap()[0];
    let diff = place.work.render_diff(change).unwrap();
    let hunk = &diff[diff.find("@@").unwrap()..];
    assert_eq!(place.revert("a", &base, Some(hunk)), Revert::Unsuitable);
    place.restore(place.revert("a", &base, None));
    assert_eq!(fs::read(place.path("a")).unwrap(), b"one\n\xff\xfe\n");
}

#[test]
fn file_is_compared_with_and_reverted_to_a_git_commit() {
    let place = Place::new();
    place.put("a", "new\n");
    let file = |path: &str, content: Option<&str>| CommittedFile {
        path: path.into(),
        content: content.map(|text| text.as_bytes().to_vec()),
        is_executable: false,
    };
    let files = [file("a", Some("old\n")), file("b", Some("b\n"))];
    let changes = place.work.changes_from(&files).unwrap();
    let diffs: Vec<_> = changes.iter().map(|it| place.work.render_diff(it).unwrap()).collect();
    assert_eq!(diffs[0], "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n");
    assert_eq!(diffs[1], "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n");
    for file in &files {
        let name = file.path.to_str().unwrap();
        place.restore(place.work.revert(name, RevertBase::Commit(file), None).unwrap());
    }
    assert_eq!((place.read("a"), place.read("b")), ("old\n".into(), "b\n".into()));
    assert!(place.work.changes_from(&files).unwrap().is_empty());
    let gone = file("a", None);
    place.restore(place.work.revert("a", RevertBase::Commit(&gone), None).unwrap());
    assert!(!place.path("a").exists());
}

#[test]
fn revert_of_one_file_leaves_user_changes_of_other_files_external() {
    let place = Place::new();
    place.put("a", "a\n");
    place.put("b", "b\n");
    let base = place.save();
    place.put("a", "session\n");
    place.save();
    place.put("b", "person\n");
    assert_eq!(place.work.revert_hindrance("a", RevertBase::Snapshot(&base), None).unwrap(), None);
    place.restore(place.revert("a", &base, None));
    assert_eq!((place.read("a"), place.read("b")), ("a\n".into(), "person\n".into()));
    assert_eq!(place.work.external_changes(&base, &[]).unwrap(), [PathBuf::from("b")]);
}
