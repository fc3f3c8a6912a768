//! What is known of the workspace's files: the last walk's stamps and hashes, as a tree in memory.
//!
//! Like git's index it is a cache: every entry counts only while its stamp is unchanged.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{hash::Hash, skipped::SkipCause, stamp::Stamp, tree::Encoder};

/// A name in a folder and what is known of it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: Box<[u8]>,
    pub(super) node: Node,
}

/// The thing that a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Node {
    File(FileNode),
    Link { target: Box<[u8]> },
    Folder(Box<Folder>),
    Unsaved(SkipCause),
}

/// A file whose contents are stored.
#[derive(Clone, Debug)]
pub(super) struct FileNode {
    pub(super) stamp: Stamp,
    pub(super) hash: Hash,
    /// Bytes that were stored.
    pub(super) size: u64,
    /// The stamp cannot show the next change.
    pub(super) is_racy: bool,
    /// True if the file changed while it was read.
    pub(super) is_unsteady: bool,
}

/// The extent to which a watcher saw changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WatchedChanges {
    #[default]
    No,
    /// In some folder below.
    Below,
    /// Among the folder's own entries.
    Here,
}

/// A folder; `Default` is one that was never walked.
#[derive(Clone, Debug, Default)]
pub(super) struct Folder {
    pub(super) stamp: Stamp,
    /// The list of names cannot be believed even with the same stamp.
    pub(super) is_racy: bool,
    /// The entries, in order of their names.
    pub(super) entries: Vec<Entry>,
    /// The stored tree, once there is one.
    pub(super) tree: Option<Hash>,
    pub(super) totals: Totals,
    pub(super) touched: WatchedChanges,
    /// A watch reports what changes here.
    pub(super) is_watched: bool,
}

/// Counts over a folder and everything below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) entries: u32,
    /// Files that have more names than this one.
    pub(super) linked: u32,
    /// Things to name as skipped.
    pub(super) noted: u32,
}

impl Folder {
    /// The entry called `name`.
    pub(super) fn get(&self, name: &[u8]) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.name.as_ref().cmp(name)).ok()?;
        self.entries.get(at)
    }

    /// Returns what is at a path below.
    pub(super) fn find_node(&self, path: &[u8]) -> Option<&Node> {
        let mut names = path.split(|byte| *byte == b'/');
        let mut node = &self.get(names.next()?)?.node;
        for name in names {
            let Node::Folder(below) = node else { return None };
            node = &below.get(name)?.node;
        }
        Some(node)
    }

    fn get_mut(&mut self, name: &[u8]) -> Option<&mut Entry> {
        let at = self.entries.binary_search_by(|entry| entry.name.as_ref().cmp(name)).ok()?;
        self.entries.get_mut(at)
    }

    /// Marks the folder at `path` as touched, and the way to it. Where the path ends early, the
    /// last known folder is touched. With `lost` the folder is no longer watched.
    pub(super) fn mark_touched(&mut self, path: &[u8], lost: bool) {
        let mut folder = self;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            folder.touched = folder.touched.max(WatchedChanges::Below);
            // Looked up twice: a borrow that is returned in one branch cannot be reused in the other.
            if !matches!(folder.get(name), Some(Entry { node: Node::Folder(_), .. })) {
                folder.touched = WatchedChanges::Here;
                return;
            }
            let Some(Entry { node: Node::Folder(below), .. }) = folder.get_mut(name) else {
                return;
            };
            folder = below;
        }
        folder.touched = WatchedChanges::Here;
        folder.is_watched &= !lost;
    }

    /// Forgets which folders are watched.
    pub(super) fn unwatch(&mut self) {
        self.is_watched = false;
        for entry in &mut self.entries {
            if let Node::Folder(below) = &mut entry.node {
                below.unwatch();
            }
        }
    }

    /// Reports whether a file right here has other names, through which it may change unseen.
    pub(super) fn has_linked_files(&self) -> bool {
        self.totals.linked > 0
            && self
                .entries
                .iter()
                .any(|entry| matches!(&entry.node, Node::File(file) if file.stamp.links > 1))
    }

    /// The folder as a tree object; `None` while a subfolder has no tree.
    pub(super) fn encode_tree(&self) -> Option<Vec<u8>> {
        let mut out = Encoder::new(self.entries.len());
        for entry in &self.entries {
            match &entry.node {
                Node::File(file) => {
                    out.add_file(&entry.name, &file.hash, file.stamp.mode, file.size);
                }
                Node::Link { target, .. } => out.add_link(&entry.name, target),
                Node::Folder(below) => out.add_folder(&entry.name, &below.tree?, below.stamp.mode),
                Node::Unsaved(_) => out.add_unsaved(&entry.name),
            }
        }
        Some(out.finish())
    }

    /// Counts again from the entries and the counts of the subfolders.
    pub(super) fn recount_entries(&mut self) {
        let mut totals = Totals::default();
        for entry in &self.entries {
            totals.entries += 1;
            match &entry.node {
                Node::File(file) => {
                    totals.linked += u32::from(file.stamp.links > 1);
                    totals.noted += u32::from(file.is_unsteady);
                }
                Node::Link { .. } => {}
                Node::Folder(below) => {
                    totals.entries += below.totals.entries;
                    totals.linked += below.totals.linked;
                    totals.noted += below.totals.noted;
                }
                Node::Unsaved(_) => totals.noted += 1,
            }
        }
        self.totals = totals;
    }

    /// Calls `visit` with path and entry for each file with other names and each thing noted.
    pub(super) fn visit_noted(&self, path: &mut Vec<u8>, visit: &mut impl FnMut(&[u8], &Node)) {
        if self.totals.linked == 0 && self.totals.noted == 0 {
            return;
        }
        for entry in &self.entries {
            let length = path.len();
            push_name(path, &entry.name);
            match &entry.node {
                Node::Folder(below) => below.visit_noted(path, visit),
                node => visit(path, node),
            }
            path.truncate(length);
        }
    }
}

/// Appends a name to a path relative to the workspace.
pub(super) fn push_name(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// A count that threads share.
#[derive(Debug, Default)]
pub(super) struct ThreadQuota(AtomicU32);

impl ThreadQuota {
    pub(super) fn new(count: u32) -> Self {
        Self(AtomicU32::new(count))
    }

    /// Takes one, if there is one.
    pub(super) fn try_take(&self) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1))
            .is_ok()
    }

    pub(super) fn give_back(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
