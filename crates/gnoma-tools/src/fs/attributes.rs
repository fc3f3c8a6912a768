//! The extended attributes of a file, its access list (ACL) among them, on the file that takes its place.

use std::{io, os::fd::AsFd};

use rustix::{
    fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr},
    io::Errno,
};

/// The attribute in which Linux keeps who may do what with a file.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// The attribute in which Linux keeps the label of SELinux.
const LABEL: &[u8] = b"security.selinux";
/// The beginning of the attributes that people and programs set on Linux.
const OWN: &[u8] = b"user.";
/// Largest list of names, and largest value, in bytes (`XATTR_LIST_MAX`, `XATTR_SIZE_MAX`).
const MAX_BYTES: usize = 64 << 10;

/// Gives `new` the attributes of `old`.
///
/// # Errors
/// The access list of `old` cannot be set: others would lose access, or get it.
pub(super) fn copy_attributes(old: impl AsFd, new: impl AsFd) -> io::Result<()> {
    let mut names = vec![0; MAX_BYTES];
    // A file system that has no attributes loses none.
    let length = flistxattr(&old, names.as_mut_slice()).unwrap_or_default();
    let names = names.get(..length).unwrap_or_default().split(|byte| *byte == 0);
    let kept: Vec<&[u8]> = names.filter(|name| is_kept(name)).collect();
    if !kept.contains(&ACCESS_LIST) {
        // The folder may give one to what is made in it.
        fremovexattr(&new, ACCESS_LIST).ok();
    }
    if kept.is_empty() {
        return Ok(());
    }
    let mut value = vec![0; MAX_BYTES];
    for name in kept {
        let Ok(length) = fgetxattr(&old, name, value.as_mut_slice()) else { continue };
        let value = value.get(..length).unwrap_or_default();
        match fsetxattr(&new, name, value, XattrFlags::empty()) {
            Err(error) if name == ACCESS_LIST && error != Errno::NOTSUP => {
                return Err(error.into());
            }
            Ok(()) | Err(_) => (),
        }
    }
    Ok(())
}

/// Returns whether an attribute is about the file. Others are the kernel's own and hold for one content, such as the
/// rights of a program (`security.capability`).
fn is_kept(name: &[u8]) -> bool {
    let is_named = name == ACCESS_LIST || name == LABEL || name.starts_with(OWN);
    is_named || (cfg!(target_vendor = "apple") && !name.is_empty())
}
