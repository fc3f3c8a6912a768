//! Mounts that put a layer over a folder: what a command changes there lies in the layer.
//!
//! Paths are handed to the kernel as open folders, for in a list of options a comma or a colon in a
//! path would mean something.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, open},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen,
    },
};

use super::fault::{Fault, FaultStep};
use crate::policy::Overlay;

/// Mounts every overlay, each still without a place. To be called in a namespace of mounts of its own.
pub(super) fn mounted(overlays: &[Overlay]) -> Result<Vec<(PathBuf, OwnedFd)>, Fault> {
    overlays.iter().map(|overlay| Ok((overlay.at.clone(), mount(overlay)?))).collect()
}

/// Mounts one overlay without a place.
pub(super) fn mount(overlay: &Overlay) -> Result<OwnedFd, Fault> {
    let folder = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open(path, flags, Mode::empty()).step(|| format!("open `{}`", path.display()))
    };
    let lower = overlay.lower.iter().map(|path| folder(path)).collect::<Result<Vec<_>, _>>()?;
    let (upper, work) = (folder(&overlay.upper)?, folder(&overlay.work)?);
    let name = |folder: &OwnedFd| format!("/proc/self/fd/{}", folder.as_raw_fd());
    let all_lower: Vec<_> = lower.iter().map(name).collect();
    let options =
        [("lowerdir", all_lower.join(":")), ("upperdir", name(&upper)), ("workdir", name(&work))];
    let made = || {
        let kind = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in &options {
            fsconfig_set_string(&kind, *key, value.as_str())?;
        }
        // What the layer notes for itself goes into attributes that a user may set.
        fsconfig_set_flag(&kind, "userxattr")?;
        fsconfig_create(&kind)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    made().step(|| format!("lay a layer over `{}`", overlay.at.display()))
}
