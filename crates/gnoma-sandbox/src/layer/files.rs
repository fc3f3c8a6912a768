//! Files by the descriptor of a folder: below it and through no link.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, lgetxattr, llistxattr,
        lremovexattr, open, openat, openat2, readlinkat, statat,
    },
    io::Errno,
};

use super::stamp::Stamp;

/// Attributes that layers note things in for themselves.
const NOTES: &[u8] = b"user.overlay.";
/// Says that nothing below shows through a folder.
const OPAQUE: &str = "user.overlay.opaque";
/// Is left on what was copied from below.
const ORIGIN: &str = "user.overlay.origin";
/// Most bytes of the names of a file's attributes, as the kernel bounds them.
const MAX_NAMES_BYTES: usize = 64 * 1024;
const FEW_NAMES_BYTES: usize = 256;
/// Bytes that are compared at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// Largest file that is compared where all but its content says that it is the same.
const MAX_COMPARED_BYTES: u64 = 64 << 20;

/// Opens a folder by its path, which may lead through links.
pub(super) fn open_root_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a folder below another.
pub(super) fn open_folder(root: &OwnedFd, below: &Path) -> io::Result<OwnedFd> {
    below_root(root, below, OFlags::PATH | OFlags::DIRECTORY)
}

/// Opens a regular file below a folder for reading.
pub(super) fn open_file(root: &OwnedFd, below: &Path) -> io::Result<File> {
    let opened = below_root(root, below, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK)?;
    let file = File::from(opened);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Returns the target of a link below a folder.
pub(super) fn link_target(root: &OwnedFd, below: &Path) -> io::Result<PathBuf> {
    let (holding, name) = split_path(below);
    let target = readlinkat(open_folder(root, holding)?, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

fn below_root(root: &OwnedFd, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let here = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(root, here, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}

/// Returns the file's state at a name; `None` if there is no file.
pub(super) fn stat_entry(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<Stamp>> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(facts) => Ok(Some(Stamp::from_stat(&facts))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the state of the file that a descriptor stands for.
pub(super) fn look_at(opened: &OwnedFd) -> io::Result<Stamp> {
    Ok(Stamp::from_stat(&statat(opened, "", AtFlags::EMPTY_PATH)?))
}

/// True if an entry is a layer's mark that the file below it is deleted.
pub(super) fn is_whiteout(folder: &OwnedFd, name: &OsStr, stamp: &Stamp) -> bool {
    stamp.file_type() == FileType::CharacterDevice
        && statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|facts| facts.st_rdev == 0)
}

/// The names in a folder.
pub(super) fn entry_names(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(folder, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(opened)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    gnoma_core::sort::sort_items(&mut names);
    Ok(names)
}

/// Splits a path below a root into its folder and its name.
pub(super) fn split_path(below: &Path) -> (&Path, &OsStr) {
    (below.parent().unwrap_or(Path::new("")), below.file_name().unwrap_or_default())
}

/// A path by which the entry of an open folder can be reached where only paths are taken.
fn by_number(folder: &OwnedFd, name: &OsStr) -> PathBuf {
    Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
}

/// True if a folder of a layer hides everything below it.
pub(super) fn is_opaque(folder: &OwnedFd, name: &OsStr) -> bool {
    let mut value = [0_u8; 1];
    let read = lgetxattr(by_number(folder, name), OPAQUE, &mut value);
    read == Ok(1) && value == *b"y"
}

/// True if an entry of a layer was copied from below it.
pub(super) fn is_copied(folder: &OwnedFd, name: &OsStr) -> bool {
    let nothing: &mut [u8] = &mut [];
    lgetxattr(by_number(folder, name), ORIGIN, nothing).is_ok()
}

/// The attributes of an entry that are nobody's notes, with their values.
fn read_attributes(folder: &OwnedFd, name: &OsStr) -> Vec<(Vec<u8>, Vec<u8>)> {
    let path = by_number(folder, name);
    let value = |name: Vec<u8>| {
        let mut value = vec![0; MAX_NAMES_BYTES];
        let length = lgetxattr(&path, OsStr::from_bytes(&name), &mut value).unwrap_or(0);
        value.truncate(length);
        (name, value)
    };
    let names = attribute_names(&path).into_iter().filter(|name| !name.starts_with(NOTES));
    names.map(value).collect()
}

fn attribute_names(path: &Path) -> Vec<Vec<u8>> {
    // Nearly always there are few; a file system without attributes has none.
    let mut names: Vec<u8> = Vec::with_capacity(FEW_NAMES_BYTES);
    if llistxattr(path, rustix::buffer::spare_capacity(&mut names)) == Err(Errno::RANGE) {
        names.reserve(MAX_NAMES_BYTES);
        llistxattr(path, rustix::buffer::spare_capacity(&mut names)).ok();
    }
    let mut names: Vec<_> = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    gnoma_core::sort::sort_items(&mut names);
    names
}

/// Takes away from an entry of a layer what must not reach a real folder: the layer's notes and bits
/// that lend rights.
pub(super) fn strip_layer_marks(folder: &OwnedFd, name: &OsStr, stamp: &Stamp) -> io::Result<()> {
    /// Everything but the bits that lend a program the rights of its owner or group.
    const HARMLESS: u32 = 0o1777;
    /// Whose attributes may be changed.
    const WRITABLE: u32 = 0o600;
    if stamp.file_type() == FileType::Symlink {
        return Ok(());
    }
    let path = by_number(folder, name);
    let set =
        |mode: u32| rustix::fs::chmodat(CWD, &path, Mode::from_raw_mode(mode), AtFlags::empty());
    let notes: Vec<_> =
        attribute_names(&path).into_iter().filter(|name| name.starts_with(NOTES)).collect();
    let mode = stamp.mode & HARMLESS;
    let opens = !notes.is_empty() && mode & WRITABLE != WRITABLE;
    if opens {
        set(mode | WRITABLE)?;
    }
    for note in &notes {
        lremovexattr(&path, OsStr::from_bytes(note))?;
    }
    if opens || mode != stamp.mode {
        set(mode)?;
    }
    Ok(())
}

/// Two entries that may be the same.
pub(super) struct Pair<'a> {
    pub(super) before: (&'a OwnedFd, Stamp),
    pub(super) after: (&'a OwnedFd, Stamp),
    pub(super) name: &'a OsStr,
}

impl Pair<'_> {
    /// True if both have the same content and lead to the same place. Files that cannot be read count as different.
    pub(super) fn is_same_content(&self) -> bool {
        let ((one, before), (other, after)) = (self.before, self.after);
        if (before.kind, before.size) != (after.kind, after.size) {
            return false;
        }
        match before.file_type() {
            FileType::RegularFile if before.size > MAX_COMPARED_BYTES => {
                before.written == after.written
            }
            FileType::RegularFile => {
                let open = |folder| open_file(folder, Path::new(self.name));
                let is_same = open(one).and_then(|one| is_same_text(one, open(other)?));
                is_same.unwrap_or(false)
                    && read_attributes(one, self.name) == read_attributes(other, self.name)
            }
            FileType::Symlink => {
                let target = |folder| readlinkat(folder, self.name, Vec::new()).ok();
                target(one).is_some_and(|leads| target(other) == Some(leads))
            }
            _ => true,
        }
    }
}

/// True if two files hold the same bytes.
pub(super) fn is_same_text(mut one: File, mut other: File) -> io::Result<bool> {
    let (mut first, mut second) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    loop {
        let count = read_full(&mut one, &mut first)?;
        if count != read_full(&mut other, &mut second)? || first.get(..count) != second.get(..count)
        {
            return Ok(false);
        }
        if count < CHUNK_BYTES {
            return Ok(true);
        }
    }
}

fn read_full(file: &mut File, chunk: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Removes a folder of a layer with all that is in it, whatever modes a command has given it.
pub(super) fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let folder = open_root_folder(path)?;
            open_up(&folder, 0)?;
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Deepest folder in a layer.
pub(super) const MAX_DEPTH: usize = 256;

/// Lets the owner into all folders below.
fn open_up(folder: &OwnedFd, depth: usize) -> io::Result<()> {
    const OPEN: Mode = Mode::RWXU;
    if depth > MAX_DEPTH {
        return Err(io::Error::other("folders are nested too deeply"));
    }
    rustix::fs::chmod(by_number(folder, OsStr::new(".")), OPEN).or_else(|_| {
        let here = format!("/proc/self/fd/{}", folder.as_raw_fd());
        rustix::fs::chmod(here, OPEN)
    })?;
    for name in entry_names(folder)? {
        if stat_entry(folder, &name)?.is_some_and(|stamp| stamp.is_folder()) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            open_up(&openat(folder, &name, flags, Mode::empty())?, depth + 1)?;
        }
    }
    Ok(())
}
