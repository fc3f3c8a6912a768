//! The file system as a command sees it: all of it read-only, and exceptions.
//!
//! The tree stays where it is (no new root): one call makes every mount read-only, then copies of
//! the writable roots, taken before, are laid over their own paths. `/dev` holds only harmless
//! devices, `/run` only what is needed to look up hosts, and what is hidden or is a socket of the
//! host lies under an empty file or folder without rights. None of it is seen outside: the mounts
//! are this process's own and vanish with it.

use std::{
    collections::BTreeSet,
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{OpenOptionsExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx},
    mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree},
};

use super::{
    fault::{Fault, FaultStep},
    overlay,
    protect::{PathMount, Protection, exists},
    raw::{
        mount_attributes::{NO_DEVICES, NO_SETUID, READ_ONLY},
        set_mount,
    },
};
use crate::policy::Overlay;

/// Devices that can be used by anybody and remember nothing.
pub(super) const HARMLESS_DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Names that programs expect besides devices.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// What is left of `/run`: where names of hosts are looked up, where some systems keep their
/// programs, and where they put drives.
pub(super) const KEPT_OF_RUN: [&str; 10] = [
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/NetworkManager/resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/connman/resolv.conf",
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/wrappers",
    "/run/media",
];

/// The folder that services put their sockets in.
pub(super) const RUN: &str = "/run";

/// What lies over hidden folders and files. Part of the new `/dev`, whose root only we could change.
const EMPTY_FOLDER: &str = "/dev/.empty-folder";
const EMPTY_FILE: &str = "/dev/.empty-file";

/// Everything the mounts are made from. Paths are real ones: no links.
#[derive(Debug)]
pub(super) struct MountView<'a> {
    pub(super) writable: &'a [PathBuf],
    pub(super) overlays: &'a [Overlay],
    pub(super) hidden: &'a [PathBuf],
    pub(super) devices: &'a [PathBuf],
    pub(super) sockets: &'a BTreeSet<PathBuf>,
    pub(super) protection: &'a Protection,
}

/// Builds what need not know what is protected or masked. The process must have a mount namespace of
/// its own and the right to change it.
pub(super) fn build(view: &MountView<'_>) -> Result<(), Fault> {
    let is_overlaid = |path: &PathBuf| view.overlays.iter().any(|overlay| overlay.at == *path);
    let writable: Vec<_> = view.writable.iter().filter(|path| !is_overlaid(path)).collect();
    let mut writable = Copies::of(writable)?;
    // What is made read-only below takes no layer any more.
    writable.0.extend(overlay::mounted(view.overlays)?);
    writable.0.sort_by(|one, other| one.0.cmp(&other.0));
    let devices = HARMLESS_DEVICES.iter().map(Path::new);
    let devices = Copies::of(devices.chain(view.devices.iter().map(PathBuf::as_path)))?;
    make_all_read_only()?;
    let kept_of_run = Copies::of(KEPT_OF_RUN.iter().map(Path::new).filter(|path| exists(path)))?;
    build_dev(&devices)?;
    build_run(&kept_of_run, view.writable)?;
    writable.attach()
}

/// Adds what protects and what masks, and goes where the command shall run.
pub(super) fn finish(view: &MountView<'_>, here: &Path) -> Result<(), Fault> {
    if let Some(path) = view.protection.holds.keys().find(|path| !exists(path)) {
        return Err(Fault::new(format!("protect `{}`", path.display()), "it has just vanished"));
    }
    protect(view.protection)?;
    for path in view.hidden.iter().chain(view.sockets) {
        mask(path).step(|| format!("hide `{}`", path.display()))?;
    }
    // The old working folder still belongs to the read-only tree below.
    enter(here)
}

/// Makes a folder the working folder.
pub(super) fn enter(here: &Path) -> Result<(), Fault> {
    std::env::set_current_dir(here).step(|| format!("enter `{}`", here.display()))
}

/// Mounts the processes of this namespace, as the first process in it.
pub(super) fn build_proc(limit: u32) -> Result<(), Fault> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).step(|| "mount `/proc`".to_owned())?;
    if counts_processes_by_namespace() {
        // A second bound, which also holds for root. Where it cannot be set the first one holds.
        fs::write("/proc/sys/kernel/pid_max", limit.max(MIN_PROCESS_NUMBERS).to_string()).ok();
    }
    let proc = at("/proc".as_ref(), OpenTreeFlags::empty()).step(|| "open `/proc`".to_owned())?;
    set_mount(proc.as_fd(), READ_ONLY, false).step(|| "make `/proc` read-only".to_owned())
}

/// The kernel keeps the first three hundred numbers for itself.
const MIN_PROCESS_NUMBERS: u32 = 512;

