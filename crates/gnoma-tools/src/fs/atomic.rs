//! Replaces a file in one step: a reader sees the old content or the new, never a part.
//!
//! The new content goes to a hidden file in the same folder, which is then renamed. All of it happens relative to
//! the opened folder, so that nobody can redirect it in between. A link was followed when the call was examined and
//! stays a link; permission bits, access lists and extended attributes stay; the owner stays if the system allows it.
//! There is no `fsync`: a crash of the machine may lose the change, but not the file system's order.
//!
//! A file with other names (hard links) that may all change is written in place: a crash in the middle leaves a part.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    hash::{BuildHasher, RandomState},
    io::{self, Read as _, Write as _},
    os::{fd::OwnedFd, unix::fs::FileExt as _},
};

use gnoma_core::ToolCx;
use rustix::{
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, openat, renameat,
        unlinkat,
    },
    io::Errno,
};

use super::{
    Refusal, attributes, hard_links, open, shared::FileTools, target::Target, umask::Umask,
};

/// Bits of a new file before any mask.
const NEW_FILE_MODE: Mode = Mode::from_bits_retain(0o666);
/// Bits of a file that gets those of another, as long as it does not have them.
const PRIVATE_MODE: Mode = Mode::from_bits_retain(0o600);
/// Bits of which one at least makes a file writable to somebody.
const WRITE_BITS: u32 = 0o222;
/// The part of a mode that is permission.
const PERMISSION_BITS: u32 = 0o7777;
/// Names tried for the hidden file before giving up.
const MAX_NAMES_TRIED: usize = 16;

/// The names of a file that have its new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenNames {
    /// All of them.
    All,
    /// The one that was written to; others (hard links) have the old content.
    One,
}

impl WrittenNames {
    /// Returns what to say of it behind a summary of the change.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::All => "",
            Self::One => "; its other names (hard links) still have the old content",
        }
    }
}

/// Makes `content` the content of the file at `target`; makes the folders above it.
pub(super) fn replace_file(
    target: &Target,
    content: &[u8],
    shared: &FileTools,
    cx: &ToolCx,
) -> Result<WrittenNames, Refusal> {
    let (Some(above), Some(name)) = (target.path.parent(), target.path.file_name()) else {
        return Err(target.is_folder());
    };
    let cannot = |error: io::Error| target.refuse_operation("write", &error);
    let folder = open::make_folder(above, shared.umask).map_err(cannot)?;
    let existing = open::entry_facts(&folder, name).map_err(cannot)?;
    if let Some(existing) = &existing {
        may_be_replaced(target, existing)?;
    }
    let linked = existing.as_ref().filter(|existing| existing.st_nlink > 1);
    let can_change = |file: &&Stat| hard_links::can_change_all_names(shared, cx, file);
    let shared_file = linked
        .filter(can_change)
        .and_then(|existing| open_existing(&folder, name, existing, OFlags::RDWR));
    let stopped = || Refusal::Stopped(format!("`{}` was not written", target.name));
    if let Some(file) = shared_file {
        if cx.stop.is_cancelled() {
            return Err(stopped());
        }
        return write_in_place(&file, content).map(|()| WrittenNames::All).map_err(cannot);
    }
    let old = existing.as_ref().map(|facts| OldFile { name, facts });
    let hidden = StagedFile::with_content(&folder, content, old, shared.umask).map_err(cannot)?;
    if cx.stop.is_cancelled() {
        return Err(stopped());
    }
    hidden.become_file(name).map_err(cannot)?;
    Ok(if linked.is_some() { WrittenNames::One } else { WrittenNames::All })
}

/// The file that is replaced.
#[derive(Clone, Copy)]
struct OldFile<'a> {
    name: &'a OsStr,
    facts: &'a Stat,
}

/// Opens a file if it may be opened so and is still the one that these facts are about.
fn open_existing(folder: &OwnedFd, name: &OsStr, facts: &Stat, access: OFlags) -> Option<File> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let opened = fstat(&file).ok()?;
    let is_same = (opened.st_dev, opened.st_ino) == (facts.st_dev, facts.st_ino);
    is_same.then(|| File::from(file))
}

/// Makes `content` the content of an opened file. Where that fails, as on a full disk, the old content comes back.
fn write_in_place(mut file: &File, content: &[u8]) -> io::Result<()> {
    let mut old = Vec::new();
    file.read_to_end(&mut old)?;
    let write = |content: &[u8]| {
        file.write_all_at(content, 0)?;
        file.set_len(content.len() as u64)
    };
    write(content).map_err(|error| match write(&old) {
        Ok(()) => error,
        Err(again) => io::Error::other(format!(
            "{error}; its old content could not be put back ({again}), so it may hold a mix of both"
        )),
    })
}

