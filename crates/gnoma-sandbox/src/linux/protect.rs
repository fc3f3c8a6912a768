//! Which mounts keep the protected paths as they are, and what stands in for those that are absent.
//!
//! A mount point can be neither renamed nor removed, so a protected path is mounted read-only on
//! itself, and every folder between it and its root is mounted on itself: `.git` cannot be moved away
//! and made anew without its guards. What is absent has nothing to mount on, so its first missing
//! part is made: an empty folder, which git neither shows nor adds, marked by a mode nobody uses.
//! Inside it is read-only; outside it is an ordinary empty folder that others may fill.
//!
//! Somebody outside who replaces a protected file (as `git config` does) takes its mount away; the
//! watch mounts the new one a moment later. That moment is open to a command that waits for it.
//!
//! Each command that relies on a stand-in holds a shared lock on it. A keeper, which leaves the
//! command's process group so that killing the command does not kill it, removes stand-ins when the
//! command is over, nobody else holds them and they are still empty. A keeper that was killed leaves
//! an empty folder; the next command recognises and removes it.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, mkdirat,
        open, openat, statat, unlinkat,
    },
    io::{Errno, read},
    process::{geteuid, setsid},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use super::fault::{Fault, FaultStep};
use crate::policy::STAND_IN_MODE;

/// The number of times that a stand-in that vanishes while it is being locked is made again.
const MAX_TRIES: usize = 16;
/// Deepest protected path below its root.
const MAX_DEPTH: usize = 32;
/// Most links that are followed on the way to a protected path.
const MAX_LINKS: usize = 8;
const MARK: Mode = Mode::from_raw_mode(STAND_IN_MODE);
/// The mode of a stand-in that somebody filled.
const ORDINARY: Mode = Mode::from_raw_mode(0o755);

/// The kind of mount on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathMount {
    /// Itself, so that it can be neither moved nor removed.
    Pinned,
    /// The path itself, read-only.
    ReadOnly,
}

/// The mounts that are needed, parents first, and the stand-ins they rest on.
#[derive(Debug, Default)]
pub(super) struct Protection {
    /// The kind of mount for each path.
    pub(super) holds: BTreeMap<PathBuf, PathMount>,
    /// The empty folders that stand in for absent paths.
    pub(super) stand_ins: Vec<StandIn>,
}

/// An empty folder in the place of something absent. Locked while it is held.
#[derive(Debug)]
pub(super) struct StandIn {
    parent: OwnedFd,
    name: OsString,
    itself: OwnedFd,
}

impl Protection {
    /// Works out the mounts for `protected` below `roots`; makes what is absent.
    pub(super) fn prepare(roots: &[PathBuf], protected: &[PathBuf]) -> Result<Self, Fault> {
        let mut protection = Self::default();
        for path in protected {
            let mut next = Some(path.clone());
            for _ in 0..MAX_LINKS {
                let Some(path) = next.take() else { break };
                next = protection.hold_path(roots, &path)?;
            }
        }
        Ok(protection)
    }

