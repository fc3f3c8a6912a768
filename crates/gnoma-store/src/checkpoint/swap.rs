//! Replaces a file by a finished one so that nothing written meanwhile is lost.
//!
//! The two change places, and the old one is checked before it is unlinked: what a program wrote to it after it was
//! saved gets its name back.

use std::{collections::BTreeMap, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, readlinkat, renameat, statat, unlinkat},
    io::Errno,
};

use super::{
    folder::open_parent,
    places::unique_name,
    stamp::{Stamp, file_type},
    state::Node,
    tree::UNFINISHED_PREFIX,
};

/// A file or link as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KnownFile {
    File(Stamp),
    Link(Box<[u8]>),
}

impl KnownFile {
    /// Returns what is known of a file or link; `None` for anything else.
    pub(super) fn from_node(node: &Node) -> Option<Self> {
        match node {
            Node::File(file) => Some(Self::File(file.stamp)),
            Node::Link { target } => Some(Self::Link(target.clone())),
            Node::Folder(_) | Node::Unsaved(_) => None,
        }
    }

    /// Reports whether `name` is still that file or link, whatever it is called and however it may be used.
    pub(super) fn is_at(&self, folder: &OwnedFd, name: &[u8]) -> bool {
        match self {
            Self::File(known) => {
                statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
                    let now = Stamp::from_stat(&stat);
                    file_type(&stat).is_file()
                        && (now.device, now.inode, now.size, now.modified_ns)
                            == (known.device, known.inode, known.size, known.modified_ns)
                })
            }
            Self::Link(target) => readlinkat(folder, name, Vec::new())
                .is_ok_and(|found| found.as_bytes() == &**target),
        }
    }
}

/// A name that no program uses but a restore.
pub(super) fn unfinished_name() -> Vec<u8> {
    [UNFINISHED_PREFIX, unique_name().as_bytes()].concat()
}

/// A replaced file that waits to be unlinked.
struct ReplacedFile {
    path: Vec<u8>,
    /// The file's name until it is unlinked, in the same folder.
    unfinished: Vec<u8>,
    known: KnownFile,
}

/// The files that were replaced, and with what. File systems are slow to make files right after others were
/// deleted, so everything is made first.
#[derive(Default)]
pub(super) struct FileSwaps {
    waiting: Vec<ReplacedFile>,
    made: BTreeMap<Vec<u8>, KnownFile>,
}

impl FileSwaps {
    /// Gives a finished file its name. `known` has it now; without one nothing may have it.
    pub(super) fn place_file(
        &mut self,
        folder: &OwnedFd,
        unfinished: Vec<u8>,
        (path, name): (&[u8], &[u8]),
        (known, made): (Option<KnownFile>, KnownFile),
    ) -> Result<(), Errno> {
        match known {
            None => name_new(folder, &unfinished, name)?,
            Some(known) if exchange_names(folder, &unfinished, name) => {
                self.waiting.push(ReplacedFile { path: path.to_vec(), unfinished, known });
            }
            Some(_) => renameat(folder, &unfinished, folder, name)?,
        }
        self.made.insert(path.to_vec(), made);
        Ok(())
    }

    /// Returns what a path was given in this restore.
    pub(super) fn new_file_at(&self, path: &[u8]) -> Option<&KnownFile> {
        self.made.get(path)
    }

    /// Returns the number of files that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Unlinks what waits since there were `before`, below the folder `root` at `at`. Gives the paths
    /// where now stands what was written meanwhile.
    pub(super) fn unlink_replaced(
        &mut self,
        root: &OwnedFd,
        at: &[u8],
        before: usize,
    ) -> Vec<Vec<u8>> {
        let mut changed = Vec::new();
        for waiting in self.waiting.split_off(before.min(self.waiting.len())) {
            let start = if at.is_empty() { 0 } else { at.len() + 1 };
            let below = waiting.path.get(start..).unwrap_or_default().to_vec();
            // What cannot be reached any more is removed as after a killed restore.
            let Ok((folder, name)) = open_parent(root, &below) else { continue };
            if waiting.known.is_at(&folder, &waiting.unfinished) {
                let _ = unlinkat(&folder, &waiting.unfinished, AtFlags::empty());
            } else {
                changed.extend(self.put_back(&folder, name, waiting));
            }
        }
        changed
    }

    /// Gives what was written to its name again; where that has been written to as well, a name
    /// beside it. Gives its path, unless it is gone.
    fn put_back(&self, folder: &OwnedFd, name: &[u8], waiting: ReplacedFile) -> Option<Vec<u8>> {
        statat(folder, &waiting.unfinished, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_ours = self.new_file_at(&waiting.path).is_some_and(|made| made.is_at(folder, name));
        if is_ours && exchange_names(folder, &waiting.unfinished, name) {
            let _ = unlinkat(folder, &waiting.unfinished, AtFlags::empty());
            return Some(waiting.path);
        }
        let ending = [b".", unique_name().as_bytes()].concat();
        name_new(folder, &waiting.unfinished, &[name, &ending].concat()).ok()?;
        Some([waiting.path, ending].concat())
    }
}

/// Renaming over a file makes some file systems write the new one to disk first; changing places does
/// not. What a power failure could take is in the vault.
#[cfg(target_os = "linux")]
fn exchange_names(folder: &OwnedFd, unfinished: &[u8], name: &[u8]) -> bool {
    // A folder that appeared meanwhile could not be unlinked after.
    let is_file = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| !file_type(&stat).is_dir());
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    is_file && rustix::fs::renameat_with(folder, unfinished, folder, name, flags).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn exchange_names(_folder: &OwnedFd, _unfinished: &[u8], _name: &[u8]) -> bool {
    false
}

/// Gives a file a name that nothing has.
fn name_new(folder: &OwnedFd, unfinished: &[u8], name: &[u8]) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        let renamed = rustix::fs::renameat_with(folder, unfinished, folder, name, flags);
        if !matches!(renamed, Err(Errno::INVAL | Errno::NOSYS)) {
            return renamed;
        }
    }
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => renameat(folder, unfinished, folder, name),
        Err(refused) => Err(refused),
        Ok(_) => Err(Errno::EXIST),
    }
}
