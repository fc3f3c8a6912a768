//! One layer: its folder, from the moment it is made until nothing of it is left.

use std::{
    fs::{self, File},
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock, fstatvfs};

use super::{
    change::{Changes, LayerChange, NodeKind},
    error::{KeepError, LayerError, LayerStep},
    files,
    journal::{Journal, KeepRoot},
    keep::{self, KeepFailure},
    list::LayerReader,
    plan, reset,
    stamp::{FileTime, Stamp},
    steps::StepCallback,
};
use crate::policy::Overlay;

/// Holds the lock of whoever uses a layer.
pub(super) const LOCK: &str = "lock";
/// The name of the folder for files that are moved out of the way, if the file system allows it.
const ASIDE: &str = "aside";

/// A layer over some folders. Dropped, it is gone with all that is in it; what was kept stays.
#[derive(Debug)]
pub struct Layer {
    folder: PathBuf,
    roots: Vec<PathBuf>,
    began: FileTime,
    /// Held as long as the layer is in use; without it the next start takes the layer away.
    lock: File,
}

impl Layer {
    /// Makes a layer in `folder`, which nobody else knows of.
    pub(super) fn create_in(folder: PathBuf, roots: Vec<PathBuf>) -> Result<Self, LayerError> {
        let made = || {
            fs::create_dir(&folder)?;
            let lock = File::create(folder.join(LOCK))?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            for number in 0..roots.len() {
                fs::create_dir_all(upper_folder(&folder, number))?;
                fs::create_dir(work_folder(&folder, number))?;
            }
            Ok(lock)
        };
        let made: std::io::Result<File> = made();
        let lock = made.with_step(|| format!("make a layer in `{}`", folder.display()))?;
        let mut layer = Self { folder, roots, began: (0, 0), lock };
        layer.record_start()?;
        Ok(layer)
    }

    /// The overlays of a command that writes into this layer.
    #[must_use]
    pub fn overlays(&self) -> Vec<Overlay> {
        let overlay = |(number, at): (usize, &PathBuf)| Overlay {
            is_frozen: false,
            at: at.clone(),
            lower: vec![at.clone()],
            upper: upper_folder(&self.folder, number),
            work: work_folder(&self.folder, number),
        };
        self.roots.iter().enumerate().map(overlay).collect()
    }

    /// Notes that a command begins now: what others change from now on is a conflict.
    ///
    /// # Errors
    /// Where the layer's folder cannot be written.
    pub fn record_start(&mut self) -> Result<(), LayerError> {
        use std::os::unix::fs::MetadataExt;
        // By the clock that files get their times from, which is not everybody's clock.
        let noted = fs::write(self.folder.join("began"), "1")
            .and_then(|()| fs::metadata(self.folder.join("began")));
        let noted = noted.with_step(|| "record when the command starts".to_owned())?;
        self.began = (noted.ctime(), u64::try_from(noted.ctime_nsec()).unwrap_or(0));
        Ok(())
    }

    /// Returns the changes of the command. Call it when no process of the command is left.
    ///
    /// # Errors
    /// Where that cannot be read, or is too much.
    pub fn changes(&self) -> Result<Changes, LayerError> {
        self.changes_but(&|_| false)
    }

    /// The same without paths that are left out, and what lies below those.
    ///
    /// # Errors
    /// As [`changes`](Self::changes).
    pub fn changes_but(&self, left_out: &dyn Fn(&Path) -> bool) -> Result<Changes, LayerError> {
        let mut changes = Changes::default();
        for (root, at) in self.roots.iter().enumerate() {
            let upper = upper_folder(&self.folder, root);
            let reading = LayerReader { root, at, upper: &upper, began: self.began, left_out };
            reading.read_changes(&mut changes)?;
        }
        Ok(changes)
    }

