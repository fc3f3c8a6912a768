//! The vault: the folder with the checkpoints of all workspaces.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::sync::Mutex;

use super::{
    error::{Error, PathErrorExt},
    lock::{self, HeldLock},
    objects::Objects,
    options::Options,
    places::{Places, make_folder, own_folder, replace_file},
    seal::Seal,
};

/// The content of the `format` file.
const FORMAT: &str = "gnoma checkpoints 1\n";

/// An open vault. Clones share it; several processes may have it open.
#[derive(Clone)]
pub struct Vault(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) objects: Objects,
    pub(super) options: Options,
    pub(super) size: Mutex<Size>,
    generation: Mutex<Vec<u8>>,
}

/// While this lives nobody deletes objects.
pub(super) struct Session {
    _held: HeldLock,
    /// Changes when objects were deleted.
    pub(super) generation: Vec<u8>,
}

impl Vault {
    /// Opens the vault in `folder`, and creates it if there is none.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or read, does not belong to the person, or was written by a newer version.
    pub fn open(folder: &Path, options: Options) -> Result<Self, Error> {
        make_folder(folder)?;
        let folder = folder.canonicalize().io_context("open", folder)?;
        own_folder(&folder)?;
        let places = Places::create(&folder)?;
        let format = places.format_path();
        match fs::read(&format) {
            Ok(known) if known == FORMAT.as_bytes() => {}
            Ok(other) if other.starts_with(b"gnoma checkpoints ") => {
                return Err(Error::Newer(folder));
            }
            // Absent, or torn by a power failure.
            _ => {
                replace_file(&places, &format, FORMAT.as_bytes(), options.durable)?;
                // In a new one there is nothing to tidy.
                replace_file(&places, &places.last_prune_path(), b"", false)?;
            }
        }
        let generation = Mutex::new(read_generation(&places));
        let seal = Seal::open(&places, options.durable)?;
        let objects = Objects::open(places, seal)?;
        let size = Mutex::default();
        Ok(Self(Arc::new(Inner { objects, options, size, generation })))
    }

    /// Keeps others from deleting, and learns what they deleted before.
    pub(super) fn begin_session(&self) -> Result<Session, Error> {
        let places = &self.0.objects.places;
        let held = lock::lock_shared(&places.lock_path())?;
        let generation = read_generation(places);
        let mut seen = self.0.generation.lock();
        if *seen != generation {
            self.0.objects.refresh()?;
            seen.clone_from(&generation);
        }
        Ok(Session { _held: held, generation })
    }

    /// The folders of all workspaces.
    pub(super) fn workspace_folders(&self) -> Result<Vec<PathBuf>, Error> {
        let all = self.0.objects.places.workspaces_folder();
        Ok(super::objects::list_names(&all)?.into_iter().map(|name| all.join(name)).collect())
    }
}

/// Name of the folder of records within a workspace's folder.
pub(super) const SNAPSHOTS: &str = "snapshots";

/// Before the first deletion it is empty.
fn read_generation(places: &Places) -> Vec<u8> {
    fs::read(places.generation_path()).unwrap_or_default()
}

/// The size of a vault, as far as this process knows.
#[derive(Debug, Default)]
pub(super) struct Size {
    /// Of all objects, once it was counted.
    pub(super) bytes: Option<u64>,
    /// The size that pruning could not get it below, with room to grow.
    pub(super) bearable_bytes: u64,
}

impl Size {
    /// So much was stored.
    pub(super) fn add(&mut self, more_bytes: u64) {
        self.bytes = self.bytes.map(|bytes| bytes.saturating_add(more_bytes));
    }
}

/// The lock of a workspace's folder that whoever keeps it shares, and whoever forgets has alone.
pub(super) fn in_use_path(folder: &Path) -> PathBuf {
    folder.join("in-use")
}
