//! Writes a stored tree into an empty private folder: no one else is there, so files get their names at once,
//! threads share the work, and what was written is known without reading it again.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread::Builder,
};

use rustix::{
    fs::{Mode, OFlags, RawMode, fchmod, fstat, mkdirat, openat, symlinkat},
    io::Errno,
};

use super::{
    apply::clone_into,
    compare::load_tree,
    error::{Error, PathErrorExt},
    folder::{FOLDER_FLAGS, MAX_DEPTH},
    hash::Hash,
    objects::Objects,
    places::now_ns,
    stamp::Stamp,
    state::{Entry, FileNode, Folder, Node, ThreadQuota},
    tree::{Item, Tree},
    unlock::OWNER_ALL,
};

/// Entries that are worth a thread of their own.
const MIN_SHARED: usize = 64;

/// One copy of a stored tree.
pub(super) struct TreeCopy<'a> {
    objects: &'a Objects,
    /// Threads that may still be started.
    spare: ThreadQuota,
    /// True once the copy need not be made any more.
    unwanted: &'a AtomicBool,
}

/// An open folder that is being filled.
#[derive(Clone, Copy)]
struct CopyFolder<'a> {
    fd: &'a OwnedFd,
    path: &'a Path,
    depth: u32,
}

impl<'a> TreeCopy<'a> {
    pub(super) fn new(objects: &'a Objects, threads: usize, unwanted: &'a AtomicBool) -> Self {
        let spare = u32::try_from(threads.saturating_sub(1)).unwrap_or_default();
        Self { objects, spare: ThreadQuota::new(spare), unwanted }
    }

    /// Fills the folder `root`, which is at `path`; gives what is known of it then.
    pub(super) fn run(&self, root: &OwnedFd, path: &Path, tree: Hash) -> Result<Folder, Error> {
        let mut known = self.copy_folder(CopyFolder { fd: root, path, depth: 0 }, tree)?;
        // What was written a moment ago may be written again with the same stamp.
        update_racy_flags(&mut known, now_ns());
        Ok(known)
    }

    fn copy_folder(&self, here: CopyFolder<'_>, hash: Hash) -> Result<Folder, Error> {
        if here.depth > MAX_DEPTH + 1 {
            return Err(Error::Damaged("folders are nested too deeply".to_owned()));
        }
        let Tree(items) = load_tree(self.objects, &hash)?;
        let entries = self.copy_entries(here, &items)?;
        // What was not kept is not there.
        let is_whole = entries.len() == items.len()
            && entries.iter().all(|entry| match &entry.node {
                Node::Folder(below) => below.tree.is_some(),
                Node::File(_) | Node::Link { .. } | Node::Unsaved(_) => true,
            });
        let stamp = Stamp::from_stat(&fstat(here.fd).io_context("read", here.path)?);
        let tree = is_whole.then_some(hash);
        let mut folder = Folder { stamp, entries, tree, ..Folder::default() };
        folder.recount_entries();
        Ok(folder)
    }

    fn copy_entries(
        &self,
        here: CopyFolder<'_>,
        items: &[(Vec<u8>, Item)],
    ) -> Result<Vec<Entry>, Error> {
        if items.len() >= MIN_SHARED && self.spare.try_take() {
            let (near, far) = items.split_at(items.len() / 2);
            return self.copy_in_parallel(here, near, far);
        }
        let mut entries = Vec::with_capacity(items.len());
        for (name, item) in items {
            if let Some(node) = self.copy_node(here, name, item)? {
                entries.push(Entry { name: name.as_slice().into(), node });
            }
        }
        Ok(entries)
    }

    fn copy_in_parallel(
        &self,
        here: CopyFolder<'_>,
        near: &[(Vec<u8>, Item)],
        far: &[(Vec<u8>, Item)],
    ) -> Result<Vec<Entry>, Error> {
        std::thread::scope(|scope| {
            let helper = Builder::new().spawn_scoped(scope, || {
                let done = self.copy_entries(here, far);
                self.spare.give_back();
                done
            });
            let near = self.copy_entries(here, near);
            let far = match helper.io_context("start a thread for", here.path)?.join() {
                Ok(far) => far,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let mut entries = near?;
            entries.extend(far?);
            Ok(entries)
        })
    }

    fn copy_node(
        &self,
        here: CopyFolder<'_>,
        name: &[u8],
        item: &Item,
    ) -> Result<Option<Node>, Error> {
        if self.unwanted.load(Ordering::Relaxed) {
            return Err(io::Error::from(Errno::CANCELED))
                .io_context("write", &here.child_path(name));
        }
        Ok(match item {
            Item::Unsaved => None,
            Item::Link { target } => {
                let made = symlinkat(OsStr::from_bytes(target), here.fd, name);
                made.io_context("write", &here.child_path(name))?;
                Some(Node::Link { target: target.as_slice().into() })
            }
            Item::File { hash, mode, size } => {
                let stamp = self.copy_file(here, name, hash, *mode)?;
                let (hash, size) = (*hash, *size);
                let node = FileNode { stamp, hash, size, is_racy: true, is_unsteady: false };
                Some(Node::File(node))
            }
            Item::Folder { hash, mode } => {
                let path = here.child_path(name);
                let own = Mode::from_raw_mode(OWNER_ALL as RawMode);
                mkdirat(here.fd, name, own).io_context("write", &path)?;
                let fd =
                    openat(here.fd, name, FOLDER_FLAGS, Mode::empty()).io_context("open", &path)?;
                let below = CopyFolder { fd: &fd, path: &path, depth: here.depth + 1 };
                let mut folder = self.copy_folder(below, *hash)?;
                if folder.stamp.mode != *mode {
                    fchmod(&fd, Mode::from_raw_mode(*mode as RawMode))
                        .io_context("write", &path)?;
                    folder.stamp = Stamp::from_stat(&fstat(&fd).io_context("read", &path)?);
                }
                Some(Node::Folder(Box::new(folder)))
            }
        })
    }

    fn copy_file(
        &self,
        here: CopyFolder<'_>,
        name: &[u8],
        hash: &Hash,
        mode: u32,
    ) -> Result<Stamp, Error> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let write = || -> Result<File, Errno> {
            openat(here.fd, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
        };
        let mut file = write().io_context("write", &here.child_path(name))?;
        if !clone_into(self.objects, hash, &file) {
            // The bytes are checked against their hash.
            self.objects.copy_to(hash, &mut file)?;
        }
        let set = fchmod(&file, Mode::from_raw_mode(mode as RawMode));
        let stat = set.and_then(|()| fstat(&file)).io_context("write", &here.child_path(name))?;
        Ok(Stamp::from_stat(&stat))
    }
}

impl CopyFolder<'_> {
    fn child_path(&self, name: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(name))
    }
}

/// Believes the stamps that are old enough.
fn update_racy_flags(folder: &mut Folder, now_ns: i128) {
    folder.is_racy = folder.stamp.is_racy(now_ns);
    for entry in &mut folder.entries {
        match &mut entry.node {
            Node::File(file) => file.is_racy = file.stamp.is_racy(now_ns),
            Node::Folder(below) => update_racy_flags(below, now_ns),
            Node::Link { .. } | Node::Unsaved(_) => {}
        }
    }
}
