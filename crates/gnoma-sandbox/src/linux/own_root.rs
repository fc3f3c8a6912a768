//! A root of the command's own, in which only what may be read exists.
//!
//! It is a small file system in memory. What is on the list is mounted into it at its own path,
//! read-only, and so are the folders that can be written; links that lead to them are made anew. Then it
//! becomes the root and the machine's is taken away, so nothing that was not put there can be named.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, Mode, OFlags, fstat, open, symlinkat},
    mount::{MountFlags, OpenTreeFlags, UnmountFlags, mount, unmount},
    process::pivot_root,
};

use super::{
    fault::{Fault, FaultStep},
    mount_points::{Covers, attach_copy, open_place},
    mounts::{
        self, Copies, MountView, SealMounts, build_dev, build_proc, copy_of, copy_of_real,
        enter_folder, in_root, make_read_only, open_mount, place_of_seal,
    },
    overlay,
    paths::{FOLDERS, ShownPlaces, real_home},
    raw_syscalls::{
        mount_attributes::{NO_DEVICES, NO_SETUID, READ_ONLY},
        set_mount,
    },
};
use crate::{policy::Overlay, scratch::EMPTY};

/// The folder in which the new root is built until it becomes the root: every machine has this folder, and no path
/// of the list lies in it.
const NEW_ROOT: &str = "/dev";
/// The folder of processes, which is mounted last.
const PROCESSES: &str = "/proc";
/// Links that are always there.
const LINKS: [(&str, &str); 2] = [("/var/run", "/run"), ("/var/lock", "/run/lock")];

/// Folders that only the system's own programs write.
const OF_SYSTEM: [&str; 8] = ["/bin", "/boot", "/etc", "/lib", "/lib64", "/sbin", "/sys", "/usr"];

/// A mount at some place in the new root.
struct RootPart {
    copy: OwnedFd,
    is_folder: bool,
    attributes: u64,
    /// Without it the command cannot work.
    is_needed: bool,
}

/// Makes the root and changes to it.
pub(super) fn build_root(
    shown: &ShownPlaces,
    view: &MountView<'_>,
    seals: Option<&OwnedFd>,
    processes: u32,
) -> Result<(), Fault> {
    let mut writable = mounts::writable_copies(view)?;
    for (place, folder) in view.temporary {
        let copy = copy_of(folder).with_step(|| format!("copy `{}`", folder.display()))?;
        writable.0.push((place.clone(), copy));
    }
    let devices = Copies::of_devices(view)?;
    let mut parts = readable_parts(shown, view);
    for overlay in view.overlays.iter().filter(|_| view.overlays_come_later) {
        let path = overlay.at.clone();
        let copy = copy_of(&path).with_step(|| format!("copy `{}`", path.display()))?;
        let attributes = READ_ONLY | NO_SETUID | NO_DEVICES;
        let part = RootPart { copy, is_folder: true, attributes, is_needed: true };
        parts.insert(path, part);
    }
    for (path, copy) in writable.0 {
        let is_folder = is_folder(&copy);
        let attributes = NO_SETUID | NO_DEVICES;
        parts.insert(path, RootPart { copy, is_folder, attributes, is_needed: true });
    }
    make_mounts_private()?;
    mount("tmpfs", NEW_ROOT, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755"))
        .with_step(|| "mount a root".to_owned())?;
    if let Some(seals) = seals {
        // Without them nothing is found there.
        add_served_folders(&mut parts, view, seals).ok();
    }
    fill_root(shown, &parts, view)?;
    let root = Path::new(NEW_ROOT);
    build_dev(&devices, seals, root)?;
    mount_outside_names(view, root)?;
    build_proc(processes, root)?;
    make_read_only(root)?;
    change_to(root)
}

/// Returns mounts of what the command may only read, by path.
fn readable_parts(shown: &ShownPlaces, view: &MountView<'_>) -> BTreeMap<PathBuf, RootPart> {
    let mut parts = BTreeMap::new();
    let views = SocketlessViews::for_view(view);
    for path in &shown.paths {
        let has_layer = view.overlays.iter().any(|overlay| overlay.at == *path);
        let socketless = if has_layer { None } else { views.of_folder(path) };
        let copy = socketless.map_or_else(|| copy_of_real(path), Ok);
        // What cannot be copied is not there, nor what a link has taken the place of.
        if let Ok(copy) = copy {
            let attributes = READ_ONLY | NO_SETUID | NO_DEVICES;
            let is_folder = is_folder(&copy);
            let part = RootPart { copy, is_folder, attributes, is_needed: false };
            parts.insert(path.clone(), part);
        }
    }
    parts
}

/// Adds the folders that lead to what is shown, of which names are found and no list is given. Until `/dev` is built
/// the file system that serves them is in the place of the processes.
fn add_served_folders(
    parts: &mut BTreeMap<PathBuf, RootPart>,
    view: &MountView<'_>,
    seals: &OwnedFd,
) -> io::Result<()> {
    let SealMounts::Served(files) = &view.sealed else { return Ok(()) };
    let top = open(NEW_ROOT, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    attach_copy(seals, &open_place(&top, PROCESSES.as_ref(), true)?)?;
    let served = in_root(NEW_ROOT.as_ref(), PROCESSES);
    let first = files.len() + view.outside.closed.len();
    for (number, (_, folder)) in (first..).zip(&view.outside.folders) {
        let copy = copy_of(&served.join(number.to_string()))?;
        let attributes = READ_ONLY | NO_SETUID | NO_DEVICES;
        let part = RootPart { copy, is_folder: true, attributes, is_needed: false };
        parts.insert(folder.clone(), part);
    }
    Ok(())
}

/// Views of folders in which sockets lead nowhere: seen through a layer, a socket is another file than the one that a
/// program listens at, whenever and by whatever path that was bound.
struct SocketlessViews {
    /// The empty folder that the kernel is given as a second folder below a layer; `None` if sockets cannot be
    /// made.
    empty: Option<PathBuf>,
    /// A layer does not show what is mounted in a folder.
    mounts: String,
}

impl SocketlessViews {
    fn for_view(view: &MountView<'_>) -> Self {
        let folder = view.temporary.first().and_then(|(_, folder)| folder.parent());
        let empty = folder.filter(|_| view.has_local_sockets).map(|folder| folder.join(EMPTY));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self { empty, mounts }
    }

    /// A view of a folder where people or their programs may put sockets, as far as it works there.
    fn of_folder(&self, path: &Path) -> Option<OwnedFd> {
        let empty = self.empty.as_ref()?;
        let is_of_system = OF_SYSTEM.iter().any(|folder| path.starts_with(folder));
        let below = format!(" {}/", path.display());
        if is_of_system || !path.is_dir() || self.mounts.contains(&below) {
            return None;
        }
        let lower = vec![path.to_owned(), empty.clone()];
        overlay::mount_overlay(&Overlay { at: path.to_owned(), lower, ..Overlay::default() }, &[])
            .ok()
    }
}

fn is_folder(copy: &OwnedFd) -> bool {
    fstat(copy).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::Directory)
}

/// Mounts that are made from now on are seen nowhere else.
fn make_mounts_private() -> Result<(), Fault> {
    open_mount("/".as_ref(), OpenTreeFlags::empty())
        .and_then(|root| set_mount(root.as_fd(), 0, true))
        .with_step(|| "keep mounts to itself".to_owned())
}

/// Puts everything in its place, folders before what lies in them.
fn fill_root(
    shown: &ShownPlaces,
    parts: &BTreeMap<PathBuf, RootPart>,
    view: &MountView<'_>,
) -> Result<(), Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = || open(NEW_ROOT, flags, Mode::empty()).with_step(|| "open a root".to_owned());
    let mut root = open()?;
    // A home is where programs start from, be it empty.
    for path in FOLDERS.map(PathBuf::from).into_iter().chain(real_home()) {
        open_place(&root, &path, true).with_step(|| format!("make `{}`", path.display()))?;
    }
    let mounted = parts.keys().cloned().collect();
    // In a folder that is served nothing can be made either, but on a name of it something can be mounted.
    let served = view.outside.folders.iter().filter(|(_, folder)| parts.contains_key(folder));
    let served = served.map(|(_, folder)| (folder.clone(), PathBuf::new()));
    let covered: Vec<_> = view.temporary.iter().cloned().chain(served).collect();
    let mut covers = Covers::new(&covered, &mounted);
    for (path, part) in parts {
        let placed = set_mount(part.copy.as_fd(), part.attributes, true)
            .and_then(|()| covers.on_the_way(&root, path))
            .and_then(|()| open_place(&root, path, part.is_folder))
            .and_then(|place| attach_copy(&part.copy, &place));
        if part.is_needed {
            placed.with_step(|| format!("make `{}` writable", path.display()))?;
        }
        if path.parent().is_none() {
            // All of the machine was asked for, and lies over what was there.
            root = open()?;
        }
    }
    make_served_home(&root, view, &mut covers);
    let fixed = LINKS.iter().map(|(name, target)| (Path::new(name), Path::new(target)));
    let found = shown.links.iter().map(|(name, target)| (name.as_path(), target.as_path()));
    for (name, target) in fixed.chain(found) {
        // Where a folder was mounted its links are in it.
        covers.on_the_way(&root, name).and_then(|()| make_link(&root, name, target)).ok();
    }
    covers.make_read_only()
}

