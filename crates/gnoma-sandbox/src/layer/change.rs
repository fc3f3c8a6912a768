//! What a command changed.

use std::path::{Path, PathBuf};

use super::{differences::Difference, stamp::Stamp};

/// The kind of change at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// The path does not exist any more.
    Deleted,
    /// The file has other content, or the link leads elsewhere.
    Changed,
    /// The path did not exist before.
    Created,
    /// Only its permissions or its owner are others.
    Mode,
    /// Only its time is another.
    Touched,
}

/// The kind of file at a path, or of the file before it was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
}

/// One path that a command changed.
#[derive(Clone, Debug)]
pub struct LayerChange {
    pub(super) root: usize,
    pub(super) below: PathBuf,
    pub(super) path: PathBuf,
    pub(super) kind: ChangeKind,
    pub(super) node: NodeKind,
    /// The state of the file in the real folder.
    pub(super) before: Option<Stamp>,
    /// The state of the file in the layer.
    pub(super) after: Option<Stamp>,
    pub(super) moved_from: Option<PathBuf>,
}

impl LayerChange {
    /// Returns the whole path of the change.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the kind of change.
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        self.kind
    }

    /// Returns the kind of file at the path.
    #[must_use]
    pub fn node(&self) -> NodeKind {
        self.node
    }

    /// Returns the path that a created file seems to come from: a file with the same content was deleted there.
    #[must_use]
    pub fn moved_from(&self) -> Option<&Path> {
        self.moved_from.as_deref()
    }

    /// Bytes of the file as it would be kept; none for what is deleted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self.node {
            NodeKind::File => self.after.map_or(0, |after| after.size),
            NodeKind::Folder | NodeKind::Link | NodeKind::Pipe => 0,
        }
    }

    /// The permission bits before and after, where there are some and it is no link.
    #[must_use]
    pub fn modes(&self) -> (Option<u32>, Option<u32>) {
        let bits = |stamp: Option<Stamp>| {
            stamp.filter(|_| self.node != NodeKind::Link).map(|stamp| stamp.mode & 0o7777)
        };
        (bits(self.before), bits(self.after))
    }

    /// Reports whether the file could be run as a program before, and whether it can be after.
    #[must_use]
    pub fn is_executable(&self) -> (bool, bool) {
        let runs = |stamp: Option<Stamp>| {
            self.node == NodeKind::File && stamp.is_some_and(|stamp| stamp.mode & 0o111 != 0)
        };
        (runs(self.before), runs(self.after))
    }
}

/// All that a command changed.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// In the order of their paths.
    pub list: Vec<LayerChange>,
    /// Those of the changed paths that somebody else has changed since the command began.
    pub conflicts: Vec<PathBuf>,
    /// The respects in which the layer differs from a plain folder, as seen in its content. Changes with a
    /// difference are not the changes that the command would have made in the real folder.
    pub differences: Vec<Difference>,
}

impl Changes {
    /// True if there are no changes to keep.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes of all files as they would be kept.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.list.iter().map(LayerChange::bytes).sum()
    }
}
