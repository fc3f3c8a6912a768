//! Takes steps, and takes them back. Whether a step is done is told by what lies in the layer, where
//! nobody else works: so a step can be tried again after its process was killed.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Gid, Mode, RenameFlags, Uid, chmod, chown, mkdirat, renameat_with, unlinkat},
    io::Errno,
};

use super::{
    error::{LayerError, LayerStep},
    files,
    plan::{Access, Step, StepAct},
    stamp::Stamp,
};

/// Is told before anything is changed; an error stops everything there, as the end of the process would.
pub(super) type StepCallback<'a> = &'a mut dyn FnMut() -> Result<(), HaltSignal>;

/// Everything was to stop.
#[derive(Debug)]
pub(super) struct HaltSignal;

/// The reason why a step was not taken.
#[derive(Debug)]
pub(super) enum StepError {
    /// Somebody else has been there.
    Conflict,
    /// The system refused it.
    Failed(LayerError),
    /// Everything was to stop.
    Halted,
}

impl From<HaltSignal> for StepError {
    fn from(HaltSignal: HaltSignal) -> Self {
        Self::Halted
    }
}

impl From<LayerError> for StepError {
    fn from(error: LayerError) -> Self {
        Self::Failed(error)
    }
}

/// The folders of a root.
pub(super) struct OpenRoot {
    /// The real folder, opened.
    pub(super) at: OwnedFd,
    /// The folder of the layer that took the changes.
    pub(super) upper: OwnedFd,
    /// Takes what is moved out of the way. On the real one's file system.
    pub(super) aside: OwnedFd,
}

/// Takes steps on open roots.
pub(super) struct Stepper<'a> {
    pub(super) roots: &'a [OpenRoot],
    pub(super) tick: StepCallback<'a>,
    /// The last folder that was opened: neighbours come one after the other.
    pub(super) last: Option<((usize, PathBuf), OwnedFd)>,
}

/// Names of what is put aside for a step: what was there, and what lies ready.
pub(super) fn aside_names(number: usize) -> (OsString, OsString) {
    (format!("old-{number}").into(), format!("new-{number}").into())
}

type StepOutcome = Result<(), StepError>;

