//! Walking the workspace: what changed is found by stamps, stored, and written into new trees.
//!
//! Everything is opened relative to its folder and no link is followed, so that a folder swapped for
//! a link leads nowhere. Threads share the work while there is more than one folder to look at.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use gnoma_core::sync::Mutex;
use rustix::{
    fs::{AtFlags, Dir, FileType, fstat, readlinkat, statat},
    io::Errno,
};

use super::{
    error::{Error, PathErrorExt},
    folder::MAX_DEPTH,
    objects::Objects,
    options::Limits,
    places::now_ns,
    rules::{Frame, OuterRules, RULES_NAME, is_marked, is_rebuilt},
    save::{FileSaveOutcome, save_contents},
    skipped::SkipCause,
    stamp::{Stamp, file_type},
    state::{Entry, FileNode, Folder, Node, ThreadQuota, WatchedChanges, push_name},
    tree::{is_foreign, is_unfinished},
    unlock::{OWNER_ALL, OWNER_READ, UnlockedFolder, open_folder, set_mode},
    watch::Watcher,
    write::Batch,
};

/// Only this near to the root is work shared: deeper a thread costs more than it brings.
const MAX_FORK_DEPTH: u32 = 6;

/// One walk through the workspace.
pub(super) struct Walk<'a> {
    pub(super) batch: &'a Batch<'a>,
    pub(super) objects: &'a Objects,
    pub(super) limits: &'a Limits,
    pub(super) outer: &'a OuterRules,
    pub(super) watcher: Option<&'a Watcher>,
    pub(super) cancel: &'a AtomicBool,
    /// The path of the workspace; errors name it.
    pub(super) root: &'a Path,
    pub(super) device: u64,
    /// The vault's own folder, should it be inside.
    pub(super) vault: (u64, u64),
    /// Threads that may still be started.
    pub(super) spare: ThreadQuota,
    /// Look at everything, not only at what was touched.
    pub(super) is_full: bool,
    /// Objects may have been deleted: check that each is there.
    pub(super) is_doubtful: bool,
    /// Open up what is closed to its owner, and note it here.
    pub(super) unlocked: Option<&'a Mutex<Vec<UnlockedFolder>>>,
    /// Out: something was found that a partial walk cannot judge.
    pub(super) needs_full: AtomicBool,
}

