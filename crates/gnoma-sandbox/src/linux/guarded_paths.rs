//! Protected paths where mounts are refused: remembered before the command, put back after it.
//!
//! Weaker than a mount: what is changed stays changed while the command runs, and a change that
//! somebody else makes meanwhile is taken back as well. It holds when the command is over, which is
//! before anybody is told so.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, Permissions},
    io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

/// Most bytes that are remembered over all paths.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Most files and folders that are remembered.
const MAX_ENTRIES: usize = 4096;
/// Deepest folder that is remembered.
const MAX_DEPTH: usize = 32;

/// Protected paths as they were.
#[derive(Debug)]
pub(super) struct Snapshot(Vec<(PathBuf, GuardedEntry)>);

#[derive(Debug, PartialEq, Eq)]
enum GuardedEntry {
    Absent,
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    Folder {
        entries: BTreeMap<OsString, Self>,
        mode: u32,
    },
    /// A path that cannot be remembered: too large, too deep, unreadable, or no file at all.
    Beyond,
}

impl Snapshot {
    /// Remembers what is there, within the limits.
    pub(super) fn capture_paths(protected: &[PathBuf]) -> Self {
        let mut budget = SnapshotBudget { bytes: MAX_BYTES, entries: MAX_ENTRIES };
        let real = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let mut paths: Vec<PathBuf> = protected.to_vec();
        paths.extend(protected.iter().map(real));
        gnoma_core::sort::sort_items(&mut paths);
        paths.dedup();
        Self(
            paths
                .into_iter()
                .map(|path| (path.clone(), read_entry(&path, 0, &mut budget)))
                .collect(),
        )
    }

    /// Puts back what has changed. Returns the paths, each with why it could not be put back.
    pub(super) fn restore_changed(&self) -> Vec<(&Path, io::Result<()>)> {
        let mut budget = SnapshotBudget { bytes: MAX_BYTES, entries: MAX_ENTRIES };
        let mut changed = Vec::new();
        for (path, kept) in &self.0 {
            if read_entry(path, 0, &mut budget) != *kept {
                changed.push((path.as_path(), put_back(path, kept)));
            }
        }
        changed
    }
}

struct SnapshotBudget {
    bytes: u64,
    entries: usize,
}

