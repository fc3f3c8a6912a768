//! The folder with everything that was kept, for all workspaces.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    error::{At, Error},
    hash::Hash,
    lock::{self, Held},
    objects::{Objects, hold},
    places::{Places, make_folder, own_folder, replace},
    prune::Size,
    seal::Seal,
    workspace::Workspace,
};

/// What the `format` file says.
const FORMAT: &str = "gnoma checkpoints 1\n";

/// How much is kept.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest file that is kept.
    pub file_bytes: u64,
    /// Largest file that is kept although version control ignores it.
    pub ignored_file_bytes: u64,
    /// Size of the vault above which the oldest snapshots go.
    pub store_bytes: u64,
    /// Most snapshots of one workspace.
    pub snapshots: usize,
    /// Age above which snapshots go.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 512 << 20,
            ignored_file_bytes: 1 << 20,
            store_bytes: 4 << 30,
            snapshots: 2_000,
            age: Duration::from_secs(60 * 60 * 24 * 30),
        }
    }
}

/// How a vault works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much is kept.
    pub limits: Limits,
    /// Listen for changes where the system can, instead of looking for them.
    pub watch: bool,
    /// Wait for the disk before a snapshot counts as taken: survives a power failure.
    pub durable: bool,
    /// Objects younger than this are not deleted, wanted or not.
    pub grace: Duration,
    /// The person's own list of what git ignores (`core.excludesFile`).
    pub excludes: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            watch: true,
            durable: true,
            grace: Duration::from_secs(60 * 60),
            excludes: None,
        }
    }
}

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
    _held: Held,
    /// Changes when objects were deleted.
    pub(super) generation: Vec<u8>,
}

impl Vault {
    /// Opens the vault in `folder`, making it where there is none.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or read or is not the person's own, or a newer version wrote it.
    pub fn open(folder: &Path, options: Options) -> Result<Self, Error> {
        make_folder(folder)?;
        let folder = folder.canonicalize().at("open", folder)?;
        own_folder(&folder)?;
        let places = Places::create(&folder)?;
        let format = places.format();
        match fs::read(&format) {
            Ok(known) if known == FORMAT.as_bytes() => {}
            Ok(other) if other.starts_with(b"gnoma checkpoints ") => {
                return Err(Error::Newer(folder));
            }
            // Absent, or torn by a power failure.
            _ => {
                replace(&places, &format, FORMAT.as_bytes(), options.durable)?;
                // In a new one there is nothing to tidy.
                replace(&places, &places.tidied(), b"", false)?;
            }
        }
        let generation = Mutex::new(read_generation(&places));
        let seal = Seal::open(&places, options.durable)?;
        let objects = Objects::open(places, seal)?;
        let size = Mutex::default();
        Ok(Self(Arc::new(Inner { objects, options, size, generation })))
    }

    /// The workspace at `root`.
    ///
    /// # Errors
    ///
    /// `root` is no readable folder, or the vault cannot be written.
    pub fn workspace(&self, root: &Path) -> Result<Workspace, Error> {
        let root = root.canonicalize().at("open", root)?;
        let name = Hash::of(root.as_os_str().as_bytes()).to_string();
        let folder = self.0.objects.places.workspaces().join(name);
        own_folder(&folder)?;
        own_folder(&folder.join(SNAPSHOTS))?;
        let about = folder.join("root");
        if !about.exists() {
            let places = &self.0.objects.places;
            replace(places, &about, root.as_os_str().as_bytes(), false)?;
        }
        Ok(Workspace::new(self.clone(), root, folder))
    }

    /// Keeps others from deleting, and learns what they deleted before.
    pub(super) fn session(&self) -> Result<Session, Error> {
        let places = &self.0.objects.places;
        let held = lock::shared(&places.lock())?;
        let generation = read_generation(places);
        let mut seen = hold(&self.0.generation);
        if *seen != generation {
            self.0.objects.refresh()?;
            seen.clone_from(&generation);
        }
        Ok(Session { _held: held, generation })
    }

    /// The folders of all workspaces.
    pub(super) fn workspace_folders(&self) -> Result<Vec<PathBuf>, Error> {
        let all = self.0.objects.places.workspaces();
        Ok(super::objects::names(&all)?.into_iter().map(|name| all.join(name)).collect())
    }
}

/// Name of the folder of records within a workspace's folder.
pub(super) const SNAPSHOTS: &str = "snapshots";

/// Before the first deletion it is empty.
fn read_generation(places: &Places) -> Vec<u8> {
    fs::read(places.generation()).unwrap_or_default()
}