    /// Takes away all that was changed but paths that stay, with what lies below those. They stay only
    /// where the folder they lie in is there without the layer. Returns them.
    ///
    /// # Errors
    /// Where something cannot be taken away.
    pub fn reset_but(&self, stays: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>, LayerError> {
        let mut stayed = Vec::new();
        for (root, at) in self.roots.iter().enumerate() {
            let upper = upper_folder(&self.folder, root);
            reset::reset_upper(&upper, at, stays, &mut stayed)
                .with_step(|| format!("empty the layer over `{}`", at.display()))?;
        }
        Ok(stayed)
    }

    /// Takes one path away, as if it had not been changed.
    ///
    /// # Errors
    /// Where it cannot be.
    pub fn discard_path(&self, path: &Path) -> Result<(), LayerError> {
        for (root, at) in self.roots.iter().enumerate() {
            let Ok(below) = path.strip_prefix(at) else { continue };
            let place = upper_folder(&self.folder, root).join(below);
            reset::remove_entry(&place).with_step(|| format!("discard `{}`", path.display()))?;
        }
        Ok(())
    }

    /// True if the layer's copy of a path, or of anything below it, was changed since the command began.
    #[must_use]
    pub fn has_changed(&self, path: &Path) -> bool {
        self.place_of(path).is_some_and(|place| reset::is_newer(&place, self.began))
    }

    /// Reports whether the layer deletes a path, or some of what lies below it, and holds nothing new there. A folder
    /// of which it has very many entries counts as filled.
    #[must_use]
    pub fn has_only_deletions(&self, path: &Path) -> bool {
        let place = self.place_of(path);
        place.is_some_and(|place| reset::count_deletions(&place).is_ok_and(|all| all > 0))
    }

    /// Returns the path at which the layer keeps its copy of a path, even if there is no copy.
    #[must_use]
    pub fn place_of(&self, path: &Path) -> Option<PathBuf> {
        let mut roots = self.roots.iter().enumerate();
        roots.find_map(|(root, at)| {
            Some(upper_folder(&self.folder, root).join(path.strip_prefix(at).ok()?))
        })
    }

    /// The file that a change is about as it is in the real folder.
    #[must_use]
    pub fn open_before(&self, change: &LayerChange) -> Option<File> {
        let at = files::open_root_folder(self.roots.get(change.root)?).ok()?;
        change.before.and_then(|_| files::open_file(&at, &change.below).ok())
    }

    /// The file that a change is about as the command left it.
    #[must_use]
    pub fn open_after(&self, change: &LayerChange) -> Option<File> {
        let upper = files::open_root_folder(&upper_folder(&self.folder, change.root)).ok()?;
        change.after.and_then(|_| files::open_file(&upper, &change.below).ok())
    }

    /// Returns the target of a link that the command has made or changed.
    #[must_use]
    pub fn link_target(&self, change: &LayerChange) -> Option<PathBuf> {
        if change.node() != NodeKind::Link || change.after.is_none() {
            return None;
        }
        let upper = files::open_root_folder(&upper_folder(&self.folder, change.root)).ok()?;
        files::link_target(&upper, &change.below).ok()
    }

    /// Bytes that are free where the layer lies.
    ///
    /// # Errors
    /// Where that cannot be found out.
    pub fn free_bytes(&self) -> Result<u64, LayerError> {
        let facts = fstatvfs(&self.lock).with_step(|| "look for free space".to_owned())?;
        Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    /// Brings the chosen of the listed changes into the real folders: all of them or, on an error, none.
    /// What is left in the layer is of no more use.
    ///
    /// # Errors
    /// Where somebody else changed one of them meanwhile, or a step fails.
    pub fn apply_changes(
        &mut self,
        changes: &Changes,
        chosen: &dyn Fn(&LayerChange) -> bool,
    ) -> Result<(), KeepError> {
        match self.keep_watched(changes, chosen, &mut || Ok(())) {
            Ok(()) => Ok(()),
            Err(KeepFailure::Error(error)) => Err(error),
            // Nobody halts this one.
            Err(KeepFailure::Halted) => Err(KeepError::Conflict(Vec::new())),
        }
    }

    /// The same, told before each thing that is changed.
    pub(super) fn keep_watched(
        &mut self,
        changes: &Changes,
        chosen: &dyn Fn(&LayerChange) -> bool,
        tick: StepCallback<'_>,
    ) -> Result<(), KeepFailure> {
        let wanted = || changes.list.iter().filter(|change| chosen(change));
        let conflicts: Vec<_> = wanted()
            .filter(|change| changes.conflicts.contains(&change.path))
            .map(|change| change.path.clone())
            .collect();
        if !conflicts.is_empty() {
            return Err(KeepFailure::Error(KeepError::Conflict(conflicts)));
        }
        let steps = plan::plan_steps(&changes.list, chosen);
        if steps.is_empty() {
            return Ok(());
        }
        let roots = self.roots.iter().enumerate();
        let roots = roots.map(|(number, at)| self.keep_root(number, at));
        let journal = Journal { roots: roots.collect::<Result<_, _>>()?, steps };
        keep::apply_journal(&self.folder, journal, tick)
    }

    fn keep_root(&self, number: usize, at: &Path) -> Result<KeepRoot, LayerError> {
        let upper = upper_folder(&self.folder, number);
        let device = |path: &Path| {
            let opened: OwnedFd = files::open_root_folder(path)?;
            files::look_at(&opened).map(|stamp: Stamp| stamp.device)
        };
        let is_same = device(&self.folder)
            .and_then(|here| Ok(here == device(at)?))
            .with_step(|| format!("look at `{}`", at.display()))?;
        let aside = if is_same {
            self.folder.join(format!("{ASIDE}-{number}"))
        } else {
            // By the lock's number: nobody else's has the same while this one is open.
            let own = format!(".gnoma-keep-{}-{}", std::process::id(), self.lock.as_raw_fd());
            at.join(own)
        };
        Ok(KeepRoot { at: at.to_owned(), upper, aside })
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        // What is being kept is finished at the next start.
        if !matches!(Journal::read(&self.folder), Ok(None)) {
            return;
        }
        // What cannot be removed is tried again at the next start.
        files::remove_all(&self.folder).ok();
    }
}

fn upper_folder(folder: &Path, number: usize) -> PathBuf {
    folder.join(number.to_string()).join("upper")
}

fn work_folder(folder: &Path, number: usize) -> PathBuf {
    folder.join(number.to_string()).join("work")
}
