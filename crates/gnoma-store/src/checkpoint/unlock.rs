//! Restores the owner's access to closed folders (`chmod -R 644 .` shuts every folder), so that a restore can keep it
//! and bring it back. Only a restore does this: taking snapshots changes nothing.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Mode, RawMode, openat},
    io::Errno,
};

use super::folder::FOLDER_FLAGS;

/// The permissions that the owner needs to change a folder.
pub(super) const OWNER_ALL: u32 = 0o700;

/// The permission that the owner needs to read a file.
pub(super) const OWNER_READ: u32 = 0o400;

/// A folder that was opened up.
pub(super) struct UnlockedFolder {
    /// The path, relative to the workspace.
    pub(super) path: Vec<u8>,
    /// The mode it had.
    pub(super) mode: u32,
}

/// Opens a folder that can be listed and entered.
pub(super) fn open_folder(parent: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let folder = openat(parent, name, FOLDER_FLAGS, Mode::empty())?;
    // Reading its names is one permission, reaching what they stand for another.
    openat(&folder, ".", FOLDER_FLAGS, Mode::empty())?;
    Ok(folder)
}

/// Sets the mode of what cannot be opened; no link is followed.
#[cfg(target_os = "linux")]
pub(super) fn set_mode(parent: &OwnedFd, name: &[u8], mode: u32) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{OFlags, chmod, fstat};

    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(parent, name, flags, Mode::empty())?;
    if super::stamp::file_type(&fstat(&place)?).is_symlink() {
        return Err(Errno::LOOP);
    }
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    chmod(path, Mode::from_raw_mode(mode as RawMode))
}

/// Sets the mode of what cannot be opened; no link is followed.
#[cfg(not(target_os = "linux"))]
pub(super) fn set_mode(parent: &OwnedFd, name: &[u8], mode: u32) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode as RawMode);
    rustix::fs::chmodat(parent, name, mode, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
}
