//! A snapshot in a separate folder, where someone can work while the workspace stays as it is.

use std::{io, path::Path, thread::available_parallelism};

use rustix::{
    fs::{CWD, Mode, fstatvfs, openat},
    io::Errno,
};

use super::{
    compare::compare,
    copying::Copying,
    error::{At, Error},
    folder::FOLDER_FLAGS,
    snapshot_id::SnapshotId,
    tree::Item,
    workspace::{MAX_THREADS, Workspace},
};

/// What must be free beside what is written.
const SPARE_BYTES: u64 = 64 << 20;

impl Workspace {
    /// Writes a snapshot into an empty folder. What was not saved is missing.
    ///
    /// # Errors
    ///
    /// The snapshot is unknown or damaged, or there is no room for it. What was written until then stays.
    pub fn copy_to(&self, id: &SnapshotId, folder: &Path) -> Result<(), Error> {
        let _session = self.vault.session()?;
        self.has_room_for(id, folder)?;
        let objects = &self.vault.0.objects;
        let target = self.get(id)?;
        let root = openat(CWD, folder, FOLDER_FLAGS, Mode::empty()).at("open", folder)?;
        let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let known = Copying::new(objects, threads).run(&root, folder, target.tree)?;
        let copy = self.beside(folder)?;
        // What looks at it next reads only what is not so any more.
        let mut state = copy.state();
        state.known = known;
        copy.write_state(&mut state);
        Ok(())
    }

    /// Whether there is room for what a snapshot holds.
    ///
    /// # Errors
    ///
    /// There is none, or the snapshot is unknown or damaged.
    pub fn has_room_for(&self, id: &SnapshotId, folder: &Path) -> Result<(), Error> {
        let _session = self.vault.session()?;
        let objects = &self.vault.0.objects;
        objects.refresh()?;
        let target = self.get(id)?;
        let root = openat(CWD, folder, FOLDER_FLAGS, Mode::empty()).at("open", folder)?;
        let mut wanted_bytes = SPARE_BYTES;
        compare(objects, None, Some(target.tree), &mut |_, _, item| {
            if let Some(Item::File { size, .. }) = item {
                wanted_bytes = wanted_bytes.saturating_add(*size);
            }
        })?;
        let about = fstatvfs(&root).at("look at", folder)?;
        if about.f_bavail.saturating_mul(about.f_frsize) < wanted_bytes {
            return Err(io::Error::from(Errno::NOSPC)).at("write", folder);
        }
        Ok(())
    }

    /// Forgets all that is known of the folder, which is gone.
    pub fn forget(self) {
        let folder = self.folder.clone();
        drop(self);
        // What stays is small, and its objects go with the snapshots' age.
        drop(std::fs::remove_dir_all(folder));
    }
}