fn may_be_replaced(target: &Target, existing: &Stat) -> Result<(), Refusal> {
    let why = match open::file_kind(existing) {
        FileType::RegularFile if existing.st_mode & WRITE_BITS != 0 => return Ok(()),
        FileType::RegularFile => {
            "is write-protected; nothing was written. Change its mode first if it may be changed"
        }
        FileType::Directory => return Err(target.is_folder()),
        FileType::Symlink => {
            "is a link that leads nowhere; nothing was written. Name the file it should lead to"
        }
        _ => return Err(target.is_special()),
    };
    Err(Refusal::Failed(format!("`{}` {why}", target.name)))
}

/// A file under a name of its own; gone when dropped before it has become the real one.
struct StagedFile<'a> {
    folder: &'a OwnedFd,
    name: OsString,
}

impl<'a> StagedFile<'a> {
    fn with_content(
        folder: &'a OwnedFd,
        content: &[u8],
        old: Option<OldFile<'_>>,
        umask: Umask,
    ) -> io::Result<Self> {
        let mode = if old.is_some() { PRIVATE_MODE } else { umask.narrow_mode(NEW_FILE_MODE) };
        let (hidden, mut file) = Self::new(folder, mode)?;
        file.write_all(content)?;
        match old {
            Some(OldFile { name, facts }) => {
                keep_owner(&file, facts)?;
                // What cannot be read shows no attributes.
                if let Some(old) = open_existing(folder, name, facts, OFlags::RDONLY) {
                    attributes::copy_attributes(&old, &file)?;
                }
                // Last: a change of owner clears bits, and an access list sets them.
                fchmod(&file, Mode::from_raw_mode(facts.st_mode & PERMISSION_BITS))?;
            }
            None => umask.widen_mode(&file, folder, NEW_FILE_MODE)?,
        }
        Ok(hidden)
    }

    fn new(folder: &'a OwnedFd, mode: Mode) -> io::Result<(Self, File)> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..MAX_NAMES_TRIED {
            let name =
                OsString::from(format!(".gnoma-{:016x}.tmp", RandomState::new().hash_one(0)));
            match openat(folder, &name, flags, mode) {
                Ok(file) => return Ok((Self { folder, name }, File::from(file))),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// A link that has meanwhile taken the name is replaced itself, not what it leads to.
    fn become_file(self, name: &OsStr) -> io::Result<()> {
        Ok(renameat(self.folder, &self.name, self.folder, name)?)
    }
}

impl Drop for StagedFile<'_> {
    fn drop(&mut self) {
        // After the rename there is nothing under this name.
        unlinkat(self.folder, &self.name, AtFlags::empty()).ok();
    }
}

/// Gives the new file the old one's owner; only the superuser may, so a refusal is no failure.
fn keep_owner(file: &File, existing: &Stat) -> io::Result<()> {
    let made = fstat(file)?;
    if (made.st_uid, made.st_gid) == (existing.st_uid, existing.st_gid) {
        return Ok(());
    }
    let (owner, group) = (Uid::from_raw(existing.st_uid), Gid::from_raw(existing.st_gid));
    match fchown(file, Some(owner), Some(group)) {
        Err(Errno::PERM | Errno::ACCESS) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{MetadataExt, PermissionsExt},
    };

    use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

    use super::*;
    use crate::{ToolOptions, fs::testing::Bench};

    fn replace_in(bench: &Bench, name: &str, content: &str) -> Result<WrittenNames, Refusal> {
        let shared = FileTools::new(&ToolOptions::default());
        let target = Target::from_call(&bench.cx(), name, &|_| None).unwrap();
        replace_file(&target, content.as_bytes(), &shared, &bench.cx())
    }

    #[test]
    fn atomic_write_creates_parent_folders_and_leaves_no_temporary_file() {
        let bench = Bench::new();
        replace_in(&bench, "a/b/c.txt", "hello").unwrap();
        assert_eq!(bench.get("a/b/c.txt"), b"hello");
        assert_eq!(bench.names("a/b"), ["c.txt"]);
    }

    #[test]
    fn permission_bits_of_an_existing_file_stay() {
        let bench = Bench::new();
        for mode in [0o755, 0o640, 0o600] {
            bench.put("run.sh", "old");
            fs::set_permissions(bench.path("run.sh"), Permissions::from_mode(mode)).unwrap();
            replace_in(&bench, "run.sh", "new").unwrap();
            let now = fs::metadata(bench.path("run.sh")).unwrap().mode();
            assert_eq!(now & PERMISSION_BITS, mode);
        }
    }

    #[test]
    fn atomic_write_of_a_new_file_uses_the_default_permission_bits() {
        let bench = Bench::new();
        bench.put("plain", "");
        replace_in(&bench, "ours", "x").unwrap();
        let mode = |name: &str| fs::metadata(bench.path(name)).unwrap().mode();
        assert_eq!(mode("ours"), mode("plain"));
    }

    #[test]
    fn atomic_write_updates_workspace_hard_links_and_splits_those_in_git_hooks() {
        let bench = Bench::new();
        for (other, written) in [("sub/b", WrittenNames::All), (".git/hooks/b", WrittenNames::One)]
        {
            bench.put("a", "old and long");
            bench.put(&format!("{other}.x"), "");
            fs::hard_link(bench.path("a"), bench.path(other)).unwrap();
            assert_eq!(replace_in(&bench, "a", "new").unwrap(), written);
            assert_eq!(bench.get("a"), b"new");
            let (content, links) = match written {
                WrittenNames::All => ("new", 2),
                WrittenNames::One => ("old and long", 1),
            };
            assert_eq!(bench.get(other), content.as_bytes());
            assert_eq!(fs::metadata(bench.path("a")).unwrap().nlink(), links);
            fs::remove_file(bench.path(other)).unwrap();
        }
    }

    #[test]
    fn access_lists_and_extended_attributes_stay() {
        let bench = Bench::new();
        let entries = [(1, 6, u32::MAX), (2, 6, 1234), (4, 4, u32::MAX), (16, 6, u32::MAX)];
        let entries = entries.into_iter().chain([(32, 0, u32::MAX)]);
        let list = entries.flat_map(|(tag, rights, id): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        });
        let list: Vec<u8> = 2_u32.to_le_bytes().into_iter().chain(list).collect();
        for (name, value) in [("user.k", b"v".to_vec()), ("system.posix_acl_access", list)] {
            bench.put("a", "old");
            let file = File::open(bench.path("a")).unwrap();
            if fsetxattr(&file, name, &value, XattrFlags::empty()).is_err() {
                gnoma_testkit::skip_test(&format!("no attribute `{name}` here"));
                continue;
            }
            let before = file.metadata().unwrap().mode();
            replace_in(&bench, "a", "new").unwrap();
            let file = File::open(bench.path("a")).unwrap();
            let mut kept = vec![0; 1 << 10];
            let length = fgetxattr(&file, name, kept.as_mut_slice()).unwrap();
            assert_eq!(kept[..length], value, "{name}");
            assert_eq!(file.metadata().unwrap().mode(), before, "{name}");
            assert_eq!(bench.get("a"), b"new");
        }
    }

