//! Replaces a file in one step: a reader sees the old content or the new, never a part.
//!
//! The new content goes to a hidden file in the same folder, which is then renamed. All of it happens relative to
//! the opened folder, so that nobody can redirect it in between. A link was followed when the call was examined and
//! stays a link; permission bits stay; the owner stays if the system allows it. Hard links are not kept. There is
//! no `fsync`: a crash of the machine may lose the change, but not the file system's order.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, openat, renameat,
        unlinkat,
    },
    io::Errno,
};
use tokio_util::sync::CancellationToken;

use super::{Refusal, open, target::Target, umask::Umask};

/// Bits of a new file before any mask.
const NEW_FILE_MODE: Mode = Mode::from_bits_retain(0o666);
/// Bits of which one at least makes a file writable to somebody.
const WRITE_BITS: u32 = 0o222;
/// The part of a mode that is permission.
const PERMISSION_BITS: u32 = 0o7777;
/// Names tried for the hidden file before giving up.
const MAX_NAMES_TRIED: usize = 16;

/// Makes `content` the content of the file at `target`; makes the folders above it.
pub(super) fn replace_file(
    target: &Target,
    content: &[u8],
    umask: Umask,
    stop: &CancellationToken,
) -> Result<(), Refusal> {
    let (Some(above), Some(name)) = (target.path.parent(), target.path.file_name()) else {
        return Err(target.is_folder());
    };
    let cannot = |error: io::Error| target.refuse_operation("write", &error);
    let folder = open::make_folder(above, umask).map_err(cannot)?;
    let existing = open::entry_facts(&folder, name).map_err(cannot)?;
    if let Some(existing) = &existing {
        may_be_replaced(target, existing)?;
    }
    let hidden =
        StagedFile::with_content(&folder, content, existing.as_ref(), umask).map_err(cannot)?;
    if stop.is_cancelled() {
        return Err(Refusal::Stopped(format!("`{}` was not written", target.name)));
    }
    hidden.become_file(name).map_err(cannot)
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
        existing: Option<&Stat>,
        umask: Umask,
    ) -> io::Result<Self> {
        let (hidden, mut file) = Self::new(folder, umask.narrow_mode(NEW_FILE_MODE))?;
        file.write_all(content)?;
        match existing {
            Some(existing) => {
                keep_owner(&file, existing)?;
                // After the owner: a change of owner clears bits.
                fchmod(&file, Mode::from_raw_mode(existing.st_mode & PERMISSION_BITS))?;
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

    use super::*;
    use crate::fs::testing::Bench;

    fn replace_in(bench: &Bench, name: &str, content: &str) -> Result<(), Refusal> {
        let target = Target::from_call(&bench.cx(), name, &|_| None).unwrap();
        replace_file(&target, content.as_bytes(), Umask::default(), &CancellationToken::new())
    }

    #[test]
    fn parents_are_made_and_nothing_else_is_left() {
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
    fn a_new_file_gets_the_bits_any_new_file_gets() {
        let bench = Bench::new();
        bench.put("plain", "");
        replace_in(&bench, "ours", "x").unwrap();
        let mode = |name: &str| fs::metadata(bench.path(name)).unwrap().mode();
        assert_eq!(mode("ours"), mode("plain"));
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_is_written() {
        let bench = Bench::new();
        bench.put("real/file", "old");
        std::os::unix::fs::symlink("real/file", bench.path("link")).unwrap();
        replace_in(&bench, "link", "new").unwrap();
        assert!(bench.path("link").is_symlink());
        assert_eq!(bench.get("real/file"), b"new");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_refused() {
        let bench = Bench::new();
        std::os::unix::fs::symlink("/nowhere/at/all", bench.path("link")).unwrap();
        assert!(replace_in(&bench, "link", "new").is_err());
        assert!(bench.path("link").is_symlink());
    }

    #[test]
    fn a_write_protected_file_is_left_alone() {
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
    fn a_folder_that_takes_no_files_is_reported() {
        let (path, name) = ("/proc/gnoma-test".into(), "x".into());
        let target = Target { path, name, found_as: None };
        assert!(replace_file(&target, b"x", Umask::default(), &CancellationToken::new()).is_err());
    }

    #[test]
    fn a_cancelled_write_changes_nothing() {
        let bench = Bench::new();
        bench.put("a", "old");
        let stop = CancellationToken::new();
        stop.cancel();
        let target = Target::from_call(&bench.cx(), "a", &|_| None).unwrap();
        let refusal = replace_file(&target, b"new", Umask::default(), &stop).unwrap_err();
        assert!(matches!(refusal, Refusal::Stopped(_)));
        assert_eq!(bench.get("a"), b"old");
        assert_eq!(bench.names("."), ["a"]);
    }
}