impl Stepper<'_> {
    /// Takes the step, unless it is taken.
    pub(super) fn apply_step(&mut self, number: usize, step: &Step) -> StepOutcome {
        match &step.act {
            StepAct::Remove(before) => self.remove(number, step, before),
            StepAct::Folder(access) => self.make_folder(step, *access),
            StepAct::Put { new, replaces, copied } => {
                let from = self.find_source(number, step, *copied)?;
                self.place_file(step, &from, *new, replaces.as_ref())
            }
            StepAct::Mode { from, to } => self.set_mode(step, *from, *to),
        }
    }

    /// Takes the step back, if it was taken. A conflict says that what it made is not there any more.
    pub(super) fn take_back(&mut self, number: usize, step: &Step) -> StepOutcome {
        match &step.act {
            StepAct::Remove(_) => self.bring_back(number, step),
            StepAct::Folder(_) => self.unmake_folder(step),
            StepAct::Put { new, replaces, copied } => {
                let from = self.find_source(number, step, *copied)?;
                self.withdraw_file(step, &from, *new, replaces.is_some())
            }
            StepAct::Mode { from, to } => self.set_mode(step, *to, *from),
        }
    }

    fn step_root(&self, step: &Step) -> Result<&OpenRoot, StepError> {
        let missing = || io::Error::other("there is no such root");
        Ok(self.roots.get(step.place.0).ok_or_else(missing).with_step(|| describe_step(step))?)
    }

    /// The real folder that a step works in.
    fn open_parent(&mut self, step: &Step) -> Result<OwnedFd, StepError> {
        let (above, _) = files::split_path(&step.place.1);
        let is_last = |place: &(usize, PathBuf)| place.0 == step.place.0 && place.1 == above;
        if let Some((place, opened)) = &self.last
            && is_last(place)
        {
            return Ok(opened.try_clone().with_step(|| describe_step(step))?);
        }
        let opened = match files::open_folder(&self.step_root(step)?.at, above) {
            Ok(opened) => opened,
            Err(error) if is_gone(&error) => return Err(StepError::Conflict),
            Err(error) => return Err(step_failure(step, error)),
        };
        let kept = opened.try_clone().with_step(|| describe_step(step))?;
        self.last = Some(((step.place.0, above.to_owned()), kept));
        Ok(opened)
    }

    fn find_source(
        &self,
        number: usize,
        step: &Step,
        copied: bool,
    ) -> Result<NamedEntry, StepError> {
        let root = self.step_root(step)?;
        if copied {
            let folder = root.aside.try_clone().with_step(|| describe_step(step))?;
            return Ok(NamedEntry { folder, name: aside_names(number).1 });
        }
        let (above, name) = files::split_path(&step.place.1);
        let folder = files::open_folder(&root.upper, above).with_step(|| describe_step(step))?;
        Ok(NamedEntry { folder, name: name.to_owned() })
    }

    fn place_file(
        &mut self,
        step: &Step,
        from: &NamedEntry,
        new: u64,
        replaces: Option<&Stamp>,
    ) -> StepOutcome {
        if from.stat_entry(step)?.is_none_or(|there| there.inode != new) {
            return Ok(());
        }
        let to = NamedEntry { folder: self.open_parent(step)?, name: name_of(step) };
        let there = to.stat_entry(step)?;
        (self.tick)()?;
        let Some(before) = replaces else {
            return from.rename(&to, RenameFlags::NOREPLACE, step);
        };
        if !there.is_some_and(|there| there.is_untouched(before)) {
            return Err(StepError::Conflict);
        }
        from.rename(&to, RenameFlags::EXCHANGE, step)?;
        if from.stat_entry(step)?.is_some_and(|old| old.is_same_file(before)) {
            return Ok(());
        }
        from.rename(&to, RenameFlags::EXCHANGE, step)?;
        Err(StepError::Conflict)
    }

    fn withdraw_file(
        &mut self,
        step: &Step,
        from: &NamedEntry,
        new: u64,
        replaced: bool,
    ) -> StepOutcome {
        if from.stat_entry(step)?.is_some_and(|there| there.inode == new) {
            return Ok(());
        }
        let to = NamedEntry { folder: self.open_parent(step)?, name: name_of(step) };
        if to.stat_entry(step)?.is_none_or(|there| there.inode != new) {
            return Err(StepError::Conflict);
        }
        (self.tick)()?;
        let how = if replaced { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        to.rename(from, how, step)
    }

    fn old_file(&self, number: usize, step: &Step) -> Result<NamedEntry, StepError> {
        let folder = self.step_root(step)?.aside.try_clone().with_step(|| describe_step(step))?;
        Ok(NamedEntry { folder, name: aside_names(number).0 })
    }

    fn remove(&mut self, number: usize, step: &Step, before: &Stamp) -> StepOutcome {
        let old = self.old_file(number, step)?;
        if old.stat_entry(step)?.is_some() {
            return Ok(());
        }
        let from = NamedEntry { folder: self.open_parent(step)?, name: name_of(step) };
        // The time of a folder has moved with what was removed from it.
        let is_same = |there: Stamp| {
            there.is_untouched(before) || (before.is_folder() && is_same_folder(&there, before))
        };
        match from.stat_entry(step)? {
            // Somebody else deleted it as well.
            None => return Ok(()),
            Some(there) if is_same(there) => {}
            Some(_) => return Err(StepError::Conflict),
        }
        (self.tick)()?;
        from.rename(&old, RenameFlags::NOREPLACE, step)?;
        let is_it = match old.stat_entry(step)? {
            Some(there) if before.is_folder() => {
                is_same_folder(&there, before) && old.is_empty(step)?
            }
            Some(there) => there.is_same_file(before),
            None => false,
        };
        if is_it {
            return Ok(());
        }
        old.rename(&from, RenameFlags::NOREPLACE, step)?;
        Err(StepError::Conflict)
    }

    fn bring_back(&mut self, number: usize, step: &Step) -> StepOutcome {
        let old = self.old_file(number, step)?;
        if old.stat_entry(step)?.is_none() {
            return Ok(());
        }
        let to = NamedEntry { folder: self.open_parent(step)?, name: name_of(step) };
        (self.tick)()?;
        self.last = None;
        old.rename(&to, RenameFlags::NOREPLACE, step)
    }

    fn make_folder(&mut self, step: &Step, access: Access) -> StepOutcome {
        /// Bits that a new folder may have from the one it lies in.
        const GROUP: u32 = 0o2000;
        let parent = self.open_parent(step)?;
        let name = name_of(step);
        (self.tick)()?;
        match mkdirat(&parent, &name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return fail_step(step, error),
        }
        let made = files::stat_entry(&parent, &name).with_step(|| describe_step(step))?;
        let Some(made) = made.filter(Stamp::is_folder) else { return Err(StepError::Conflict) };
        let wanted = (access.mode & 0o1777) | (made.mode & GROUP);
        if made.mode != wanted || made.owner != access.owner {
            let folder =
                files::open_folder(&parent, Path::new(&name)).with_step(|| describe_step(step))?;
            set_access(&folder, made, Access { mode: wanted, ..access }).or_else(|error| {
                // A folder of one's own is what is wanted where no other can be given.
                if made.owner == access.owner { fail_step(step, error) } else { Ok(()) }
            })?;
        }
        Ok(())
    }

    fn unmake_folder(&mut self, step: &Step) -> StepOutcome {
        let parent = match self.open_parent(step) {
            Err(StepError::Conflict) => return Ok(()),
            parent => parent?,
        };
        (self.tick)()?;
        self.last = None;
        match unlinkat(&parent, name_of(step), AtFlags::REMOVEDIR) {
            // What somebody else has put there is theirs.
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(()),
            Err(error) => fail_step(step, error),
        }
    }

    fn set_mode(&mut self, step: &Step, from: Access, to: Access) -> StepOutcome {
        let parent = self.open_parent(step)?;
        let name = name_of(step);
        let there = files::stat_entry(&parent, &name).with_step(|| describe_step(step))?;
        let Some(there) = there.filter(Stamp::is_folder) else { return Err(StepError::Conflict) };
        let is = |access: Access| (there.mode, there.owner) == (access.mode, access.owner);
        let to = Access { mode: to.mode & 0o1777 | there.mode & 0o6000, ..to };
        if is(to) {
            return Ok(());
        }
        // A step back finds the permissions as they were set, without what is never lent.
        let from = Access { mode: from.mode & 0o1777 | there.mode & 0o6000, ..from };
        if !is(from) {
            return Err(StepError::Conflict);
        }
        (self.tick)()?;
        let folder =
            files::open_folder(&parent, Path::new(&name)).with_step(|| describe_step(step))?;
        set_access(&folder, there, to).or_else(|error| fail_step(step, error))
    }
}

