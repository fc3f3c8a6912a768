//! A snapshot in a separate folder, where someone can work while the workspace stays as it is.

use std::{
    io,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::available_parallelism,
};

use rustix::{
    fs::{CWD, Mode, fstatvfs, openat},
    io::Errno,
};

use super::{
    compare::compare_trees,
    error::{Error, PathErrorExt},
    folder::FOLDER_FLAGS,
    snapshot_id::SnapshotId,
    tree::Item,
    tree_copy::TreeCopy,
    workspace::{MAX_THREADS, Workspace},
};

/// The bytes that must be free beside what is written.
const SPARE_BYTES: u64 = 64 << 20;

/// The bytes that this process has promised to copies that are not written yet, so that several at once do not
/// count on the same room.
static PROMISED: AtomicU64 = AtomicU64::new(0);

/// Room for one copy. Dropped, it is nobody's.
#[derive(Debug)]
pub struct ReservedRoom {
    bytes: u64,
    promised: &'static AtomicU64,
}

impl ReservedRoom {
    fn try_reserve(promised: &'static AtomicU64, free_bytes: u64, bytes: u64) -> Option<Self> {
        let with =
            |before: u64| Some(before.saturating_add(bytes)).filter(|all| *all <= free_bytes);
        promised.fetch_update(Ordering::AcqRel, Ordering::Acquire, with).ok()?;
        Some(Self { bytes, promised })
    }
}

impl Drop for ReservedRoom {
    fn drop(&mut self) {
        self.promised.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl Workspace {
    /// Writes a snapshot into an empty folder. What was not saved is missing.
    ///
    /// # Errors
    ///
    /// The snapshot is unknown or damaged, or it became `unwanted`. What was written until then stays.
    pub fn copy_to(
        &self,
        id: &SnapshotId,
        folder: &Path,
        _room: &ReservedRoom,
        unwanted: &AtomicBool,
    ) -> Result<(), Error> {
        let _session = self.vault.begin_session()?;
        let objects = &self.vault.0.objects;
        let target = self.get(id)?;
        let root = openat(CWD, folder, FOLDER_FLAGS, Mode::empty()).io_context("open", folder)?;
        let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let known = TreeCopy::new(objects, threads, unwanted).run(&root, folder, target.tree)?;
        let copy = self.open_sibling(folder)?;
        // What looks at it next reads only what is not so any more.
        let mut state = copy.state.lock();
        state.known = known;
        copy.write_state(&mut state);
        Ok(())
    }

    /// Reserves room for what a snapshot holds.
    ///
    /// # Errors
    ///
    /// There is none, or the snapshot is unknown or damaged.
    pub fn reserve_room(&self, id: &SnapshotId, folder: &Path) -> Result<ReservedRoom, Error> {
        let _session = self.vault.begin_session()?;
        let objects = &self.vault.0.objects;
        objects.refresh()?;
        let target = self.get(id)?;
        let root = openat(CWD, folder, FOLDER_FLAGS, Mode::empty()).io_context("open", folder)?;
        let mut wanted_bytes = SPARE_BYTES;
        compare_trees(objects, None, Some(target.tree), &mut |_, _, item| {
            if let Some(Item::File { size, .. }) = item {
                wanted_bytes = wanted_bytes.saturating_add(*size);
            }
        })?;
        let about = fstatvfs(&root).io_context("look at", folder)?;
        let free_bytes = about.f_bavail.saturating_mul(about.f_frsize);
        let room = ReservedRoom::try_reserve(&PROMISED, free_bytes, wanted_bytes);
        room.ok_or_else(|| io::Error::from(Errno::NOSPC)).io_context("write", folder)
    }

    /// Forgets all that is known of the folder, which is gone.
    pub fn forget_folder(self) {
        let folder = self.folder.clone();
        drop(self);
        // What stays is small, and its objects go with the snapshots' age.
        drop(std::fs::remove_dir_all(folder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_workspace_copies_reserve_disk_space_separately() {
        static PROMISED: AtomicU64 = AtomicU64::new(0);
        let take = |bytes| ReservedRoom::try_reserve(&PROMISED, 100, bytes);
        let first = take(60);
        assert!(first.is_some() && take(60).is_none() && take(40).is_some());
        drop(first);
        assert!(take(100).is_some());
    }
}
