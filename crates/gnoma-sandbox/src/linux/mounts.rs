//! The file system as a command sees it: all of it read-only, and exceptions.
//!
//! Where all but a few places can be read, the tree stays where it is: one call makes every mount
//! read-only, then copies of the writable roots, taken before, are laid over their own paths. Where what
//! can be read is a list, a new root is made of it, see `own_root`. `/dev` holds only harmless
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
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags, fstat, mknodat, open,
        statx,
    },
    mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree},
};

use super::{
    fault::{Fault, FaultStep},
    mount_points::{self, Covers},
    overlay,
    paths::{OutsideNames, ShownPlaces},
    protect::{PathMount, Protection, path_exists},
    raw_syscalls::{
        mount_attributes::{NO_DEVICES, NO_SETUID, READ_ONLY},
        set_mount,
    },
    real::open_real,
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

/// The parts of `/run` that stay: the files for looking up host names, the folders in which some systems keep their
/// programs, and the folder for drives.
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

/// The empty folder and the empty file that cover hidden ones. They are part of the new `/dev`, and only gnoma
/// could change its root.
const EMPTY_FOLDER: &str = "/dev/.empty-folder";
const EMPTY_FILE: &str = "/dev/.empty-file";
/// A file without rights, for what is sealed where nothing serves it.
const CLOSED_FILE: &str = "/dev/.closed-file";
/// The mount point of the file system of sealed files.
const SEALED: &str = "/dev/.sealed";

/// The mounts over files and folders that the command cannot open.
#[derive(Debug)]
pub(super) enum SealMounts<'a> {
    /// Files of the file system that serves them, in the same order.
    Served(&'a [(u16, PathBuf)]),
    /// An empty file or folder without rights.
    Masked(Vec<&'a PathBuf>),
}

/// Everything the mounts are made from. Paths are real ones: no links.
#[derive(Debug)]
pub(super) struct MountView<'a> {
    pub(super) writable: &'a [PathBuf],
    pub(super) overlays: &'a [Overlay],
    /// The overlays are attached by [`finish_mounts`]; until then their places can only be read.
    pub(super) overlays_come_later: bool,
    pub(super) hidden: Vec<PathBuf>,
    pub(super) sealed: SealMounts<'a>,
    /// Names outside of what is shown, served behind the sealed files.
    pub(super) outside: &'a OutsideNames,
    pub(super) absent: &'a [PathBuf],
    pub(super) devices: &'a [PathBuf],
    pub(super) sockets: &'a BTreeSet<PathBuf>,
    pub(super) protection: &'a Protection,
    pub(super) shown: Option<&'a ShownPlaces>,
    pub(super) temporary: &'a [(PathBuf, PathBuf)],
    /// The paths among the machine's temporary files that are seen among those of the session.
    pub(super) shown_temporary: &'a [PathBuf],
    /// Sockets by a path can be made.
    pub(super) has_local_sockets: bool,
}

/// The place of a file that is served under this number, where the command finds it.
pub(super) fn place_of_seal(number: usize) -> PathBuf {
    Path::new(SEALED).join(number.to_string())
}

/// Mounts of what can be written: the folders themselves, and the layers that lie over some of them.
/// What is made read-only takes no layer any more, so they are made before.
pub(super) fn writable_copies(view: &MountView<'_>) -> Result<Copies, Fault> {
    let is_overlaid = |path: &PathBuf| view.overlays.iter().any(|overlay| overlay.at == *path);
    let plain: Vec<_> = view.writable.iter().filter(|path| !is_overlaid(path)).collect();
    let mut writable = Copies::of_real(plain)?;
    if !view.overlays_come_later {
        writable.0.extend(overlay::mount_all(view.overlays, view.absent)?);
    }
    gnoma_core::sort::sort_by(&mut writable.0, |one, other| one.0.cmp(&other.0));
    Ok(writable)
}

/// Builds what need not know what is protected or masked, in a namespace of processes with at most so
/// many. The process must have a mount namespace of its own and the right to change it.
pub(super) fn build_mounts(
    view: &MountView<'_>,
    seals: Option<&OwnedFd>,
    processes: u32,
) -> Result<(), Fault> {
    if view.overlays_come_later && !view.overlays.is_empty() {
        return Err(Fault::new("wait for layers", "that needs a list of what can be read"));
    }
    let is_temporary =
        |path: &Path| view.temporary.iter().any(|(place, _)| path.starts_with(place));
    let (among_temporary, writable): (Vec<_>, Vec<_>) =
        writable_copies(view)?.0.into_iter().partition(|(path, _)| is_temporary(path));
    let writable = Copies(writable);
    let temporary = Copies::of_temporary(view, among_temporary)?;
    let devices = Copies::of_devices(view)?;
    make_all_read_only()?;
    let kept_of_run =
        Copies::of_paths(KEPT_OF_RUN.iter().map(Path::new).filter(|path| path_exists(path)))?;
    let root = Path::new("/");
    build_dev(&devices, seals, root)?;
    build_run(&kept_of_run, view.writable)?;
    writable.attach()?;
    temporary.attach_temporary(view)?;
    build_proc(processes, root)
}

/// Adds layers that came later, what protects and what masks, and goes where the command shall run.
pub(super) fn finish_mounts(
    view: &MountView<'_>,
    layers: &Copies,
    here: &Path,
) -> Result<(), Fault> {
    layers.attach()?;
    if let Some(path) = view.protection.holds.keys().find(|path| !path_exists(path)) {
        return Err(Fault::new(format!("protect `{}`", path.display()), "it just disappeared"));
    }
    mount_protection(view.protection)?;
    for path in view.hidden.iter().chain(view.sockets) {
        mask_path(path).with_step(|| format!("hide `{}`", path.display()))?;
    }
    seal_secrets(&view.sealed)?;
    // The old working folder still belongs to the read-only tree below.
    enter_folder(here)
}

/// Lays what cannot be opened over secret files and folders that are there.
fn seal_secrets(sealed: &SealMounts<'_>) -> Result<(), Fault> {
    let lay = |path: &Path, over: &Path| {
        copy_of(over)
            .and_then(|copy| attach_mount(&copy, path))
            .with_step(|| format!("seal `{}`", path.display()))
    };
    match sealed {
        SealMounts::Served(files) => {
            for (place, (_, path)) in
                files.iter().enumerate().filter(|(_, (_, path))| path_exists(path))
            {
                lay(path, &place_of_seal(place))?;
            }
        }
        SealMounts::Masked(paths) => {
            for path in paths {
                let Ok(facts) = fs::symlink_metadata(path) else { continue };
                lay(path, if facts.is_dir() { EMPTY_FOLDER } else { CLOSED_FILE }.as_ref())?;
            }
        }
    }
    Ok(())
}

/// Makes a folder the working folder.
pub(super) fn enter_folder(here: &Path) -> Result<(), Fault> {
    std::env::set_current_dir(here).with_step(|| format!("enter `{}`", here.display()))
}

/// Mounts the processes of this namespace, as the first process in it.
pub(super) fn build_proc(limit: u32, root: &Path) -> Result<(), Fault> {
    let proc = root.join("proc");
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", &proc, "proc", flags, None).with_step(|| "mount `/proc`".to_owned())?;
    if counts_processes_by_namespace() {
        // A second bound, which also holds for root. Where it cannot be set the first one holds.
        let bound = limit.max(MIN_PROCESS_NUMBERS).to_string();
        fs::write(proc.join("sys/kernel/pid_max"), bound).ok();
    }
    let proc = open_mount(&proc, OpenTreeFlags::empty()).with_step(|| "open `/proc`".to_owned())?;
    set_mount(proc.as_fd(), READ_ONLY, false).with_step(|| "make `/proc` read-only".to_owned())
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
pub(super) fn mount_protection(protection: &Protection) -> Result<(), Fault> {
    for (path, hold) in &protection.holds {
        if path_exists(path) && !is_held(path) {
            hold_on(path, *hold).with_step(|| format!("protect `{}`", path.display()))?;
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
    attach_mount(&copy, path)
}

fn is_held(path: &Path) -> bool {
    let facts = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    facts.is_ok_and(|facts| facts.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Mounts that are not attached yet, with the paths they are for.
pub(super) struct Copies(pub(super) Vec<(PathBuf, OwnedFd)>);

impl Copies {
    /// Of the devices that a command gets.
    pub(super) fn of_devices(view: &MountView<'_>) -> Result<Self, Fault> {
        let devices = HARMLESS_DEVICES.iter().map(Path::new);
        Self::of_paths(devices.chain(view.devices.iter().map(PathBuf::as_path)))
    }

    /// Of the session's folders for temporary files, and of what lies among those of the machine and is seen there
    /// as well.
    fn of_temporary(
        view: &MountView<'_>,
        writable: Vec<(PathBuf, OwnedFd)>,
    ) -> Result<Self, Fault> {
        let mut copies = Vec::new();
        for (place, folder) in view.temporary.iter().filter(|(place, _)| place.is_dir()) {
            let copy = copy_of(folder).with_step(|| format!("copy `{}`", folder.display()))?;
            copies.push((place.clone(), copy));
        }
        for path in view.shown_temporary {
            // What cannot be copied is not there.
            let copy = copy_of(path).and_then(|copy| {
                set_mount(copy.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES, true)?;
                Ok(copy)
            });
            copies.extend(copy.ok().map(|copy| (path.clone(), copy)));
        }
        copies.extend(writable);
        gnoma_core::sort::sort_by(&mut copies, |one, other| one.0.cmp(&other.0));
        Ok(Self(copies))
    }

    /// Puts the session's temporary files in place, and in them what is seen there as well.
    fn attach_temporary(&self, view: &MountView<'_>) -> Result<(), Fault> {
        let is_place = |path: &Path| view.temporary.iter().any(|(place, _)| place == path);
        let mounted = self.0.iter().map(|(path, _)| path.clone()).collect();
        let mut covers = Covers::new(view.temporary, &mounted);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open("/", flags, Mode::empty()).with_step(|| "open `/`".to_owned())?;
        for (path, copy) in &self.0 {
            let failed = || format!("mount `{}`", path.display());
            if is_place(path) {
                set_mount(copy.as_fd(), NO_SETUID | NO_DEVICES, true)
                    .and_then(|()| attach_mount(copy, path))
                    .with_step(failed)?;
                continue;
            }
            let is_folder =
                FileType::from_raw_mode(fstat(copy).with_step(failed)?.st_mode).is_dir();
            set_mount(copy.as_fd(), NO_SETUID | NO_DEVICES, true)
                .and_then(|()| covers.on_the_way(&root, path))
                .and_then(|()| mount_points::open_place(&root, path, is_folder))
                .and_then(|place| mount_points::attach_copy(copy, &place))
                .with_step(failed)?;
        }
        covers.make_read_only()
    }

    pub(super) fn of_paths<'a, P>(paths: impl IntoIterator<Item = &'a P>) -> Result<Self, Fault>
    where
        P: AsRef<Path> + ?Sized + 'a,
    {
        let copy = |path: &P| {
            let path = path.as_ref();
            let copy = copy_of(path).with_step(|| format!("copy `{}`", path.display()))?;
            Ok((path.to_owned(), copy))
        };
        paths.into_iter().map(copy).collect::<Result<_, _>>().map(Self)
    }

    /// Of real paths: an error where one of them leads through a link by now.
    fn of_real(paths: Vec<&PathBuf>) -> Result<Self, Fault> {
        let copy = |path: &PathBuf| {
            let copy = copy_of_real(path).with_step(|| format!("copy `{}`", path.display()))?;
            Ok((path.clone(), copy))
        };
        paths.into_iter().map(copy).collect::<Result<_, _>>().map(Self)
    }

    fn attach(&self) -> Result<(), Fault> {
        for (path, copy) in &self.0 {
            set_mount(copy.as_fd(), NO_SETUID | NO_DEVICES, true)
                .and_then(|()| attach_mount(copy, path))
                .with_step(|| format!("make `{}` writable", path.display()))?;
        }
        Ok(())
    }
}

pub(super) fn open_mount(path: &Path, flags: OpenTreeFlags) -> io::Result<OwnedFd> {
    let flags = flags | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(CWD, path, flags)?)
}

/// A copy of what is at a path, with all that is mounted below it, attached nowhere.
pub(super) fn copy_of(path: &Path) -> io::Result<OwnedFd> {
    open_mount(path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE)
}

/// The same of a real path; an error where a link has been put there, or on the way, since it was found.
pub(super) fn copy_of_real(path: &Path) -> io::Result<OwnedFd> {
    let there = open_real(path, OFlags::empty())?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(there, "", flags)?)
}

fn attach_mount(copy: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(copy, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

fn make_all_read_only() -> Result<(), Fault> {
    let root =
        open_mount("/".as_ref(), OpenTreeFlags::empty()).with_step(|| "open `/`".to_owned())?;
    set_mount(root.as_fd(), READ_ONLY | NO_SETUID, true)
        .with_step(|| "make `/` read-only".to_owned())
}

/// A path of the root that is being made, as it can be reached now.
pub(super) fn in_root(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Makes the `/dev` of the command.
pub(super) fn build_dev(
    devices: &Copies,
    seals: Option<&OwnedFd>,
    root: &Path,
) -> Result<(), Fault> {
    let flags = MountFlags::NOSUID;
    let dev = root.join("dev");
    mount("tmpfs", &dev, "tmpfs", flags | MountFlags::NOEXEC, Some(c"mode=755"))
        .with_step(|| "mount `/dev`".to_owned())?;
    for (path, copy) in &devices.0 {
        let place = in_root(root, path);
        make_file(&place, 0o600)
            .and_then(|()| attach_mount(copy, &place))
            .with_step(|| format!("mount `{}`", path.display()))?;
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, in_root(root, name)).with_step(|| format!("make `{name}`"))?;
    }
    let inner: [(&str, &str, _, &std::ffi::CStr); 2] = [
        ("/dev/pts", "devpts", MountFlags::NOEXEC, c"newinstance,ptmxmode=0666,mode=620"),
        ("/dev/shm", "tmpfs", MountFlags::NODEV, c"mode=1777"),
    ];
    for (path, kind, more, options) in inner {
        let place = in_root(root, path);
        fs::create_dir(&place).with_step(|| format!("make `{path}`"))?;
        mount(kind, &place, kind, flags | more, Some(options))
            .with_step(|| format!("mount `{path}`"))?;
    }
    make_covers(root).with_step(|| "make an empty folder".to_owned())?;
    if let Some(seals) = seals {
        let place = in_root(root, SEALED);
        fs::create_dir(&place)
            .and_then(|()| attach_mount(seals, &place))
            .with_step(|| "mount sealed files".to_owned())?;
    }
    make_read_only(&dev)
}

/// Makes what is laid over hidden and sealed paths.
fn make_covers(root: &Path) -> io::Result<()> {
    let folder = in_root(root, EMPTY_FOLDER);
    // Not even root can read from a device that does not exist.
    let file = in_root(root, EMPTY_FILE);
    mknodat(CWD, &file, FileType::CharacterDevice, Mode::empty(), 0)
        .map_err(io::Error::from)
        .or_else(|_| make_file(&file, 0))?;
    fs::create_dir(&folder)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o0))?;
    make_file(&in_root(root, CLOSED_FILE), 0)
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
        .with_step(|| "mount `/run`".to_owned())?;
    for (((path, copy), is_folder), link) in kept.0.iter().zip(is_folder).zip(links) {
        let made = match link {
            Some(target) => symlink(target, path),
            None => make_point(path, is_folder).and_then(|()| attach_mount(copy, path)),
        };
        made.with_step(|| format!("keep `{}`", path.display()))?;
    }
    for (root, is_folder) in roots {
        make_point(root, is_folder).with_step(|| format!("keep `{}`", root.display()))?;
    }
    make_read_only(RUN.as_ref())
}

/// Makes a new mount read-only, without what is mounted below it.
pub(super) fn make_read_only(path: &Path) -> Result<(), Fault> {
    open_mount(path, OpenTreeFlags::empty())
        .and_then(|mount| set_mount(mount.as_fd(), READ_ONLY, false))
        .with_step(|| format!("make `{}` read-only", path.display()))
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
fn mask_path(path: &Path) -> io::Result<()> {
    let Ok(facts) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let nothing = if facts.is_dir() { EMPTY_FOLDER } else { EMPTY_FILE };
    attach_mount(&copy_of(nothing.as_ref())?, path)
}
