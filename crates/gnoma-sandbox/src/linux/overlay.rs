//! Mounts that put a layer over a folder: what a command changes there lies in the layer.
//!
//! Paths are handed to the kernel as open folders, for in a list of options a comma or a colon in a
//! path would mean something.

use std::{
    fs,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
    thread::sleep,
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen,
    },
};

use super::{
    fault::{Fault, FaultStep},
    real::open_real,
};
use crate::policy::Overlay;

/// What the kernel leaves among its own of a layer whose changes need not outlive the machine, so that nobody
/// takes it for whole after a crash. A layer that was in use then is thrown away by gnoma itself.
const MARK_OF_VOLATILE: &str = "work/incompat";
/// The folders that lead to what lies in the mark, from that of the layer; they are made for nobody.
const WAY_TO_MARK: [&str; 3] = ["work", "work/incompat", "work/incompat/volatile"];
/// How often, and how soon, a layer is tried again that the kernel has not let go of yet.
const MAX_TRIES: usize = 50;
const TRY_AGAIN: Duration = Duration::from_millis(2);

/// Mounts every overlay, each still without a place. To be called in a namespace of mounts of its own.
pub(super) fn mounted(overlays: &[Overlay]) -> Result<Vec<(PathBuf, OwnedFd)>, Fault> {
    overlays.iter().map(|overlay| Ok((overlay.at.clone(), mount(overlay)?))).collect()
}

/// Takes the marks of layers away that are let go, so that the next command need not wait for it. What is left
/// of them is taken away when they are mounted.
pub(super) fn unmark(overlays: &[Overlay]) {
    for overlay in overlays.iter().filter(|overlay| !overlay.is_view()) {
        for folder in WAY_TO_MARK {
            fs::set_permissions(overlay.work.join(folder), fs::Permissions::from_mode(0o700)).ok();
        }
        fs::remove_dir_all(overlay.work.join(MARK_OF_VOLATILE)).ok();
    }
}

/// Mounts one overlay without a place.
pub(super) fn mount(overlay: &Overlay) -> Result<OwnedFd, Fault> {
    let folder = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open(path, flags, Mode::empty()).step(|| format!("open `{}`", path.display()))
    };
    // What the layer lies over was judged by its real path; layers may lie behind links of the user's own.
    let below = |path: &PathBuf| {
        if *path != overlay.at {
            return folder(path);
        }
        open_real(path, OFlags::DIRECTORY).step(|| format!("open `{}`", path.display()))
    };
    let lower = overlay.lower.iter().map(below).collect::<Result<Vec<_>, _>>()?;
    let own = match overlay.is_view() {
        true => None,
        false => Some((folder(&overlay.upper)?, folder(&overlay.work)?)),
    };
    let name = |folder: &OwnedFd| format!("/proc/self/fd/{}", folder.as_raw_fd());
    let all_lower: Vec<_> = lower.iter().map(name).collect();
    let mut options = vec![("lowerdir", all_lower.join(":"))];
    if let Some((upper, work)) = &own {
        options.extend([("upperdir", name(upper)), ("workdir", name(work))]);
        fs::remove_dir_all(overlay.work.join(MARK_OF_VOLATILE)).ok();
    }
    let made = || {
        let kind = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in &options {
            fsconfig_set_string(&kind, *key, value.as_str())?;
        }
        // What the layer notes for itself goes into attributes that a user may set.
        fsconfig_set_flag(&kind, "userxattr")?;
        if own.is_some() {
            // Otherwise all that anybody has written to that disk is waited for when the layer is let go.
            fsconfig_set_flag(&kind, "volatile")?;
        }
        fsconfig_create(&kind)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    let mut made_at_last = made();
    for _ in 0..MAX_TRIES {
        if !matches!(made_at_last, Err(Errno::BUSY)) {
            break;
        }
        sleep(TRY_AGAIN);
        made_at_last = made();
    }
    made_at_last.step(|| format!("mount a layer over `{}`", overlay.at.display()))
}