    /// Holds `path`. When a link stands in the way the link is held, and where the rest of the path
    /// lies is returned.
    fn hold_path(&mut self, roots: &[PathBuf], path: &Path) -> Result<Option<PathBuf>, Fault> {
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(Fault::new(
                format!("protect `{}`", path.display()),
                "it goes up with `..`",
            ));
        }
        let below = |root: &&PathBuf| path.strip_prefix(root).is_ok();
        let Some(root) = roots.iter().filter(below).max_by_key(|root| root.as_os_str().len())
        else {
            return Ok(None);
        };
        let relative = path.strip_prefix(root).unwrap_or(path);
        self.walk_path(root, relative).with_step(|| format!("protect `{}`", path.display()))
    }

    fn walk_path(&mut self, root: &Path, relative: &Path) -> io::Result<Option<PathBuf>> {
        let mut here = root.to_owned();
        let mut rest = relative.components();
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut parent = open(root, folder, Mode::empty())?;
        for _ in 0..MAX_DEPTH {
            let Some(name) = rest.next().map(Component::as_os_str) else {
                return Ok(None);
            };
            let is_last = rest.as_path().as_os_str().is_empty();
            here.push(name);
            let Some(kind) = kind_of(&parent, name)? else {
                if self.stand_in(parent, name)? {
                    self.holds.insert(here, PathMount::ReadOnly);
                }
                return Ok(None);
            };
            if kind == FileType::Symlink {
                self.holds.insert(here.clone(), PathMount::ReadOnly);
                return Ok(fs::canonicalize(&here).ok().map(|real| real.join(rest.as_path())));
            }
            if is_last || kind != FileType::Directory {
                // A file where a folder is expected (`.git` of a worktree) says where that is.
                self.holds.insert(here, PathMount::ReadOnly);
                return Ok(None);
            }
            self.holds.entry(here.clone()).or_insert(PathMount::Pinned);
            parent = openat(&parent, name, folder | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Err(io::Error::other("it is nested too deeply"))
    }

    /// Makes a stand-in. Where we may not make it, neither may the command, unless it can give itself
    /// the right to.
    fn stand_in(&mut self, parent: OwnedFd, name: &OsStr) -> io::Result<bool> {
        let is_own = fstat(&parent)?.st_uid == geteuid().as_raw();
        match StandIn::create_locked(parent, name) {
            Ok(stand_in) => self.stand_ins.extend(stand_in),
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_own => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

fn kind_of(parent: &OwnedFd, name: &OsStr) -> io::Result<Option<FileType>> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(facts) if is_stand_in(&facts) => Ok(None),
        Ok(facts) => Ok(Some(FileType::from_raw_mode(facts.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// True if the folder carries the mark of a stand-in. A folder that was filled since carries it too, but all code
/// here leaves that alone: only empty folders can be removed.
fn is_stand_in(facts: &Stat) -> bool {
    /// All but what a parent folder may pass on: its group.
    const MEANT: u32 = 0o1777;
    FileType::from_raw_mode(facts.st_mode) == FileType::Directory
        && facts.st_mode & MEANT == MARK.as_raw_mode()
}

impl StandIn {
    /// Makes and locks a stand-in, or joins those who hold it already. `None` when something else
    /// turned up in its place.
    fn create_locked(parent: OwnedFd, name: &OsStr) -> io::Result<Option<Self>> {
        let opened = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..MAX_TRIES {
            match mkdirat(&parent, name, MARK) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let itself = match openat(&parent, name, opened, Mode::empty()) {
                Ok(itself) => itself,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            // Where there are no locks, commands side by side may remove each other's.
            flock(&itself, FlockOperation::LockShared).ok();
            if !is_stand_in(&fstat(&itself)?) {
                return Ok(None);
            }
            if is_at(&itself, &parent, name) {
                return Ok(Some(Self { parent, name: name.to_owned(), itself }));
            }
        }
        Err(io::Error::other("another program keeps removing it"))
    }

    /// Removes it if this was the last to hold it and nobody put anything in.
    fn remove(&self) {
        let lock = flock(&self.itself, FlockOperation::NonBlockingLockExclusive);
        if lock == Err(Errno::WOULDBLOCK) || !is_at(&self.itself, &self.parent, &self.name) {
            return;
        }
        if unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR).is_err() {
            // It is somebody's now. Failing leaves an odd mode and nothing worse.
            fchmod(&self.itself, ORDINARY).ok();
        }
    }
}

fn is_at(itself: &OwnedFd, parent: &OwnedFd, name: &OsStr) -> bool {
    let same = |a: Stat, b: Stat| a.st_ino == b.st_ino && a.st_dev == b.st_dev;
    match (fstat(itself), statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(itself), Ok(there)) => same(itself, there),
        _ => false,
    }
}

/// The keeper: waits until `lifeline` has no writer left, then removes the stand-ins.
pub(super) fn run_keeper(stand_ins: &[StandIn], lifeline: &OwnedFd) {
    // Staying in the group costs the stand-ins a cleaner if the group is killed, nothing else.
    leave_group().ok();
    // Nothing is ever written; the only thing to read is the end.
    while read(lifeline, &mut [0]) == Err(Errno::INTR) {}
    remove_stand_ins(stand_ins);
}

/// Removes stand-ins that nobody holds or has filled.
pub(super) fn remove_stand_ins(stand_ins: &[StandIn]) {
    for stand_in in stand_ins.iter().rev() {
        stand_in.remove();
    }
}

/// Moves the keeper out of the command's session and away from its standard streams, so that readers of the
/// command's output do not wait for the keeper.
fn leave_group() -> io::Result<()> {
    let nothing = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(nothing.as_fd())?;
    dup2_stdout(nothing.as_fd())?;
    dup2_stderr(nothing.as_fd())?;
    setsid()?;
    Ok(())
}

/// True if a file is at a path, even if it is a link that leads nowhere.
pub(super) fn path_exists(path: &Path) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}
