//! Brings chosen changes into the real folders: all of them, or none.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{
            ffi::OsStrExt,
            fs::{PermissionsExt, symlink},
        },
    },
    path::{Path, PathBuf},
};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid, chownat, mkfifoat, readlinkat,
    utimensat,
};

use super::{
    error::{KeepError, LayerError, LayerStep},
    files,
    journal::{Journal, KeepRoot},
    plan::{Step, StepAct},
    stamp::Stamp,
    steps::{HaltSignal, OpenRoot, StepCallback, StepError, Stepper, aside_names},
};

/// The reason why a keep failed, inside this module.
#[derive(Debug)]
pub(super) enum KeepFailure {
    /// The error for the caller of the keep.
    Error(KeepError),
    /// Everything was to stop, as at the end of the process.
    Halted,
}

impl From<LayerError> for KeepFailure {
    fn from(error: LayerError) -> Self {
        Self::Error(error.into())
    }
}

impl From<HaltSignal> for KeepFailure {
    fn from(HaltSignal: HaltSignal) -> Self {
        Self::Halted
    }
}

/// Writes the journal in `folder` and does what it says.
pub(super) fn apply_journal(
    folder: &Path,
    mut journal: Journal,
    tick: StepCallback<'_>,
) -> Result<(), KeepFailure> {
    for root in &journal.roots {
        make_aside(&root.aside)?;
    }
    let outcome = prepare_files(&mut journal, &mut *tick).and_then(|()| {
        tick()?;
        journal.write(folder).with_step(|| "write the journal".to_owned())?;
        carry_out(folder, &journal, tick)
    });
    if !matches!(outcome, Err(KeepFailure::Halted)) {
        remove_asides(&journal);
    }
    outcome
}

/// Finishes what a journal says, or takes it back; says which: whether it was finished.
pub(super) fn recover_journal(folder: &Path, journal: &Journal) -> Result<bool, KeepFailure> {
    let outcome = carry_out(folder, journal, &mut || Ok(()));
    remove_asides(journal);
    match outcome {
        Ok(()) => Ok(true),
        Err(KeepFailure::Error(KeepError::Conflict(_) | KeepError::Failed(_))) => Ok(false),
        Err(error) => Err(error),
    }
}

fn carry_out(folder: &Path, journal: &Journal, tick: StepCallback<'_>) -> Result<(), KeepFailure> {
    let roots = journal.roots.iter().map(open_root).collect::<Result<Vec<_>, _>>()?;
    let mut stepper = Stepper { roots: &roots, tick, last: None };
    let taken = take_all(&mut stepper, &journal.steps);
    let done = match taken {
        Ok(()) => Ok(()),
        Err((StepError::Halted, _)) => return Err(KeepFailure::Halted),
        Err((hindrance, number)) => Err(taken_back(&mut stepper, journal, hindrance, number)?),
    };
    (stepper.tick)()?;
    Journal::remove(folder).with_step(|| "remove the journal".to_owned())?;
    done.map_err(KeepFailure::Error)
}

fn take_all(stepper: &mut Stepper<'_>, steps: &[Step]) -> Result<(), (StepError, usize)> {
    for (number, step) in steps.iter().enumerate() {
        stepper.apply_step(number, step).map_err(|hindrance| (hindrance, number))?;
    }
    Ok(())
}

/// Takes all steps back. Those that were not taken are no trouble.
fn taken_back(
    stepper: &mut Stepper<'_>,
    journal: &Journal,
    hindrance: StepError,
    number: usize,
) -> Result<KeepError, HaltSignal> {
    let path_of = |step: &Step| {
        let root = journal.roots.get(step.place.0).map(|root| root.at.as_path());
        root.unwrap_or(Path::new("")).join(&step.place.1)
    };
    stepper.last = None;
    let mut torn = Vec::new();
    for (number, step) in journal.steps.iter().enumerate().take(number + 1).rev() {
        match stepper.take_back(number, step) {
            Ok(()) => {}
            Err(StepError::Halted) => return Err(HaltSignal),
            Err(StepError::Conflict | StepError::Failed(_)) => torn.push(path_of(step)),
        }
    }
    let path = journal.steps.get(number).map(path_of).unwrap_or_default();
    Ok(match hindrance {
        StepError::Conflict | StepError::Halted if torn.is_empty() => {
            KeepError::Conflict(vec![path])
        }
        StepError::Failed(error) if torn.is_empty() => KeepError::Failed(error),
        StepError::Failed(error) => KeepError::Torn { error, paths: torn },
        StepError::Conflict | StepError::Halted => {
            let step = format!("keep `{}`", path.display());
            let error = io::Error::other("another program changed it");
            KeepError::Torn { error: LayerError::Io { step, error }, paths: torn }
        }
    })
}