fn read_entry(path: &Path, depth: usize, budget: &mut SnapshotBudget) -> GuardedEntry {
    match try_read(path, depth, budget) {
        Ok(kept) => kept,
        Err(error) if is_absence(&error) => GuardedEntry::Absent,
        Err(_) => GuardedEntry::Beyond,
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn try_read(path: &Path, depth: usize, budget: &mut SnapshotBudget) -> io::Result<GuardedEntry> {
    let facts = fs::symlink_metadata(path)?;
    let mode = facts.permissions().mode();
    let (entries, bytes) = (budget.entries.checked_sub(1), budget.bytes.checked_sub(facts.len()));
    let (Some(entries), Some(bytes), true) = (entries, bytes, depth < MAX_DEPTH) else {
        return Ok(GuardedEntry::Beyond);
    };
    *budget = SnapshotBudget { bytes, entries };
    if facts.is_symlink() {
        return fs::read_link(path).map(GuardedEntry::Link);
    }
    if facts.is_file() {
        return Ok(GuardedEntry::File { bytes: fs::read(path)?, mode });
    }
    if !facts.is_dir() {
        return Ok(GuardedEntry::Beyond);
    }
    let mut entries = BTreeMap::new();
    for entry in fs::read_dir(path)?.take(MAX_ENTRIES) {
        let name = entry?.file_name();
        let kept = read_entry(&path.join(&name), depth + 1, budget);
        entries.insert(name, kept);
    }
    Ok(GuardedEntry::Folder { entries, mode })
}

fn put_back(path: &Path, kept: &GuardedEntry) -> io::Result<()> {
    if *kept == GuardedEntry::Beyond {
        return Err(io::Error::other("it was too large to be remembered"));
    }
    remove_entry(path)?;
    if *kept == GuardedEntry::Absent {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_real_folder(parent)?;
    }
    write_entry(path, kept)
}

fn write_entry(path: &Path, kept: &GuardedEntry) -> io::Result<()> {
    match kept {
        GuardedEntry::Absent | GuardedEntry::Beyond => Ok(()),
        GuardedEntry::Link(target) => symlink(target, path),
        GuardedEntry::File { bytes, mode } => {
            fs::write(path, bytes)?;
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
        GuardedEntry::Folder { entries, mode } => {
            fs::create_dir(path)?;
            for (name, kept) in entries {
                write_entry(&path.join(name), kept)?;
            }
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
    }
}

/// Makes a folder whose path leads through no link: the paths were real when they were remembered,
/// so a link was put there since, to have us write elsewhere.
fn make_real_folder(path: &Path) -> io::Result<()> {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    for folder in ancestors {
        match fs::symlink_metadata(folder) {
            Ok(facts) if facts.is_dir() => continue,
            Ok(_) => fs::remove_file(folder)?,
            Err(error) if is_absence(&error) => {}
            Err(error) => return Err(error),
        }
        fs::create_dir(folder)?;
    }
    Ok(())
}

fn remove_entry(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if is_absence(&error) { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change<'a> = dyn Fn(&Path) -> io::Result<()> + 'a;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        fs::write(root.join(".git/config"), "[core]\n").unwrap();
        fs::write(root.join(".git/hooks/pre-push"), "old").unwrap();
        (folder, root)
    }

    fn protected(root: &Path) -> Vec<PathBuf> {
        [".git/hooks", ".git/config", ".gnoma"].map(|path| root.join(path)).to_vec()
    }

    fn is_as_before(root: &Path) -> bool {
        fs::read(root.join(".git/config")).unwrap() == b"[core]\n"
            && fs::read(root.join(".git/hooks/pre-push")).unwrap() == b"old"
            && fs::read_dir(root.join(".git/hooks")).unwrap().count() == 1
            && !root.join(".gnoma").exists()
    }

    #[test]
    fn unchanged_guarded_paths_are_not_restored() {
        let (_folder, root) = folder();
        let snapshot = Snapshot::capture_paths(&protected(&root));
        fs::write(root.join("src.rs"), "new").unwrap();
        fs::write(root.join(".git/index"), "new").unwrap();
        assert!(snapshot.restore_changed().is_empty());
        assert!(root.join("src.rs").exists());
    }

    #[test]
    fn changed_guarded_paths_are_restored_after_a_write_rename_delete_or_symlink() {
        let outside = tempfile::tempdir().unwrap();
        let changes: [&Change<'_>; 7] = [
            &|root| fs::write(root.join(".git/config"), "[core]\nfsmonitor=evil\n"),
            &|root| fs::write(root.join(".git/hooks/pre-commit"), "evil"),
            &|root| fs::create_dir(root.join(".gnoma")),
            &|root| fs::remove_dir_all(root.join(".git")),
            &|root| {
                fs::rename(root.join(".git"), root.join("away"))?;
                fs::create_dir_all(root.join(".git/hooks"))?;
                fs::write(root.join(".git/hooks/pre-push"), "evil")
            },
            &|root| {
                fs::rename(root.join(".git"), root.join("away"))?;
                symlink(outside.path(), root.join(".git"))
            },
            &|root| {
                fs::remove_dir_all(root.join(".git/hooks"))?;
                symlink(outside.path(), root.join(".git/hooks"))
            },
        ];
        for change in changes {
            let (_folder, root) = folder();
            let snapshot = Snapshot::capture_paths(&protected(&root));
            change(&root).unwrap();
            let restored = snapshot.restore_changed();
            assert!(!restored.is_empty());
            assert!(restored.iter().all(|(_, result)| result.is_ok()), "{restored:?}");
            assert!(is_as_before(&root));
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn guarded_file_too_large_to_restore_is_reported() {
        let (_folder, root) = folder();
        let large = root.join(".git/config");
        let file = fs::File::create(&large).unwrap();
        file.set_len(MAX_BYTES + 1).unwrap();
        let snapshot = Snapshot::capture_paths(&protected(&root));
        fs::write(&large, "small").unwrap();
        assert!(
            snapshot
                .restore_changed()
                .iter()
                .any(|(path, result)| *path == large && result.is_err())
        );
    }
}
