//! Where the layers of a workspace lie, and what earlier processes left there.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, XattrFlags, flock, removexattr, setxattr};

use super::{
    differences::Difference,
    error::{KeepError, LayerAttemptError, LayerError, LayerStep, SiteError},
    files,
    folder::{LOCK, Layer},
    journal::Journal,
    keep::{self, KeepFailure},
};
use crate::{policy::Policy, session_sandbox::SessionSandbox};

/// Held while layers are made and taken away.
const SITE_LOCK: &str = "layers.lock";
/// Set and removed again, to see whether it can be.
const ATTRIBUTE: &str = "user.overlay.gnoma";
/// The number of times that another name is tried for a layer.
const MAX_NAMES: usize = 1024;
/// Writes, renames and removes a file in a view; all of it stays in the layer.
const ATTEMPT: &str = "set -e; it=.gnoma-attempt-$$; echo 1 > $it; mv $it $it.moved; rm $it.moved";

/// A folder for layers in which layers over the workspace are known to work.
#[derive(Clone, Debug)]
pub struct Site {
    folder: PathBuf,
}

/// The result of recovering a keep that a killed process had begun.
#[derive(Debug)]
pub enum KeepRecovery {
    /// All of it was kept.
    Finished,
    /// The keep was undone: nothing of it was kept.
    Undone,
    /// The keep could be neither finished nor undone.
    Torn(KeepError),
}

impl Site {
    /// A folder in which layers lie. Whether they work there is not known.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The first of the folders in which a layer over `root` works: one is made, and a command writes,
    /// renames and removes a file in it.
    ///
    /// # Errors
    /// The workspace has a file system mounted in it, or a layer works in none of the folders.
    pub fn find_usable(
        root: &Path,
        folders: &[PathBuf],
        walls: &SessionSandbox,
    ) -> Result<Self, SiteError> {
        if let Some(mount) = mount_below(root) {
            return Err(SiteError::Mounted(Difference::SubMount(mount)));
        }
        let mut reasons = Vec::new();
        for folder in folders {
            let site = Self::in_folder(folder.clone());
            match site.works_over(root, walls) {
                Ok(()) => return Ok(site),
                Err(why) => reasons.push((folder.clone(), why)),
            }
        }
        Err(if reasons.is_empty() { SiteError::NoFolder } else { SiteError::Unusable(reasons) })
    }

    /// Checks that a layer works over a folder: it makes one, and a command writes, renames and removes a file in
    /// it.
    ///
    /// # Errors
    /// The layer cannot be made, its files cannot have attributes, or the command fails.
    pub fn works_over(&self, root: &Path, walls: &SessionSandbox) -> Result<(), LayerAttemptError> {
        let layer = self.create_layer(vec![root.to_owned()])?;
        let overlays = layer.overlays();
        for overlay in &overlays {
            // Where the kernel cannot note that nothing below a folder shows through, folders could not be replaced.
            setxattr(&overlay.upper, ATTRIBUTE, b"y", XattrFlags::empty())
                .and_then(|()| removexattr(&overlay.upper, ATTRIBUTE))
                .map_err(|error| LayerAttemptError::Attributes(error.into()))?;
        }
        let policy =
            Policy { writable: vec![root.to_owned()], overlays, alone: true, ..Policy::default() };
        let mut command = walls.command("/bin/sh", ["-c", ATTEMPT], &policy);
        let ended = command.current_dir(root).stdin(std::process::Stdio::null()).output();
        let ended = ended.map_err(LayerAttemptError::Start)?;
        if ended.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let line = said.lines().next().unwrap_or("it failed without a message");
        Err(LayerAttemptError::Command(line.trim().to_owned()))
    }

    /// Makes a layer over these folders, whose paths hold no links.
    ///
    /// # Errors
    /// Where its folder cannot be made.
    pub fn create_layer(&self, roots: Vec<PathBuf>) -> Result<Layer, LayerError> {
        let _lock = self.lock()?;
        for number in 0..MAX_NAMES {
            let folder = self.folder.join(format!("{}-{number}", std::process::id()));
            if folder.symlink_metadata().is_err() {
                return Layer::create_in(folder, roots);
            }
        }
        let error = io::Error::other("too many layers are in use");
        Err(LayerError::Io { step: "make a layer".to_owned(), error })
    }

    /// Finishes or undoes what killed processes were keeping, and removes the layers they left.
    ///
    /// # Errors
    /// Where the folder of layers cannot be used.
    pub fn recover_layers(&self) -> Result<Vec<KeepRecovery>, LayerError> {
        let _lock = self.lock()?;
        let entries = fs::read_dir(&self.folder).with_step(|| self.describe_step("read"))?;
        let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        Ok(folders.filter_map(|folder| left_behind(&folder)).collect())
    }

    fn lock(&self) -> Result<File, LayerError> {
        let locked = || {
            fs::create_dir_all(&self.folder)?;
            let lock = File::create(self.folder.join(SITE_LOCK))?;
            flock(&lock, FlockOperation::LockExclusive)?;
            Ok(lock)
        };
        let locked: io::Result<File> = locked();
        locked.with_step(|| self.describe_step("use"))
    }

    fn describe_step(&self, verb: &str) -> String {
        format!("{verb} `{}`", self.folder.display())
    }
}

/// Takes care of a layer that nobody uses any more.
fn left_behind(folder: &Path) -> Option<KeepRecovery> {
    if let Ok(lock) = File::open(folder.join(LOCK)) {
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
    }
    let recovered = match Journal::read(folder) {
        Ok(None) => None,
        Ok(Some(journal)) => Some(match keep::recover_journal(folder, &journal) {
            Ok(true) => KeepRecovery::Finished,
            Ok(false) => KeepRecovery::Undone,
            Err(KeepFailure::Error(error)) => KeepRecovery::Torn(error),
            Err(KeepFailure::Halted) => return None,
        }),
        Err(error) => {
            let step = format!("read the journal in `{}`", folder.display());
            // It may tell a person what was to be kept: it stays.
            return Some(KeepRecovery::Torn(KeepError::Failed(LayerError::Io { step, error })));
        }
    };
    files::remove_all(folder).ok();
    recovered
}

/// A file system that is mounted below a folder.
fn mount_below(root: &Path) -> Option<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let mut points = points.map(|point| PathBuf::from(unescape_mount_point(point)));
    points.find(|point| point != root && point.starts_with(root))
}

/// A path as the table of mounts shows it: spaces and their like in octal.
fn unescape_mount_point(point: &str) -> String {
    let known = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    known.iter().fold(point.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_below_finds_mount_points_and_unescapes_their_names() {
        assert!(mount_below(Path::new("/")).is_some());
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(mount_below(empty.path()), None);
        assert_eq!(unescape_mount_point("/a\\040b\\134c"), "/a b\\c");
    }
}