/// Makes the home in a folder that is served, because that lies over the one that was made before.
fn make_served_home(root: &OwnedFd, view: &MountView<'_>, covers: &mut Covers<'_>) {
    let Some(home) = real_home() else { return };
    let mut folders = view.outside.folders.iter().map(|(_, folder)| folder);
    if folders.any(|folder| home.starts_with(folder) && home != *folder) {
        let inside = home.join(EMPTY);
        covers.on_the_way(root, &inside).and_then(|()| open_place(root, &home, true)).ok();
    }
}

/// Mounts what stands for names outside of what is shown, as far as no folder with them is served. What cannot be
/// mounted is not there.
fn mount_outside_names(view: &MountView<'_>, root: &Path) -> Result<(), Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = open(root, flags, Mode::empty()).with_step(|| "open a root".to_owned())?;
    let first = match &view.sealed {
        SealMounts::Served(files) => files.len(),
        SealMounts::Masked(_) => return Ok(()),
    };
    let names = (first..).zip(&view.outside.closed);
    for (number, (_, name)) in names.filter(|(_, (_, name))| !view.outside.is_in_folder(name)) {
        copy_of(&in_root(root, place_of_seal(number)))
            .and_then(|copy| attach_copy(&copy, &open_place(&top, name, is_folder(&copy))?))
            .ok();
    }
    Ok(())
}

fn make_link(root: &OwnedFd, name: &Path, target: &Path) -> io::Result<()> {
    let folder = open_place(root, name.parent().unwrap_or("/".as_ref()), true)?;
    Ok(symlinkat(target, folder, name.file_name().unwrap_or_default())?)
}

/// Makes it the root; nothing of the old one is left.
fn change_to(root: &Path) -> Result<(), Fault> {
    enter_folder(root)?;
    pivot_root(".", ".").with_step(|| "change the root".to_owned())?;
    unmount(".", UnmountFlags::DETACH).with_step(|| "remove the old root".to_owned())?;
    enter_folder("/".as_ref())
}