/// An entry of an open folder.
pub(super) struct NamedEntry {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
}

impl NamedEntry {
    fn stat_entry(&self, step: &Step) -> Result<Option<Stamp>, StepError> {
        Ok(files::stat_entry(&self.folder, &self.name).with_step(|| describe_step(step))?)
    }

    fn is_empty(&self, step: &Step) -> Result<bool, StepError> {
        let opened = files::open_folder(&self.folder, Path::new(&self.name))
            .with_step(|| describe_step(step))?;
        Ok(files::entry_names(&opened).with_step(|| describe_step(step))?.is_empty())
    }

    fn rename(&self, to: &Self, how: RenameFlags, step: &Step) -> StepOutcome {
        match renameat_with(&self.folder, &self.name, &to.folder, &to.name, how) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST | Errno::NOENT | Errno::NOTEMPTY) => Err(StepError::Conflict),
            Err(error) => fail_step(step, error),
        }
    }
}

fn is_same_folder(one: &Stamp, other: &Stamp) -> bool {
    (one.device, one.inode, one.kind) == (other.device, other.inode, other.kind)
}

fn set_access(folder: &OwnedFd, there: Stamp, to: Access) -> rustix::io::Result<()> {
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    if there.owner != to.owner {
        let (user, group) = (Uid::from_raw(to.owner.0), Gid::from_raw(to.owner.1));
        chown(path.as_str(), Some(user), Some(group))?;
    }
    chmod(path.as_str(), Mode::from_raw_mode(to.mode))
}

fn name_of(step: &Step) -> OsString {
    OsStr::to_owned(files::split_path(&step.place.1).1)
}

fn describe_step(step: &Step) -> String {
    format!("keep `{}`", step.place.1.display())
}

fn fail_step(step: &Step, error: Errno) -> StepOutcome {
    Err(step_failure(step, error.into()))
}

fn step_failure(step: &Step, error: io::Error) -> StepError {
    StepError::Failed(LayerError::Io { step: describe_step(step), error })
}

/// A folder on the way is gone, or has become something else.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}
