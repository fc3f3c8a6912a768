//! Places for mounts in folders that others can change: temporary files were put there by earlier commands, so no
//! link among them is followed on the way to where something is mounted.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, unlinkat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create,
        fsconfig_set_string, fsmount, fsopen, move_mount,
    },
};

use super::{
    fault::{Fault, FaultStep},
    raw_syscalls::{mount_attributes::READ_ONLY, set_mount},
};

/// The number of times that a mount point is made again after another process has removed it.
const MAX_TRIES: usize = 4;

/// Folders of the command's own over those among temporary files that lead to something that is mounted:
/// temporary files are shared, and another command could move a mount away with a folder that it lies in.
/// What is itself mounted cannot be moved.
pub(super) struct Covers<'a> {
    temporary: &'a [(PathBuf, PathBuf)],
    /// The paths of all that is mounted.
    parts: &'a BTreeSet<PathBuf>,
    made: BTreeMap<PathBuf, OwnedFd>,
}

impl<'a> Covers<'a> {
    /// None yet. `parts` are the paths of all that is mounted.
    pub(super) fn new(temporary: &'a [(PathBuf, PathBuf)], parts: &'a BTreeSet<PathBuf>) -> Self {
        Self { temporary, parts, made: BTreeMap::new() }
    }

    /// Covers the first folder on the way to `path`, where that leads through temporary files.
    pub(super) fn on_the_way(&mut self, root: &OwnedFd, path: &Path) -> io::Result<()> {
        for (top, _) in self.temporary {
            let Some(mut below) = path.strip_prefix(top).ok().map(Path::components) else {
                continue;
            };
            let Some(first) = below.next().map(|name| top.join(name)) else { continue };
            let is_own = self.made.contains_key(&first) || self.parts.contains(&first);
            if below.next().is_some() && !is_own {
                let cover = empty_folder("755")?;
                attach_copy(&cover, &open_place(root, &first, true)?)?;
                self.made.insert(first, cover);
            }
        }
        Ok(())
    }

    /// Makes the covers read-only, because files put into them would be gone with the command.
    pub(super) fn make_read_only(&self) -> Result<(), Fault> {
        for (path, cover) in &self.made {
            set_mount(cover.as_fd(), READ_ONLY, false)
                .with_step(|| format!("make `{}` read-only", path.display()))?;
        }
        Ok(())
    }
}

/// A new file system in memory, mounted nowhere yet.
pub(super) fn empty_folder(mode: &str) -> io::Result<OwnedFd> {
    let kind = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&kind, "mode", mode)?;
    fsconfig_create(&kind)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

pub(super) fn attach_copy(copy: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(copy, "", place, "", flags)?)
}

/// Opens the place of `path` below `root`, made where it is not there.
pub(super) fn open_place(root: &OwnedFd, path: &Path, is_folder: bool) -> io::Result<OwnedFd> {
    let mut here = root.try_clone()?;
    let mut parts = path.components().filter(|part| *part != Component::RootDir).peekable();
    while let Some(part) = parts.next() {
        if !matches!(part, Component::Normal(_)) {
            return Err(io::Error::other("it goes up with `..`"));
        }
        here = step_into(&here, part.as_os_str().as_ref(), is_folder || parts.peek().is_some())?;
    }
    Ok(here)
}

fn step_into(folder: &OwnedFd, name: &Path, wants_folder: bool) -> io::Result<OwnedFd> {
    for _ in 0..MAX_TRIES {
        match openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        {
            Ok(found) => {
                let kind = FileType::from_raw_mode(fstat(&found)?.st_mode);
                let is_folder = kind == FileType::Directory;
                if is_folder == wants_folder && kind != FileType::Symlink {
                    return Ok(found);
                }
                // Only among temporary files can something else be in the way.
                let kind = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                unlinkat(folder, name, kind)?;
            }
            Err(Errno::NOENT) => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                let made = if wants_folder {
                    mkdirat(folder, name, Mode::from_raw_mode(0o755))
                } else {
                    openat(folder, name, flags, Mode::from_raw_mode(0o600)).map(drop)
                };
                // Another command may have made it meanwhile.
                made.or_else(|error| if error == Errno::EXIST { Ok(()) } else { Err(error) })?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("another program keeps removing it"))
}