fn open_root(root: &KeepRoot) -> Result<OpenRoot, LayerError> {
    let open = |path: &Path| {
        files::open_root_folder(path).with_step(|| format!("open `{}`", path.display()))
    };
    Ok(OpenRoot { at: open(&root.at)?, upper: open(&root.upper)?, aside: open(&root.aside)? })
}

/// Gets the files ready that are to be put: without what is a layer's own, and on the file system of
/// the real folder.
fn prepare_files(journal: &mut Journal, tick: StepCallback<'_>) -> Result<(), KeepFailure> {
    let Journal { roots, steps } = journal;
    let opened = roots.iter().map(open_root).collect::<Result<Vec<_>, _>>()?;
    let moves = opened.iter().map(can_move).collect::<Result<Vec<_>, _>>()?;
    for (number, step) in steps.iter_mut().enumerate() {
        let StepAct::Put { new, copied, .. } = &mut step.act else { continue };
        let doing = || format!("get `{}` ready", step.place.1.display());
        let root = step.place.0;
        let (Some(root), Some(can_move)) = (opened.get(root), moves.get(root)) else { continue };
        let (above, name) = files::split_path(&step.place.1);
        let folder = files::open_folder(&root.upper, above).with_step(doing)?;
        let there = files::stat_entry(&folder, name).with_step(doing)?;
        let Some(there) = there.filter(|there| there.inode == *new) else {
            let error = io::Error::other("it is not in the layer any more");
            return Err(LayerError::Io { step: doing(), error }.into());
        };
        tick()?;
        files::strip_layer_marks(&folder, name, &there).with_step(doing)?;
        if !can_move {
            let to = aside_names(number).1;
            *new = copy_entry((&folder, name), &there, &root.aside, &to).with_step(doing)?;
            *copied = true;
        }
    }
    Ok(())
}

/// True if a file of the layer can be moved to the real folder by one call.
fn can_move(root: &OpenRoot) -> Result<bool, LayerError> {
    let device = |folder: &OwnedFd| {
        files::look_at(folder)
            .map(|stamp| stamp.device)
            .with_step(|| "compare file systems".to_owned())
    };
    Ok(device(&root.upper)? == device(&root.aside)?)
}

/// Copies an entry with its permissions and times; returns the number of the copy.
fn copy_entry(
    (folder, name): (&OwnedFd, &OsStr),
    there: &Stamp,
    to: &OwnedFd,
    to_name: &OsStr,
) -> io::Result<u64> {
    let place = PathBuf::from(format!("/proc/self/fd/{}", to.as_raw_fd())).join(to_name);
    match there.file_type() {
        FileType::Symlink => {
            let target = readlinkat(folder, name, Vec::new())?;
            symlink(OsStr::from_bytes(target.as_bytes()), &place)?;
        }
        FileType::Fifo => mkfifoat(to, to_name, Mode::from_raw_mode(0o600))?,
        _ => {
            let mut from = files::open_file(folder, Path::new(name))?;
            io::copy(&mut from, &mut File::create_new(&place)?)?;
        }
    }
    let (user, group) = (Uid::from_raw(there.owner.0), Gid::from_raw(there.owner.1));
    // Only root can give files away; everybody else owns what a command of theirs made.
    chownat(to, to_name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).ok();
    if there.file_type() != FileType::Symlink {
        fs::set_permissions(&place, fs::Permissions::from_mode(there.mode & 0o1777))?;
    }
    let time = |(seconds, nanoseconds): (i64, u64)| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or(0),
    };
    let times =
        Timestamps { last_access: time(there.written), last_modification: time(there.written) };
    utimensat(CWD, &place, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    files::stat_entry(to, to_name)?
        .map(|copy| copy.inode)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn make_aside(aside: &Path) -> Result<(), LayerError> {
    match fs::create_dir(aside) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(error).with_step(|| format!("make `{}`", aside.display()))
        }
        _ => Ok(()),
    }
}

/// Removes the folders of files that were moved out of the way. Files that cannot be removed are found later and
/// removed with their layer.
fn remove_asides(journal: &Journal) {
    for root in &journal.roots {
        files::remove_all(&root.aside).ok();
    }
}
