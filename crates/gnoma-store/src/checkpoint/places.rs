//! The places in a vault, and how its files are made: private, and completely or not at all.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use gnoma_core::private_file::create_folder;

use super::error::{Error, PathErrorExt};

/// The folders of a vault.
#[derive(Clone, Debug)]
pub(super) struct Places(PathBuf);

impl Places {
    /// Makes the folders that are missing.
    pub(super) fn create(root: &Path) -> Result<Self, Error> {
        let places = Self(root.to_owned());
        for folder in [
            places.packs_folder(),
            places.loose_folder(),
            places.unfinished_folder(),
            places.workspaces_folder(),
        ] {
            own_folder(&folder)?;
        }
        Ok(places)
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    pub(super) fn format_path(&self) -> PathBuf {
        self.0.join("format")
    }

    /// Held shared while objects are added or read, alone while some are deleted.
    pub(super) fn lock_path(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Held by the one process that tidies up.
    pub(super) fn collect_lock(&self) -> PathBuf {
        self.0.join("collect.lock")
    }

    /// Rewritten whenever objects are deleted.
    pub(super) fn generation_path(&self) -> PathBuf {
        self.0.join("generation")
    }

    /// Returns the path of the file whose time is when the vault was last looked through for what can go.
    pub(super) fn last_prune_path(&self) -> PathBuf {
        self.0.join("tidied")
    }

    /// Returns the path of the key that packed objects are sealed with.
    pub(super) fn key_path(&self) -> PathBuf {
        self.0.join("key")
    }

    pub(super) fn packs_folder(&self) -> PathBuf {
        self.0.join("packs")
    }

    pub(super) fn loose_folder(&self) -> PathBuf {
        self.0.join("large")
    }

    pub(super) fn unfinished_folder(&self) -> PathBuf {
        self.0.join("unfinished")
    }

    pub(super) fn workspaces_folder(&self) -> PathBuf {
        self.0.join("workspaces")
    }
}

/// Makes a folder and its parents, readable by nobody else.
pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    create_folder(path).io_context("create the folder", path)
}

/// Makes a folder of the vault, or sees to it that the one there is no link and nobody else's: files
/// are deleted in it.
pub(super) fn own_folder(path: &Path) -> Result<(), Error> {
    const FOR_OTHERS: u32 = 0o077;
    const OTHERS_WRITE: u32 = 0o022;
    make_folder(path)?;
    let look = || path.symlink_metadata().io_context("read", path);
    let about = look()?;
    let user = rustix::process::geteuid();
    let is_own = about.is_dir() && (about.uid() == user.as_raw() || user.is_root());
    if is_own && about.mode() & FOR_OTHERS != 0 {
        // Not every file system has modes; what counts is how it is then.
        drop(std::fs::set_permissions(path, Permissions::from_mode(0o700)));
    }
    if is_own && look()?.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    Err(Error::Foreign(path.to_owned()))
}

/// Returns the current time in nanoseconds since 1970.
pub(super) fn now_ns() -> i128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| i128::try_from(age.as_nanos()).unwrap_or(i128::MAX))
}

/// A name no other process or thread uses.
pub(super) fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}-{:x}-{count:x}", now_ns(), std::process::id())
}

/// Waits until the names in a folder are on the disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).io_context("write to disk", folder)
}

/// A file that gets its name when it is complete; dropped before, it vanishes.
pub(super) struct UnfinishedFile {
    file: File,
    path: PathBuf,
    is_finished: bool,
}

impl UnfinishedFile {
    pub(super) fn create(places: &Places) -> Result<Self, Error> {
        let path = places.unfinished_folder().join(unique_name());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .io_context("create", &path)?;
        Ok(Self { file, path, is_finished: false })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the file in its place; with `sync` its bytes are on the disk before.
    pub(super) fn finish(mut self, place: &Path, sync: bool) -> Result<(), Error> {
        if sync {
            self.file.sync_data().io_context("write to disk", &self.path)?;
        }
        std::fs::rename(&self.path, place).io_context("create", place)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // Nothing to tell: what stays is removed by the next collection.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Replaces a file as a whole.
pub(super) fn replace_file(
    places: &Places,
    place: &Path,
    bytes: &[u8],
    sync: bool,
) -> Result<(), Error> {
    let unfinished = UnfinishedFile::create(places)?;
    unfinished.file().write_all(bytes).io_context("write", place)?;
    unfinished.finish(place, sync)
}
