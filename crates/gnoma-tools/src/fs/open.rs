//! Opens the judged file and no other, following no symlink (symbolic link).
//!
//! A path is resolved once, when a call is examined; after that it must contain no link. Swapping a folder or file
//! for a link between the check and the use leads to an error, not to a file elsewhere: the kernel refuses every
//! link on the way (`openat2` with `RESOLVE_NO_SYMLINKS`; where that is missing, one step at a time with
//! `O_NOFOLLOW`).

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, mkdirat, openat, statat},
    io::Errno,
};

use super::umask::Umask;

/// Bits of a new folder before any mask.
const NEW_FOLDER_MODE: Mode = Mode::from_bits_retain(0o777);
/// Most folders that one call makes above a file.
const MAX_NEW_FOLDERS: usize = 64;

/// `path` with every link in it followed, as far as it exists.
///
/// What does not exist is kept as written; a `..` there has no meaning and the path is refused.
///
/// # Errors
/// A folder on the way cannot be entered, links lead in circles, or `..` follows a missing name.
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut known = path;
    loop {
        match known.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Ok(real);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (Some(parent), Some(Component::Normal(name))) =
                    (known.parent(), known.components().next_back())
                else {
                    return Err(error);
                };
                missing.push(name);
                known = parent;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Opens the resolved file `real` for reading. A pipe or device does not block.
pub(crate) fn open_file(real: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    open_without_links(real, flags).map(File::from).map_err(explain_error)
}

/// Opens the resolved folder `real`.
pub(super) fn open_folder(real: &Path) -> io::Result<OwnedFd> {
    open_without_links(real, OFlags::RDONLY | OFlags::DIRECTORY).map_err(explain_error)
}

/// Opens the resolved folder `real` and makes what is missing of it.
pub(super) fn make_folder(real: &Path, umask: Umask) -> io::Result<OwnedFd> {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut known = real;
    let mut folder = loop {
        match open_without_links(known, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(folder) => break folder,
            Err(Errno::NOENT) if missing.len() < MAX_NEW_FOLDERS => {
                let (Some(parent), Some(name)) = (known.parent(), known.file_name()) else {
                    return Err(Errno::NOENT.into());
                };
                missing.push(name);
                known = parent;
            }
            Err(error) => return Err(explain_error(error)),
        }
    };
    while let Some(name) = missing.pop() {
        let made = mkdirat(&folder, name, umask.narrow_mode(NEW_FOLDER_MODE));
        let new = match made {
            Ok(()) | Err(Errno::EXIST) => {
                open_step(&folder, name, OFlags::RDONLY | OFlags::DIRECTORY)
            }
            Err(error) => return Err(error.into()),
        };
        let new = new.map_err(explain_error)?;
        if made.is_ok() {
            umask.widen_mode(&new, &folder, NEW_FOLDER_MODE)?;
        }
        folder = new;
    }
    Ok(folder)
}

/// Facts about `name` in `folder`, a link's own if it is one. `None` if there is nothing.
pub(super) fn entry_facts(folder: impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(facts) => Ok(Some(facts)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the kind of entry that `facts` are about.
pub(super) fn file_kind(facts: &Stat) -> FileType {
    FileType::from_raw_mode(facts.st_mode)
}

#[cfg(target_os = "linux")]
fn open_without_links(real: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::NO_SYMLINKS;
    match openat2(CWD, real, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
        // An old kernel, or a container that refuses the call.
        Err(Errno::NOSYS | Errno::PERM) => open_stepwise(real, flags),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open_without_links(real: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    open_stepwise(real, flags)
}

/// From the root, one name at a time.
fn open_stepwise(real: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut names = real.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut at = openat(CWD, "/", folder | OFlags::CLOEXEC, Mode::empty())?;
    let Some(mut name) = names.next() else {
        return Ok(at);
    };
    for next in names {
        at = open_step(&at, name, folder)?;
        name = next;
    }
    open_step(&at, name, flags)
}

fn open_step(folder: impl AsFd, name: &OsStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    openat(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn explain_error(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("a link was put there after it was checked"),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn resolve_links_resolves_existing_symlinks_and_retains_missing_parts() {
        let bench = tempfile::tempdir().unwrap();
        let root = bench.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(resolve_links(&root.join("link/../x")).unwrap(), root.join("x"));
        assert_eq!(resolve_links(&root.join("link/new/file")).unwrap(), root.join("real/new/file"));
        assert!(resolve_links(&root.join("gone/../link")).is_err());
        assert!(resolve_links(&root.join("loop")).is_err());
    }

    #[test]
    fn open_without_links_refuses_symlinks_in_any_path_part() {
        let bench = tempfile::tempdir().unwrap();
        let root = bench.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("folder")).unwrap();
        symlink("real/file", root.join("file")).unwrap();
        for open in [open_without_links, open_stepwise] {
            let opens = |name: &str| open(&root.join(name), OFlags::RDONLY).is_ok();
            assert!(opens("real/file") && opens("real"));
            assert!(!opens("folder/file") && !opens("file") && !opens("folder"));
        }
        assert!(
            open_file(&root.join("file")).unwrap_err().to_string().contains("a link was put there")
        );
    }
}
