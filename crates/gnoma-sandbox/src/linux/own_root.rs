//! A root of the command's own, in which only what may be read exists.
//!
//! It is a small file system in memory. What is on the list is mounted into it at its own path,
//! read-only, and so are the folders that can be written; links that lead to them are made anew. Then it
//! becomes the root and the machine's is taken away, so nothing that was not put there can be named.
//!
//! The folders for temporary files were filled by earlier commands: no link in them is followed on the
//! way to where something is mounted.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, open, openat, symlinkat, unlinkat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags,
        UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount, move_mount,
        unmount,
    },
    process::pivot_root,
};

use super::{
    fault::{Fault, FaultStep},
    mounts::{
        self, Copies, MountView, at, build_dev, build_proc, copy_of, copy_of_real, enter, seal,
    },
    paths::ShownPlaces,
    raw::{
        mount_attributes::{NO_DEVICES, NO_SETUID, READ_ONLY},
        set_mount,
    },
};

/// Where the new root stands until it is one: every machine has this folder, and none of the list
/// lies in it.
const NEW_ROOT: &str = "/dev";
/// Folders that are always there.
const FOLDERS: [&str; 6] = ["/dev", "/proc", "/run", "/tmp", "/var", "/var/tmp"];
/// Links that are always there.
const LINKS: [(&str, &str); 2] = [("/var/run", "/run"), ("/var/lock", "/run/lock")];
/// How often a place is made that somebody else takes away.
const MAX_TRIES: usize = 4;

/// What is mounted somewhere in the new root.
struct RootPart {
    copy: OwnedFd,
    is_folder: bool,
    attributes: u64,
    /// Without it the command cannot work.
    is_needed: bool,
}

/// Makes the root and changes to it.
pub(super) fn build(
    shown: &ShownPlaces,
    view: &MountView<'_>,
    processes: u32,
) -> Result<(), Fault> {
    let mut writable = mounts::writable(view)?;
    for (place, folder) in view.temporary {
        let copy = copy_of(folder).step(|| format!("copy `{}`", folder.display()))?;
        writable.0.push((place.clone(), copy));
    }
    let devices = Copies::of_devices(view)?;
    let mut parts = BTreeMap::new();
    for path in &shown.paths {
        // What cannot be copied is not there, nor what a link has taken the place of.
        if let Ok(copy) = copy_of_real(path) {
            let attributes = READ_ONLY | NO_SETUID | NO_DEVICES;
            let is_folder = is_folder(&copy);
            let part = RootPart { copy, is_folder, attributes, is_needed: false };
            parts.insert(path.clone(), part);
        }
    }
    for overlay in view.overlays.iter().filter(|_| view.overlays_come_later) {
        let path = overlay.at.clone();
        let copy = copy_of(&path).step(|| format!("copy `{}`", path.display()))?;
        let attributes = READ_ONLY | NO_SETUID | NO_DEVICES;
        let part = RootPart { copy, is_folder: true, attributes, is_needed: true };
        parts.insert(path, part);
    }
    for (path, copy) in writable.0 {
        let is_folder = is_folder(&copy);
        let attributes = NO_SETUID | NO_DEVICES;
        parts.insert(path, RootPart { copy, is_folder, attributes, is_needed: true });
    }
    keep_to_itself()?;
    mount("tmpfs", NEW_ROOT, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755"))
        .step(|| "mount a root".to_owned())?;
    fill(shown, &parts, view.temporary)?;
    let root = Path::new(NEW_ROOT);
    build_dev(&devices, root)?;
    build_proc(processes, root)?;
    seal(root)?;
    change_to(root)
}

fn is_folder(copy: &OwnedFd) -> bool {
    fstat(copy).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::Directory)
}

/// Mounts that are made from now on are seen nowhere else.
fn keep_to_itself() -> Result<(), Fault> {
    at("/".as_ref(), OpenTreeFlags::empty())
        .and_then(|root| set_mount(root.as_fd(), 0, true))
        .step(|| "keep mounts to itself".to_owned())
}

