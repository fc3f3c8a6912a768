//! The `/tmp` and `/var/tmp` of a session: folders of its own that its commands share, and nobody else.
//!
//! They are removed when the session ends. A session that was killed leaves them behind; whoever makes
//! the next ones beside them removes those that nobody holds any more.

use std::{
    any::Any,
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// The paths at which commands see the temporary folders, each with the folder's name in the scratch folder.
pub(crate) const PLACES: [(&str, &str); 2] = [(TEMPORARY[0], "tmp"), (TEMPORARY[1], "var-tmp")];
/// The machine's folders for temporary files, in whose place commands find those of their session.
pub const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// True if the machine's temporary files are part of a workspace: a session's own in their place would hide the
/// work.
#[must_use]
pub fn holds_temporary(roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| TEMPORARY.iter().any(|place| Path::new(place).starts_with(root)))
}
/// A folder that stays empty: below a layer there must be two.
pub(crate) const EMPTY: &str = "empty";
/// Held by the session while it lives.
const LOCK: &str = "lock";
/// For the owner alone; inside, anybody may make files.
const OWN: u32 = 0o700;
const SHARED: u32 = 0o1777;
/// Most folders of ended sessions that are looked for, and most entries that are opened up to be removed.
const MAX_LEFT: usize = 256;
const MAX_OPENED: usize = 100_000;
/// The number of times that a name already in use is replaced by another.
const MAX_TRIES: u32 = 64;

/// Returns the real path of the file that commands find at `path`, for sessions whose [`Scratch`] has the folder
/// `folder`; `None` if the path is not among temporary files.
#[must_use]
pub fn scratch_place(folder: &Path, path: &Path) -> Option<PathBuf> {
    let below = |(place, name)| Some(folder.join(name).join(path.strip_prefix(place).ok()?));
    PLACES.into_iter().find_map(below)
}

/// The folders of one session. Removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    _lock: File,
    /// The memory file system that holds the folder, if the folder is not on a disk.
    _held: Option<Arc<dyn Any + Send + Sync>>,
}

impl Scratch {
    /// Makes folders below `base`, which is made where it is not there, and removes those of sessions that
    /// have ended.
    ///
    /// # Errors
    /// They cannot be made there.
    pub fn create_in(base: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(OWN).create(base)?;
        remove_left(base);
        // Commands see real paths.
        Self::create_unique(&fs::canonicalize(base)?, None)
    }

    /// Makes folders in `base`, which has no links and is there as long as `held` is.
    pub(crate) fn create_unique(
        base: &Path,
        held: Option<&Arc<dyn Any + Send + Sync>>,
    ) -> io::Result<Self> {
        for _ in 0..MAX_TRIES {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder = base.join(format!("{}-{number}", std::process::id()));
            match DirBuilder::new().mode(OWN).create(&folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            if let Some(scratch) = Self::create_contents(&folder, held)? {
                return Ok(scratch);
            }
        }
        Err(io::Error::other("its names are all taken"))
    }

    /// `None` when somebody took the new folder for one that was left.
    fn create_contents(
        folder: &Path,
        held: Option<&Arc<dyn Any + Send + Sync>>,
    ) -> io::Result<Option<Self>> {
        let lock = File::create(folder.join(LOCK))?;
        if lock.try_lock().is_err() {
            return Ok(None);
        }
        for (_, name) in PLACES {
            fs::create_dir(folder.join(name))?;
            fs::set_permissions(folder.join(name), Permissions::from_mode(SHARED))?;
        }
        fs::create_dir(folder.join(EMPTY))?;
        Ok(Some(Self { folder: folder.to_owned(), _lock: lock, _held: held.cloned() }))
    }

    /// The folder, for [`crate::Policy::temporary`].
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove_folder(&self.folder);
    }
}

/// Removes what sessions that were killed left.
fn remove_left(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten().take(MAX_LEFT) {
        let is_free = |lock: File| lock.try_lock().is_ok();
        if File::open(entry.path().join(LOCK)).is_ok_and(is_free) {
            remove_folder(&entry.path());
        }
    }
}

/// Removes a folder with all that is in it. What commands closed to their owner is opened first.
fn remove_folder(folder: &Path) {
    if fs::remove_dir_all(folder).is_err() {
        let mut left = MAX_OPENED;
        open_up(folder, &mut left);
        // What still cannot be removed stays until the next session.
        fs::remove_dir_all(folder).ok();
    }
}

fn open_up(folder: &Path, left: &mut usize) {
    let Some(fewer) = left.checked_sub(1) else { return };
    *left = fewer;
    fs::set_permissions(folder, Permissions::from_mode(OWN)).ok();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(folder.path()).unwrap().join("state/scratch");
        (folder, base)
    }

    fn names(base: &Path) -> Vec<PathBuf> {
        fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn scratch_folder_is_unique_per_session_and_removed_with_it() {
        let (_folder, base) = base();
        let (one, two) = (Scratch::create_in(&base).unwrap(), Scratch::create_in(&base).unwrap());
        assert_ne!(one.folder(), two.folder());
        fs::write(one.folder().join("tmp/file"), "x").unwrap();
        let closed = one.folder().join("tmp/closed/below");
        fs::create_dir_all(&closed).unwrap();
        fs::set_permissions(closed.parent().unwrap(), Permissions::from_mode(0o0)).unwrap();
        drop(one);
        assert_eq!(names(&base), [two.folder()]);
        drop(two);
        assert!(names(&base).is_empty());
    }

    #[test]
    fn new_scratch_folder_removes_those_of_killed_sessions_only() {
        let (_folder, base) = base();
        let living = Scratch::create_in(&base).unwrap();
        let killed = base.join("1-1");
        fs::create_dir_all(killed.join("tmp")).unwrap();
        fs::write(killed.join(LOCK), "").unwrap();
        fs::write(killed.join("tmp/file"), "x").unwrap();
        let next = Scratch::create_in(&base).unwrap();
        assert!(!killed.exists());
        assert!(living.folder().join("tmp").is_dir() && next.folder().join("tmp").is_dir());
    }

    #[test]
    fn scratch_folder_has_owner_only_permissions() {
        let (_folder, base) = base();
        let scratch = Scratch::create_in(&base).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(scratch.folder()), OWN);
        assert_eq!(mode(&scratch.folder().join("tmp")), SHARED);
    }
}