/// Since Linux 6.14 the number of processes is bound for each namespace. Before, the same file
/// bounds the whole machine and must not be touched.
fn counts_processes_by_namespace() -> bool {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

/// Mounts what protects, and mounts it again where somebody outside has replaced a file and with it
/// the mount.
pub(super) fn protect(protection: &Protection) -> Result<(), Fault> {
    for (path, hold) in &protection.holds {
        if exists(path) && !is_held(path) {
            hold_on(path, *hold).step(|| format!("protect `{}`", path.display()))?;
        }
    }
    Ok(())
}

fn hold_on(path: &Path, hold: PathMount) -> io::Result<()> {
    let copy = copy_of(path)?;
    match hold {
        PathMount::Pinned => {}
        PathMount::ReadOnly => set_mount(copy.as_fd(), READ_ONLY, true)?,
    }
    attach(&copy, path)
}

fn is_held(path: &Path) -> bool {
    let facts = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    facts.is_ok_and(|facts| facts.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Mounts that are not attached yet, with the paths they are for.
struct Copies(Vec<(PathBuf, OwnedFd)>);

impl Copies {
    fn of<'a, P>(paths: impl IntoIterator<Item = &'a P>) -> Result<Self, Fault>
    where
        P: AsRef<Path> + ?Sized + 'a,
    {
        let copy = |path: &P| {
            let path = path.as_ref();
            let copy = copy_of(path).step(|| format!("copy `{}`", path.display()))?;
            Ok((path.to_owned(), copy))
        };
        paths.into_iter().map(copy).collect::<Result<_, _>>().map(Self)
    }

    fn attach(&self) -> Result<(), Fault> {
        for (path, copy) in &self.0 {
            set_mount(copy.as_fd(), NO_SETUID | NO_DEVICES, true)
                .and_then(|()| attach(copy, path))
                .step(|| format!("make `{}` writable", path.display()))?;
        }
        Ok(())
    }
}

fn at(path: &Path, flags: OpenTreeFlags) -> io::Result<OwnedFd> {
    let flags = flags | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(CWD, path, flags)?)
}

fn copy_of(path: &Path) -> io::Result<OwnedFd> {
    at(path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE)
}

fn attach(copy: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(copy, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

fn make_all_read_only() -> Result<(), Fault> {
    let root = at("/".as_ref(), OpenTreeFlags::empty()).step(|| "open `/`".to_owned())?;
    set_mount(root.as_fd(), READ_ONLY | NO_SETUID, true).step(|| "make `/` read-only".to_owned())
}

fn build_dev(devices: &Copies) -> Result<(), Fault> {
    let flags = MountFlags::NOSUID;
    mount("tmpfs", "/dev", "tmpfs", flags | MountFlags::NOEXEC, Some(c"mode=755"))
        .step(|| "mount `/dev`".to_owned())?;
    for (path, copy) in &devices.0 {
        make_file(path, 0o600)
            .and_then(|()| attach(copy, path))
            .step(|| format!("mount `{}`", path.display()))?;
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, name).step(|| format!("make `{name}`"))?;
    }
    let inner: [(&str, &str, _, &std::ffi::CStr); 2] = [
        ("/dev/pts", "devpts", MountFlags::NOEXEC, c"newinstance,ptmxmode=0666,mode=620"),
        ("/dev/shm", "tmpfs", MountFlags::NODEV, c"mode=1777"),
    ];
    for (path, kind, more, options) in inner {
        fs::create_dir(path).step(|| format!("make `{path}`"))?;
        mount(kind, path, kind, flags | more, Some(options)).step(|| format!("mount `{path}`"))?;
    }
    make_file(EMPTY_FILE.as_ref(), 0)
        .and_then(|()| fs::create_dir(EMPTY_FOLDER))
        .and_then(|()| fs::set_permissions(EMPTY_FOLDER, fs::Permissions::from_mode(0o0)))
        .step(|| "make an empty folder".to_owned())?;
    seal("/dev")
}

fn build_run(kept: &Copies, writable: &[PathBuf]) -> Result<(), Fault> {
    if !Path::new(RUN).is_dir() {
        return Ok(());
    }
    let is_folder: Vec<bool> = kept.0.iter().map(|(path, _)| path.is_dir()).collect();
    let links: Vec<_> = kept.0.iter().map(|(path, _)| fs::read_link(path).ok()).collect();
    let roots: Vec<(&PathBuf, bool)> = writable
        .iter()
        .filter(|path| path.starts_with(RUN))
        .map(|path| (path, path.is_dir()))
        .collect();
    mount("tmpfs", RUN, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755"))
        .step(|| "mount `/run`".to_owned())?;
    for (((path, copy), is_folder), link) in kept.0.iter().zip(is_folder).zip(links) {
        let made = match link {
            Some(target) => symlink(target, path),
            None => make_point(path, is_folder).and_then(|()| attach(copy, path)),
        };
        made.step(|| format!("keep `{}`", path.display()))?;
    }
    for (root, is_folder) in roots {
        make_point(root, is_folder).step(|| format!("keep `{}`", root.display()))?;
    }
    seal(RUN)
}

/// Makes a new mount read-only, without what is mounted below it.
fn seal(path: &str) -> Result<(), Fault> {
    at(path.as_ref(), OpenTreeFlags::empty())
        .and_then(|mount| set_mount(mount.as_fd(), READ_ONLY, false))
        .step(|| format!("make `{path}` read-only"))
}

fn make_point(path: &Path, is_folder: bool) -> io::Result<()> {
    if is_folder {
        return fs::create_dir_all(path);
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    make_file(path, 0o600)
}

fn make_file(path: &Path, mode: u32) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map(drop)
}

/// Lays nothing over a path. What has gone meanwhile need not be hidden.
fn mask(path: &Path) -> io::Result<()> {
    let Ok(facts) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let nothing = if facts.is_dir() { EMPTY_FOLDER } else { EMPTY_FILE };
    attach(&copy_of(nothing.as_ref())?, path)
}
