//! What tells one state of a file from another without reading it.

use rustix::fs::{FileType, Stat};

/// A moment as file systems note it: seconds and nanoseconds.
pub(super) type FileTime = (i64, u64);

/// The facts that the file system gives about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) kind: u32,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    pub(super) links: u64,
    pub(super) size: u64,
    pub(super) written: FileTime,
    /// Moves when anything about the file does; nobody can set it.
    pub(super) changed: FileTime,
}

/// The bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o7777;

impl Stamp {
    #[expect(
        clippy::unnecessary_cast,
        reason = "the fields' types differ between instruction sets"
    )]
    pub(super) fn from_stat(facts: &Stat) -> Self {
        Self {
            device: facts.st_dev as u64,
            inode: facts.st_ino as u64,
            kind: facts.st_mode as u32 & !PERMISSIONS,
            mode: facts.st_mode as u32 & PERMISSIONS,
            owner: (facts.st_uid, facts.st_gid),
            links: facts.st_nlink as u64,
            size: u64::try_from(facts.st_size).unwrap_or(0),
            written: (facts.st_mtime as i64, facts.st_mtime_nsec as u64),
            changed: (facts.st_ctime as i64, facts.st_ctime_nsec as u64),
        }
    }

    pub(super) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.kind)
    }

    pub(super) fn is_folder(&self) -> bool {
        self.file_type() == FileType::Directory
    }

    /// True if the file was not touched since it was `before`. If a file has other names, an earlier step may have
    /// moved one of them, which shows in its time of change and nowhere else that matters.
    pub(super) fn is_untouched(&self, before: &Self) -> bool {
        let has_names = before.links > 1 && !before.is_folder();
        self == before
            || (has_names
                && self.is_same_file(before)
                && (self.mode, self.owner) == (before.mode, before.owner))
    }

    /// True if it is the same file with the same content, though it may have been moved in the meantime.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode, self.kind, self.size, self.written)
            == (other.device, other.inode, other.kind, other.size, other.written)
    }
}
