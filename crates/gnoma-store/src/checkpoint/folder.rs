//! Opening folders of a workspace, one inside the other, following no link.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

/// The most folders within folders.
pub(super) const MAX_DEPTH: u32 = 200;

/// The flags with which folders are opened.
pub(super) const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the folder of a path step by step, following no link; gives also the last name.
pub(super) fn open_parent<'p>(
    root: &OwnedFd,
    path: &'p [u8],
) -> Result<(OwnedFd, &'p [u8]), Errno> {
    let mut folder = openat(root, ".", FOLDER_FLAGS, Mode::empty())?;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        if name.is_empty() || name == b"." || name == b".." {
            return Err(Errno::INVAL);
        }
        if names.peek().is_none() {
            return Ok((folder, name));
        }
        folder = openat(&folder, name, FOLDER_FLAGS, Mode::empty())?;
    }
    Err(Errno::INVAL)
}
