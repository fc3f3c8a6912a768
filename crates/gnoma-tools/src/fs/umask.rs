//! The file mode creation mask of a session, which need not be the one of the process: a server that
//! the system started has another than its clients.

use std::{io, os::fd::AsFd};

use rustix::fs::{Mode, fchmod, fgetxattr, fstat};

/// The attribute in which Linux keeps the rights that a folder gives to what is made in it.
const DEFAULT_ACL: &str = "system.posix_acl_default";
/// The bits that say who may do what; not those that change the user or group.
const ACCESS_BITS: Mode = Mode::from_bits_retain(0o777);

/// Permission bits that new files do not get; by default those that the process's own mask says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Umask(Option<Mode>);

impl Umask {
    pub(super) fn from_bits(bits: Option<u32>) -> Self {
        Self(bits.map(|bits| Mode::from_bits_retain(bits as _)))
    }

    /// Returns the part of `bits` to ask for when something is made, so that it is never open to more people, not
    /// even for a moment. The system takes the bits of the process's own mask away as well.
    pub(super) fn narrow_mode(self, bits: Mode) -> Mode {
        bits.difference(self.0.unwrap_or(Mode::empty()))
    }

    /// Gives what was just made in `folder` back what only the process's own mask took away. Rights
    /// that the folder itself gives to what is made in it hold in place of any mask.
    pub(super) fn widen_mode(
        self,
        made: impl AsFd,
        folder: impl AsFd,
        bits: Mode,
    ) -> io::Result<()> {
        let has_rights = || fgetxattr(folder, DEFAULT_ACL, &mut [0; 0]).is_ok();
        if self.0.is_none() || has_rights() {
            return Ok(());
        }
        // A folder may have been given its parent's group.
        let others = Mode::from_raw_mode(fstat(&made)?.st_mode).difference(ACCESS_BITS);
        Ok(fchmod(made, others.union(self.narrow_mode(bits)))?)
    }
}