    #[test]
    fn atomic_write_follows_a_symlink_and_preserves_it() {
        let bench = Bench::new();
        bench.put("real/file", "old");
        std::os::unix::fs::symlink("real/file", bench.path("link")).unwrap();
        replace_in(&bench, "link", "new").unwrap();
        assert!(bench.path("link").is_symlink());
        assert_eq!(bench.get("real/file"), b"new");
    }

    #[test]
    fn atomic_write_through_a_dangling_symlink_is_refused() {
        let bench = Bench::new();
        std::os::unix::fs::symlink("/nowhere/at/all", bench.path("link")).unwrap();
        assert!(replace_in(&bench, "link", "new").is_err());
        assert!(bench.path("link").is_symlink());
    }

    #[test]
    fn atomic_write_refuses_a_read_only_file() {
        let bench = Bench::new();
        bench.put("fixed", "old");
        fs::set_permissions(bench.path("fixed"), Permissions::from_mode(0o444)).unwrap();
        assert!(replace_in(&bench, "fixed", "new").is_err());
        assert_eq!(bench.get("fixed"), b"old");
    }

    #[test]
    fn a_failed_rename_leaves_no_hidden_file() {
        let bench = Bench::new();
        bench.put("folder/inside", "x");
        assert!(replace_in(&bench, "folder", "new").is_err());
        assert_eq!(bench.names("."), ["folder"]);
    }

    #[test]
    fn atomic_write_into_an_unwritable_folder_is_an_error() {
        let (path, name) = ("/proc/gnoma-test".into(), "x".into());
        let target = Target { path, name, found_as: None };
        let shared = FileTools::new(&ToolOptions::default());
        assert!(replace_file(&target, b"x", &shared, &Bench::new().cx()).is_err());
    }

    #[test]
    fn a_cancelled_write_changes_nothing() {
        let bench = Bench::new();
        bench.put("a", "old");
        bench.stop.cancel();
        let refusal = replace_in(&bench, "a", "new").unwrap_err();
        assert!(matches!(refusal, Refusal::Stopped(_)));
        assert_eq!(bench.get("a"), b"old");
        assert_eq!(bench.names("."), ["a"]);
    }
}
