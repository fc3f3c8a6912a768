//! A snapshot as a folder of its own: somebody works there, and the workspace stays as it is.

use std::{collections::BTreeSet, io, path::Path};

use rustix::{
    fs::{CWD, Mode, fstatvfs, openat},
    io::Errno,
};

use super::{
    apply::Apply,
    compare::compare,
    error::{At, Error},
    folder::FOLDER_FLAGS,
    left::{LeftOut, LeftWhy},
    snapshot_id::SnapshotId,
    state::Folder,
    tree::Item,
    workspace::Workspace,
};

/// What must be free beside what is written.
const SPARE_BYTES: u64 = 64 << 20;

impl Workspace {
    /// Writes what a snapshot holds into an empty folder. What was not kept is not there.
    ///
    /// # Errors
    ///
    /// The snapshot is unknown or damaged, or there is no room for it. What was written until then stays.
    pub fn copy_to(&self, id: &SnapshotId, folder: &Path) -> Result<(), Error> {
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
        let forced = BTreeSet::new();
        let mut apply = Apply::new(objects, &forced);
        apply.run(&root, &Folder::default(), target.tree)?;
        let left = apply.finish(&root).left;
        let Some(LeftOut { path, why }) =
            left.into_iter().find(|left| left.why != LeftWhy::NotKept)
        else {
            return Ok(());
        };
        let why = match why {
            LeftWhy::Refused(why) => why,
            other => format!("{other:?}"),
        };
        Err(io::Error::other(why)).at("write", &folder.join(path))
    }

    /// Forgets all that is known of the folder, which is gone.
    pub fn forget(self) {
        let folder = self.folder.clone();
        drop(self);
        // What stays is small, and its objects go with the snapshots' age.
        drop(std::fs::remove_dir_all(folder));
    }
}