impl Walk<'_> {
    /// Brings `folder` up to date with what is opened as `fd`.
    pub(super) fn run(&self, fd: &OwnedFd, folder: &mut Folder) -> Result<(), Error> {
        self.walk_folder(&Frame::new(None, self.outer, fd, b""), 0, folder).map(|_| ())
    }

    /// Gives whether the folder's tree may be another one.
    fn walk_folder(
        &self,
        frame: &Frame<'_>,
        depth: u32,
        folder: &mut Folder,
    ) -> Result<bool, Error> {
        let newly_watched = self.watch_folder(frame, folder);
        let mut changed = folder.tree.is_none() || self.is_lost(folder.tree.as_ref());
        if self.is_full
            || changed
            || newly_watched
            || folder.touched == WatchedChanges::Here
            || folder.has_linked_files()
        {
            changed |= self.scan_entries(frame, depth, folder)?;
        }
        if changed {
            folder.tree = None;
        }
        changed |= self.walk_subfolders(frame, depth, folder)?;
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        folder.touched = WatchedChanges::No;
        folder.recount_entries();
        if changed {
            folder.tree =
                folder.encode_tree().map(|bytes| self.batch.store_bytes(&bytes)).transpose()?;
        }
        Ok(changed)
    }

    fn watch_folder(&self, frame: &Frame<'_>, folder: &mut Folder) -> bool {
        let Some(watcher) = self.watcher.filter(|watcher| !watcher.is_broken()) else {
            return false;
        };
        if folder.is_watched {
            return false;
        }
        folder.is_watched = watcher.add(frame.folder, frame.path);
        true
    }

    fn is_lost(&self, hash: Option<&super::hash::Hash>) -> bool {
        self.is_doubtful && hash.is_some_and(|hash| !self.objects.contains(hash))
    }

    /// Compares each entry with what is known.
    fn scan_entries(
        &self,
        frame: &Frame<'_>,
        depth: u32,
        folder: &mut Folder,
    ) -> Result<bool, Error> {
        let begun_ns = now_ns();
        let stat = fstat(frame.folder).io_context("read", &self.absolute_path(frame, b""))?;
        let stamp = Stamp::from_stat(&stat);
        let names_hold =
            folder.tree.is_some() && !folder.is_racy && stamp.same_contents(&folder.stamp);
        let mut changed = stamp.mode != folder.stamp.mode;
        // Until the end: should this fail half-way, the names must be listed again.
        folder.is_racy = true;
        let old = std::mem::take(&mut folder.entries);
        let met: Vec<(Box<[u8]>, Option<Node>)> = if names_hold {
            old.into_iter().map(|entry| (entry.name, Some(entry.node))).collect()
        } else {
            let names =
                list_names(frame.folder).io_context("list", &self.absolute_path(frame, b""))?;
            changed |= self.is_any_gone(&old, &names);
            pair_names(old, names)
        };
        folder.entries.reserve_exact(met.len());
        for (name, known) in met {
            let (node, differs) = self.scan_entry(frame, depth, &name, known)?;
            if differs && name.as_ref() == RULES_NAME {
                self.needs_full.store(true, Ordering::Relaxed);
            }
            changed |= differs;
            if let Some(node) = node {
                folder.entries.push(Entry { name, node });
            }
        }
        folder.is_racy = stamp.is_racy(begun_ns);
        folder.stamp = stamp;
        Ok(changed)
    }

    fn is_any_gone(&self, old: &[Entry], names: &[Box<[u8]>]) -> bool {
        let gone = |entry: &&Entry| names.binary_search(&entry.name).is_err();
        let rules_gone = old.iter().filter(gone).any(|entry| entry.name.as_ref() == RULES_NAME);
        if rules_gone {
            self.needs_full.store(true, Ordering::Relaxed);
        }
        old.iter().any(|entry| gone(&entry))
    }

    /// Returns what stands behind `name` now, and whether that differs from what was known.
    fn scan_entry(
        &self,
        frame: &Frame<'_>,
        depth: u32,
        name: &[u8],
        known: Option<Node>,
    ) -> Result<(Option<Node>, bool), Error> {
        if self.cancel.load(Ordering::Relaxed) {
            return Ok((known, true));
        }
        let stat = match statat(frame.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok((None, known.is_some())),
            Err(_) => return Ok(unsaved_node(known.as_ref(), SkipCause::Unreadable)),
        };
        let stamp = Stamp::from_stat(&stat);
        match file_type(&stat) {
            FileType::RegularFile => self.scan_file(frame, name, stamp, known),
            FileType::Symlink => Ok(scan_link(frame, name, known.as_ref())),
            FileType::Directory => Ok(self.scan_subfolder(frame, depth, name, stamp, known)),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(unsaved_node(known.as_ref(), SkipCause::Special)),
        }
    }

    fn scan_file(
        &self,
        frame: &Frame<'_>,
        name: &[u8],
        stamp: Stamp,
        known: Option<Node>,
    ) -> Result<(Option<Node>, bool), Error> {
        if stamp.size > self.limits.file_bytes {
            return Ok(unsaved_node(known.as_ref(), SkipCause::TooLarge));
        }
        if stamp.size > self.limits.ignored_file_bytes
            && frame.ignores(&child_path(frame.path, name), false)
        {
            return Ok(unsaved_node(known.as_ref(), SkipCause::Ignored));
        }
        let old = match known {
            Some(Node::File(old)) => Some(old),
            _ => None,
        };
        if let Some(old) = old.as_ref().filter(|old| self.still_holds(old, &stamp)) {
            return Ok((Some(Node::File(old.clone())), false));
        }
        if stamp.links > 1 && old.as_ref().is_none_or(|old| old.stamp.links < 2) {
            self.needs_full.store(true, Ordering::Relaxed);
        }
        Ok(match self.save_file(frame, name, &stamp)? {
            FileSaveOutcome::File(new) => {
                let same = old.as_ref().is_some_and(|old| {
                    (old.hash, old.stamp.mode, old.size) == (new.hash, new.stamp.mode, new.size)
                });
                (Some(Node::File(new)), !same)
            }
            FileSaveOutcome::Gone => (None, old.is_some()),
            FileSaveOutcome::Unsaved(why) => (Some(Node::Unsaved(why)), true),
        })
    }

    /// Stores a file, also one that is closed to its owner where that is wanted.
    fn save_file(
        &self,
        frame: &Frame<'_>,
        name: &[u8],
        stamp: &Stamp,
    ) -> Result<FileSaveOutcome, Error> {
        let save = || save_contents(self.batch, frame.folder, name, self.limits.file_bytes);
        let saved = save()?;
        let is_closed = matches!(saved, FileSaveOutcome::Unsaved(SkipCause::Unreadable))
            && self.unlocked.is_some()
            && set_mode(frame.folder, name, stamp.mode | OWNER_READ).is_ok();
        if !is_closed {
            return Ok(saved);
        }
        let saved = save()?;
        // Should it fail, the file is left more open to its owner, which the next look shows.
        let _ = set_mode(frame.folder, name, stamp.mode);
        let FileSaveOutcome::File(file) = saved else { return Ok(saved) };
        let now = statat(frame.folder, name, AtFlags::SYMLINK_NOFOLLOW);
        Ok(now.map_or(FileSaveOutcome::Gone, |stat| {
            FileSaveOutcome::File(FileNode {
                stamp: Stamp::from_stat(&stat),
                is_racy: true,
                ..file
            })
        }))
    }

    fn still_holds(&self, old: &FileNode, stamp: &Stamp) -> bool {
        old.stamp == *stamp && !old.is_racy && !self.is_lost(Some(&old.hash))
    }

    fn scan_subfolder(
        &self,
        frame: &Frame<'_>,
        depth: u32,
        name: &[u8],
        stamp: Stamp,
        known: Option<Node>,
    ) -> (Option<Node>, bool) {
        if (stamp.device, stamp.inode) == self.vault {
            return (None, known.is_some());
        }
        if stamp.device != self.device {
            return unsaved_node(known.as_ref(), SkipCause::Mounted);
        }
        if depth >= MAX_DEPTH {
            return unsaved_node(known.as_ref(), SkipCause::TooDeep);
        }
        let is_left_out =
            || frame.ignores(&child_path(frame.path, name), true) || is_marked(frame.folder, name);
        if is_rebuilt(name) && is_left_out() {
            return unsaved_node(known.as_ref(), SkipCause::Rebuilt);
        }
        match known {
            Some(Node::Folder(mut old))
                if (old.stamp.device, old.stamp.inode) == (stamp.device, stamp.inode) =>
            {
                let differs = old.stamp.mode != stamp.mode;
                old.stamp.mode = stamp.mode;
                (Some(Node::Folder(old)), differs)
            }
            _ => {
                let (device, inode, mode) = (stamp.device, stamp.inode, stamp.mode);
                let stamp = Stamp { device, inode, mode, ..Stamp::default() };
                (Some(Node::Folder(Box::new(Folder { stamp, ..Folder::default() }))), true)
            }
        }
    }

    fn walk_subfolders(
        &self,
        frame: &Frame<'_>,
        depth: u32,
        folder: &mut Folder,
    ) -> Result<bool, Error> {
        let mut due: Vec<&mut Entry> =
            folder.entries.iter_mut().filter(|entry| self.is_due(&entry.node)).collect();
        if due.is_empty() {
            return Ok(false);
        }
        let changed = self.walk_children(frame, depth, &mut due)?;
        if changed {
            folder.tree = None;
        }
        // What vanished between looking and opening has no tree.
        folder
            .entries
            .retain(|entry| !matches!(&entry.node, Node::Folder(below) if below.tree.is_none()));
        Ok(changed)
    }

    fn is_due(&self, node: &Node) -> bool {
        let Node::Folder(below) = node else { return false };
        self.is_full
            || below.tree.is_none()
            || below.touched != WatchedChanges::No
            || below.totals.linked > 0
    }

    fn walk_children(
        &self,
        frame: &Frame<'_>,
        depth: u32,
        mut due: &mut [&mut Entry],
    ) -> Result<bool, Error> {
        let mut changed = false;
        while !due.is_empty() {
            if due.len() > 1 && depth <= MAX_FORK_DEPTH && self.spare.try_take() {
                let half = due.len() / 2;
                return Ok(changed | self.walk_in_parallel(frame, depth, due.split_at_mut(half))?);
            }
            let Some((first, rest)) = due.split_first_mut() else { break };
            changed |= self.walk_child(frame, depth, first)?;
            due = rest;
        }
        Ok(changed)
    }

    fn walk_in_parallel(
        &self,
        frame: &Frame<'_>,
        depth: u32,
        (near, far): (&mut [&mut Entry], &mut [&mut Entry]),
    ) -> Result<bool, Error> {
        std::thread::scope(|scope| {
            let helper = std::thread::Builder::new().spawn_scoped(scope, || {
                let done = self.walk_children(frame, depth, far);
                self.spare.give_back();
                done
            });
            let near = self.walk_children(frame, depth, near);
            let far = match helper.io_context("start a thread for", self.root)?.join() {
                Ok(far) => far,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            Ok(near? | far?)
        })
    }

    fn walk_child(&self, parent: &Frame<'_>, depth: u32, entry: &mut Entry) -> Result<bool, Error> {
        let Node::Folder(folder) = &mut entry.node else { return Ok(false) };
        let path = child_path(parent.path, &entry.name);
        let mode = folder.stamp.mode;
        match self.enter_folder(parent, &entry.name, &path, mode) {
            Ok(fd) => {
                let frame = Frame::new(Some(parent), self.outer, &fd, &path);
                let changed = self.walk_folder(&frame, depth + 1, folder)?;
                if self.unlocked.is_some() {
                    // What is to be kept is the mode it had before it was opened up.
                    folder.stamp.mode = mode;
                }
                Ok(changed)
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                folder.tree = None;
                Ok(true)
            }
            Err(refused @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                Err(refused).io_context("open", &self.absolute_path(parent, &entry.name))
            }
            Err(_) => {
                entry.node = Node::Unsaved(SkipCause::Unreadable);
                Ok(true)
            }
        }
    }

    fn enter_folder(
        &self,
        parent: &Frame<'_>,
        name: &[u8],
        path: &[u8],
        mode: u32,
    ) -> Result<OwnedFd, Errno> {
        let entered = open_folder(parent.folder, name);
        if let (Err(Errno::ACCESS), Some(unlocked)) = (&entered, self.unlocked) {
            set_mode(parent.folder, name, mode | OWNER_ALL)?;
            unlocked.lock().push(UnlockedFolder { path: path.to_vec(), mode });
            return open_folder(parent.folder, name);
        }
        entered
    }

    fn absolute_path(&self, frame: &Frame<'_>, name: &[u8]) -> PathBuf {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
        self.root.join(OsStr::from_bytes(frame.path)).join(OsStr::from_bytes(name))
    }
}