/// Puts everything in its place, folders before what lies in them.
fn fill(
    shown: &ShownPlaces,
    parts: &BTreeMap<PathBuf, RootPart>,
    temporary: &[(PathBuf, PathBuf)],
) -> Result<(), Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = || open(NEW_ROOT, flags, Mode::empty()).step(|| "open a root".to_owned());
    let mut root = open()?;
    // A home is where programs start from, be it empty.
    let home = std::env::vars_os().find(|(name, _)| name == "HOME");
    let home = home.and_then(|(_, home)| fs::canonicalize(home).ok());
    for path in FOLDERS.map(PathBuf::from).into_iter().chain(home) {
        place(&root, &path, true).step(|| format!("make `{}`", path.display()))?;
    }
    let mut covers = Covers { temporary, parts, made: BTreeMap::new() };
    for (path, part) in parts {
        let placed = set_mount(part.copy.as_fd(), part.attributes, true)
            .and_then(|()| covers.on_the_way(&root, path))
            .and_then(|()| place(&root, path, part.is_folder))
            .and_then(|place| attach(&part.copy, &place));
        if part.is_needed {
            placed.step(|| format!("make `{}` writable", path.display()))?;
        }
        if path.parent().is_none() {
            // All of the machine was asked for, and lies over what was there.
            root = open()?;
        }
    }
    let fixed = LINKS.iter().map(|(name, target)| (Path::new(name), Path::new(target)));
    let found = shown.links.iter().map(|(name, target)| (name.as_path(), target.as_path()));
    for (name, target) in fixed.chain(found) {
        // Where a folder was mounted its links are in it.
        covers.on_the_way(&root, name).and_then(|()| link(&root, name, target)).ok();
    }
    covers.seal()
}

/// Folders of the command's own over those among temporary files that lead to something that is mounted:
/// temporary files are shared, and another command could move a mount away with a folder that it lies in.
/// What is itself mounted cannot be moved.
struct Covers<'a> {
    temporary: &'a [(PathBuf, PathBuf)],
    parts: &'a BTreeMap<PathBuf, RootPart>,
    made: BTreeMap<PathBuf, OwnedFd>,
}

impl Covers<'_> {
    /// Covers the first folder on the way to `path`, where that leads through temporary files.
    fn on_the_way(&mut self, root: &OwnedFd, path: &Path) -> io::Result<()> {
        for (top, _) in self.temporary {
            let Some(mut below) = path.strip_prefix(top).ok().map(Path::components) else {
                continue;
            };
            let Some(first) = below.next().map(|name| top.join(name)) else { continue };
            let is_own = self.made.contains_key(&first) || self.parts.contains_key(&first);
            if below.next().is_some() && !is_own {
                let cover = empty_folder()?;
                attach(&cover, &place(root, &first, true)?)?;
                self.made.insert(first, cover);
            }
        }
        Ok(())
    }

    /// What is put there would be gone with the command.
    fn seal(&self) -> Result<(), Fault> {
        for (path, cover) in &self.made {
            set_mount(cover.as_fd(), READ_ONLY, false)
                .step(|| format!("make `{}` read-only", path.display()))?;
        }
        Ok(())
    }
}

/// A new file system in memory, mounted nowhere yet.
fn empty_folder() -> io::Result<OwnedFd> {
    let kind = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&kind, "mode", "755")?;
    fsconfig_create(&kind)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn attach(copy: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(copy, "", place, "", flags)?)
}

fn link(root: &OwnedFd, name: &Path, target: &Path) -> io::Result<()> {
    let folder = place(root, name.parent().unwrap_or("/".as_ref()), true)?;
    Ok(symlinkat(target, folder, name.file_name().unwrap_or_default())?)
}

/// Opens the place of `path` below `root`, made where it is not there.
fn place(root: &OwnedFd, path: &Path, is_folder: bool) -> io::Result<OwnedFd> {
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

/// Makes it the root; nothing of the old one is left.
fn change_to(root: &Path) -> Result<(), Fault> {
    enter(root)?;
    pivot_root(".", ".").step(|| "change the root".to_owned())?;
    unmount(".", UnmountFlags::DETACH).step(|| "remove the old root".to_owned())?;
    enter("/".as_ref())
}
