//! Overlay mounts that put a trial's layer over a folder: what a command changes there lies in the layer.
//!
//! Paths are handed to the kernel as open folders, for in a list of options a comma or a colon in a
//! path would mean something.

use std::{
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{MetadataExt, PermissionsExt, chown},
    },
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, mknodat, open, openat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, UnmountFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, unmount,
    },
};

use super::{
    fault::{Fault, FaultStep},
    memory::MemoryCopies,
    real::open_real,
};
use crate::policy::Overlay;

/// The folder that the kernel leaves in the work folder of a layer whose changes need not outlive the machine, so
/// that such a layer is not taken for whole after a crash. Gnoma itself discards a layer that was in use then.
const MARK_OF_VOLATILE: &str = "work/incompat";
/// The folders that lead to what lies in the mark, from that of the layer; they are made for nobody.
const WAY_TO_MARK: [&str; 3] = ["work", "work/incompat", "work/incompat/volatile"];
/// The number of tries, and the wait between them, for a layer that the kernel has not released yet.
const MAX_TRIES: usize = 50;
const TRY_AGAIN: Duration = Duration::from_millis(2);

/// Mounts every overlay, each still without a place. To be called in a namespace of mounts of its own.
pub(super) fn mount_all(
    overlays: &[Overlay],
    absent: &[PathBuf],
) -> Result<Vec<(PathBuf, OwnedFd)>, Fault> {
    overlays
        .iter()
        .map(|overlay| Ok((overlay.at.clone(), mount_overlay(overlay, absent)?)))
        .collect()
}

/// Takes the marks of layers away that are let go, so that the next command need not wait for it. What is left
/// of them is taken away when they are mounted.
pub(super) fn remove_volatile_marks(overlays: &[Overlay]) {
    for overlay in overlays.iter().filter(|overlay| !overlay.is_view()) {
        for folder in WAY_TO_MARK {
            fs::set_permissions(overlay.work.join(folder), fs::Permissions::from_mode(0o700)).ok();
        }
        fs::remove_dir_all(overlay.work.join(MARK_OF_VOLATILE)).ok();
    }
}

/// Mounts one overlay without a place. What is `absent` is not found in it, where it is only looked at.
pub(super) fn mount_overlay(overlay: &Overlay, absent: &[PathBuf]) -> Result<OwnedFd, Fault> {
    let left_out: Vec<_> =
        absent.iter().filter_map(|path| path.strip_prefix(&overlay.at).ok()).collect();
    if left_out.is_empty() || !overlay.is_view() {
        return mount_layers(overlay);
    }
    let failed = || format!("leave files out of `{}`", overlay.at.display());
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", WHITEOUTS, "tmpfs", flags, Some(c"mode=755"))
        .with_step(failed)?;
    let lower = [WHITEOUTS.into()].into_iter().chain(overlay.lower.iter().cloned()).collect();
    let made = make_whiteouts(&overlay.at, &left_out)
        .with_step(failed)
        .and_then(|()| mount_layers(&Overlay { lower, ..overlay.clone() }));
    unmount(WHITEOUTS, UnmountFlags::DETACH).with_step(failed)?;
    made
}

/// The folder in which the layer of whiteouts (marks of absent files) is made. It holds no part of a workspace.
const WHITEOUTS: &str = "/dev";

/// Makes a layer in which these paths below a folder are gone and all else is as it is.
fn make_whiteouts(folder: &Path, left_out: &[&Path]) -> io::Result<()> {
    let top = Path::new(WHITEOUTS);
    let mut made = vec![PathBuf::new()];
    for path in left_out {
        let parents: Vec<_> = path.ancestors().skip(1).collect();
        for parent in parents.into_iter().rev().filter(|parent| !parent.as_os_str().is_empty()) {
            match fs::create_dir(top.join(parent)) {
                Ok(()) => made.push(parent.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        mknodat(CWD, top.join(path), FileType::CharacterDevice, Mode::empty(), 0)?;
    }
    // Of a folder that is in several layers, the topmost says what it looks like.
    for below in made.iter().rev() {
        let (real, own) = (fs::metadata(folder.join(below))?, top.join(below));
        chown(&own, Some(real.uid()), Some(real.gid())).ok();
        fs::set_permissions(&own, real.permissions())?;
        fs::File::open(&own)?.set_modified(real.modified()?)?;
    }
    Ok(())
}

/// The open folders that a layer is mounted from.
struct LayerFolders {
    lower: Vec<OwnedFd>,
    /// The folder that takes the changes and the kernel's work folder; `None` for a view.
    own: Option<(OwnedFd, OwnedFd)>,
}

impl LayerFolders {
    /// Opens the folders of an overlay. The copies must last until the layer is mounted.
    fn open(overlay: &Overlay, copies: &mut MemoryCopies) -> Result<Self, Fault> {
        let mut folder = |path: &Path| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match copies.copy_for_path(path)? {
                Some((copy, below)) => openat(copy, below, flags, Mode::empty()),
                None => open(path, flags, Mode::empty()),
            };
            opened.with_step(|| format!("open `{}`", path.display()))
        };
        // What the layer lies over was judged by its real path; layers may lie behind links of the user's own.
        let below = |path: &PathBuf| {
            if *path != overlay.at {
                return folder(path);
            }
            open_real(path, OFlags::DIRECTORY).with_step(|| format!("open `{}`", path.display()))
        };
        let lower = overlay.lower.iter().map(below).collect::<Result<Vec<_>, _>>()?;
        let own = match overlay.is_view() {
            true => None,
            false => Some((folder(&overlay.upper)?, folder(&overlay.work)?)),
        };
        Ok(Self { lower, own })
    }

    /// Returns the mount options that name the folders.
    fn mount_options(&self) -> Vec<(&'static str, String)> {
        let name = |folder: &OwnedFd| format!("/proc/self/fd/{}", folder.as_raw_fd());
        let all_lower: Vec<_> = self.lower.iter().map(name).collect();
        let mut options = vec![("lowerdir", all_lower.join(":"))];
        if let Some((upper, work)) = &self.own {
            options.extend([("upperdir", name(upper)), ("workdir", name(work))]);
        }
        options
    }
}

fn mount_layers(overlay: &Overlay) -> Result<OwnedFd, Fault> {
    let mut copies = MemoryCopies::default();
    let folders = LayerFolders::open(overlay, &mut copies)?;
    let options = folders.mount_options();
    let takes_changes = folders.own.is_some();
    if takes_changes {
        fs::remove_dir_all(overlay.work.join(MARK_OF_VOLATILE)).ok();
    }
    let mount = || create_mount(&options, takes_changes, overlay.is_frozen);
    let mut mounted = mount();
    for _ in 0..MAX_TRIES {
        if !matches!(mounted, Err(Errno::BUSY)) {
            break;
        }
        sleep(TRY_AGAIN);
        mounted = mount();
    }
    mounted.with_step(|| format!("mount a layer over `{}`", overlay.at.display()))
}

/// Mounts a layer with these options, without a place.
fn create_mount(
    options: &[(&'static str, String)],
    takes_changes: bool,
    is_frozen: bool,
) -> Result<OwnedFd, Errno> {
    let kind = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&kind, *key, value.as_str())?;
    }
    // What the layer notes for itself goes into attributes that a user may set.
    fsconfig_set_flag(&kind, "userxattr")?;
    if takes_changes {
        // Otherwise unmounting waits until all that any program has written to that disk is stored.
        fsconfig_set_flag(&kind, "volatile")?;
    }
    fsconfig_create(&kind)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if is_frozen {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