fn child_path(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = path.to_vec();
    push_name(&mut path, name);
    path
}

fn unsaved_node(known: Option<&Node>, why: SkipCause) -> (Option<Node>, bool) {
    (Some(Node::Unsaved(why)), !matches!(known, Some(Node::Unsaved(_))))
}

/// Always read: a link made again within one tick of the clock can have the stamp of the old one,
/// and its other names change its stamp unheard.
fn scan_link(frame: &Frame<'_>, name: &[u8], known: Option<&Node>) -> (Option<Node>, bool) {
    match readlinkat(frame.folder, name, Vec::new()) {
        Ok(target) => {
            let target = target.into_bytes().into_boxed_slice();
            let same = matches!(known, Some(Node::Link { target: old }) if *old == target);
            (Some(Node::Link { target }), !same)
        }
        Err(_) => (None, true),
    }
}

/// The names in a folder that are ours to keep, in byte order.
pub(super) fn list_names(folder: &OwnedFd) -> Result<Vec<Box<[u8]>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." && !is_foreign(name) && !is_unfinished(name) {
            names.push(Box::from(name));
        }
    }
    gnoma_core::sort::sort_items(&mut names);
    Ok(names)
}

/// Puts to each name what was known of it. Both come in byte order.
fn pair_names(old: Vec<Entry>, names: Vec<Box<[u8]>>) -> Vec<(Box<[u8]>, Option<Node>)> {
    let mut old = old.into_iter().peekable();
    names
        .into_iter()
        .map(|name| {
            while old.next_if(|entry| entry.name < name).is_some() {}
            let known = old.next_if(|entry| entry.name == name).map(|entry| entry.node);
            (name, known)
        })
        .collect()
}
