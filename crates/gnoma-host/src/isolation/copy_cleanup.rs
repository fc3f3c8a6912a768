//! Abandoned copies: of elfs that ended, and of processes that were killed.
//!
//! The process that uses a copy holds the lock beside it, which the system releases when the process ends.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use gnoma_core::{private_file, protocol::Environment};
use gnoma_store::checkpoint::Workspace;
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::{Folders as _, guard_setup};

/// The folder of copies within that of caches.
const FOLDER: &str = "elfs";
/// The ending of the lock beside a copy.
const LOCK: &str = "lock";
/// The number of times that a lock is taken again after it was removed in the meantime.
const MAX_TRIES: u32 = 20;
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The folder of all copies.
pub(crate) fn copies_folder(environment: &Environment) -> PathBuf {
    environment.cache_dir().join(FOLDER)
}

/// The place of one copy.
#[derive(Debug)]
pub(super) struct CopyPlace {
    pub(super) folder: PathBuf,
    lock: PathBuf,
    /// Dropped, others may tidy.
    _held: File,
}

impl CopyPlace {
    /// Makes the place `id` in the folder of all copies.
    pub(super) fn create_in(all: &Path, id: &str) -> io::Result<Self> {
        private_file::create_folder(all)?;
        let lock = all.join(id).with_extension(LOCK);
        let held = acquire_lock(&lock)?.ok_or(io::ErrorKind::AlreadyExists)?;
        let folder = all.join(id);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self { folder, lock, _held: held })
    }

    /// Removes all that is there.
    pub(super) fn remove(&self, environment: &Environment) {
        remove_copy(&self.folder, &self.lock, environment);
    }
}

/// The lock, unless another process or copy has it.
fn acquire_lock(lock: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_LINK);
    for _ in 0..MAX_TRIES {
        let file = options.open(lock)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // A lock file that was removed since locks nothing.
            Ok(()) if is_at(&file, lock) => return Ok(Some(file)),
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(refused) => return Err(refused.into()),
        }
    }
    Ok(None)
}

fn is_at(file: &File, path: &Path) -> bool {
    let (own, there) = (file.metadata().ok(), path.symlink_metadata().ok());
    own.zip(there).is_some_and(|(own, there)| (own.dev(), own.ino()) == (there.dev(), there.ino()))
}

/// Removes the copies of processes that are gone. What cannot be removed stays for the next time.
pub(crate) fn remove_orphans(environment: &Environment, workspace: &Workspace) {
    let all = copies_folder(environment);
    for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_lock = path.extension().is_some_and(|ending| ending == LOCK);
        let folder = path.with_extension("");
        let lock = folder.with_extension(LOCK);
        // A lock without a copy is about to get one, or was left.
        let Ok(Some(_held)) = acquire_lock(&lock) else { continue };
        if !is_lock {
            for root in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if let Ok(known) = workspace.open_sibling(&root.path()) {
                    known.forget_folder();
                }
            }
        }
        if is_lock && folder.exists() {
            continue;
        }
        remove_copy(&folder, &lock, environment);
    }
}

/// A folder that a command closed to its owner is opened, so that it can go.
fn remove_copy(folder: &Path, lock: &Path, environment: &Environment) {
    for root in fs::read_dir(folder).into_iter().flatten().flatten() {
        let layers = guard_setup::trial_layers(environment, &root.path());
        drop(fs::remove_dir_all(layers));
    }
    if fs::remove_dir_all(folder).is_err() {
        open_up(folder, MAX_DEPTH);
        drop(fs::remove_dir_all(folder));
    }
    if !folder.exists() {
        drop(fs::remove_file(lock));
    }
}

/// The greatest depth of folders within folders.
const MAX_DEPTH: usize = 200;

fn open_up(folder: &Path, depth: usize) {
    use std::os::unix::fs::PermissionsExt;
    let is_folder = folder.symlink_metadata().is_ok_and(|about| about.is_dir());
    if !is_folder || depth == 0 {
        return;
    }
    drop(fs::set_permissions(folder, fs::Permissions::from_mode(0o700)));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        open_up(&entry.path(), depth - 1);
    }
}

#[cfg(test)]
mod tests {
    use gnoma_store::checkpoint::Vault;

    use super::*;

    #[test]
    fn workspace_copy_cleanup_removes_only_unlocked_copies() {
        let home = tempfile::tempdir().unwrap();
        let variables = [("HOME".to_owned(), home.path().display().to_string())];
        let environment = Environment::new(variables.into());
        let all = copies_folder(&environment);
        let held = CopyPlace::create_in(&all, "held").unwrap();
        for place in [
            CopyPlace::create_in(&all, "left").unwrap(),
            CopyPlace::create_in(&all, "odd").unwrap(),
        ] {
            fs::create_dir_all(place.folder.join("p/closed/below")).unwrap();
            fs::write(place.folder.join("p/closed/below/a"), "a").unwrap();
        }
        fs::set_permissions(
            all.join("odd/p/closed"),
            std::os::unix::fs::PermissionsExt::from_mode(0o500),
        )
        .unwrap();
        fs::write(all.join("lone.lock"), "").unwrap();
        assert!(CopyPlace::create_in(&all, "held").is_err(), "an id has one copy");
        fs::create_dir(home.path().join("work")).unwrap();
        let vault = Vault::open(&home.path().join("vault"), Default::default()).unwrap();
        let workspace = vault.open_workspace(&home.path().join("work")).unwrap();
        remove_orphans(&environment, &workspace);
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(&all).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(), ["held", "held.lock"]);
        held.remove(&environment);
        assert!(names().is_empty());
    }
}
