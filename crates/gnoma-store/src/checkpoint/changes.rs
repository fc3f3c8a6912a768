//! Differences between two checkpoints, for people and models.

use std::{
    collections::HashSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use gnoma_core::diff::unified_diff;

use super::{
    compare::compare_trees, error::Error, hash::Hash, snapshot_id::SnapshotId, tree::Item,
    workspace::Workspace,
};

/// Largest file whose lines are compared.
pub(super) const MAX_DIFF_BYTES: u64 = 1 << 20;

/// A NUL within this many bytes makes a file binary, as for git.
const SNIFFED_BYTES: usize = 8_000;

/// Lines around a change.
pub(super) const CONTEXT_LINES: usize = 3;

/// A state to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point<'a> {
    /// The files as they are.
    Now,
    /// The files of this snapshot.
    Snapshot(&'a SnapshotId),
}

/// The way in which a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The path is new.
    Added,
    /// The path is gone.
    Removed,
    /// The contents differ, or a link's target.
    Edited,
    /// Only the mode differs.
    Mode,
    /// The path became something else: a file a folder, a link a file.
    Kind,
}

impl ChangeKind {
    /// The letter git's short status has for it: `A`, `D`, `M`, or `T` for another kind of thing.
    #[must_use]
    pub fn status_letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Removed => 'D',
            Self::Edited | Self::Mode => 'M',
            Self::Kind => 'T',
        }
    }
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// A regular file.
    File {
        /// Permission bits.
        mode: u32,
        /// Length in bytes.
        size: u64,
        /// The contents of the file.
        contents: Contents,
    },
    /// A folder.
    Folder {
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// The path that the link points to.
        target: PathBuf,
    },
    /// A thing that was not kept: it cannot be shown or restored.
    NotKept,
}

/// Stored contents; [`Workspace::render_diff`] can read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents(Hash);

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// The way in which the path differs.
    pub kind: ChangeKind,
    /// The state before the change.
    pub before: Option<Side>,
    /// The state after the change.
    pub after: Option<Side>,
}

impl Workspace {
    /// Returns what differs from `from` to `to`, in byte order of paths. Of what was not kept only that it is gone,
    /// or became something that is kept, or was that before, is known. What is new and not kept is passed over:
    /// nothing was lost.
    ///
    /// # Errors
    ///
    /// A snapshot is unknown or damaged.
    pub fn list_changes(&self, from: &SnapshotId, to: Point<'_>) -> Result<Vec<Change>, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        // Another process may have taken the snapshots.
        self.vault.0.objects.refresh()?;
        let before = self.get(from)?.tree;
        let after = match to {
            Point::Now => self.scan(&mut state, &session, &AtomicBool::new(false))?.tree,
            Point::Snapshot(id) => self.get(id)?.tree,
        };
        self.changes_between(before, after)
    }

    /// Returns the changes between two trees.
    pub(super) fn changes_between(&self, before: Hash, after: Hash) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        compare_trees(
            &self.vault.0.objects,
            Some(before),
            Some(after),
            &mut |path, before, after| {
                changes.extend(detect_change(path, before, after));
            },
        )?;
        Ok(changes)
    }

    /// A change as a unified diff. Binary and very large files are named only.
    ///
    /// # Errors
    ///
    /// The contents are damaged or were deleted.
    pub fn render_diff(&self, change: &Change) -> Result<String, Error> {
        let _session = self.vault.begin_session()?;
        let is_folder = |side: &Option<Side>| matches!(side, Some(Side::Folder { .. }));
        let slash = if is_folder(&change.before) || is_folder(&change.after) { "/" } else { "" };
        let path = to_printable(change.path.as_os_str().as_bytes()) + slash;
        let mut text = mode_lines(change);
        let old = if change.before.is_some() { format!("a/{path}") } else { "/dev/null".into() };
        let new = if change.after.is_some() { format!("b/{path}") } else { "/dev/null".into() };
        if change.kind == ChangeKind::Mode {
            return Ok(format!("--- {old}\n+++ {new}\n{text}"));
        }
        let has = |side| [&change.before, &change.after].map(Option::as_ref).contains(&Some(side));
        match (self.read_lines(change.before.as_ref())?, self.read_lines(change.after.as_ref())?) {
            (Some(before), Some(after)) => {
                let hunks = unified_diff(&before, &after, CONTEXT_LINES, None);
                // A file that is new or gone is told by its name, also where it is empty.
                if !hunks.is_empty() || change.before.is_none() || change.after.is_none() {
                    text.push_str(&format!("--- {old}\n+++ {new}\n{hunks}"));
                }
            }
            _ if has(&Side::NotKept) => {
                text.push_str(&format!("{old} and {new} differ; not all of it was saved\n"));
            }
            _ => text.push_str(&format!("Binary or large files {old} and {new} differ\n")),
        }
        Ok(text)
    }

    /// `None` for what has no lines to show.
    fn read_lines(&self, side: Option<&Side>) -> Result<Option<String>, Error> {
        Ok(match side {
            None | Some(Side::Folder { .. }) => Some(String::new()),
            Some(Side::Link { target }) => Some(to_printable(target.as_os_str().as_bytes())),
            Some(Side::NotKept) => None,
            Some(Side::File { size, .. }) if *size > MAX_DIFF_BYTES => None,
            Some(Side::File { contents, .. }) => {
                let bytes = self.vault.0.objects.read(&contents.0)?;
                (!is_binary(&bytes)).then(|| String::from_utf8_lossy(&bytes).into_owned())
            }
        })
    }
}

/// The changes that people count: a folder that comes or goes with what is in it is told by that.
#[must_use]
pub fn without_filled_folders(changes: Vec<Change>) -> Vec<Change> {
    let filled: HashSet<PathBuf> =
        changes.iter().filter_map(|change| change.path.parent().map(Path::to_path_buf)).collect();
    let is_filled_folder = |change: &Change| {
        let comes_or_goes = matches!(change.kind, ChangeKind::Added | ChangeKind::Removed);
        let sides = [&change.before, &change.after];
        let is_folder = sides.into_iter().flatten().any(|side| matches!(side, Side::Folder { .. }));
        comes_or_goes && is_folder && filled.contains(&change.path)
    };
    changes.into_iter().filter(|change| !is_filled_folder(change)).collect()
}

pub(super) fn detect_change(
    path: &[u8],
    before: Option<&Item>,
    after: Option<&Item>,
) -> Option<Change> {
    if before.is_none() && after == Some(&Item::Unsaved) {
        return None;
    }
    let (before, after) = (before.map(to_side), after.map(to_side));
    let kind = match (&before, &after) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Removed,
        (Some(Side::File { contents: old, .. }), Some(Side::File { contents: new, .. })) => {
            if old == new { ChangeKind::Mode } else { ChangeKind::Edited }
        }
        (Some(Side::Folder { .. }), Some(Side::Folder { .. })) => ChangeKind::Mode,
        (Some(Side::Link { .. }), Some(Side::Link { .. }))
        | (Some(Side::NotKept), Some(Side::File { .. } | Side::NotKept))
        | (Some(Side::File { .. }), Some(Side::NotKept)) => ChangeKind::Edited,
        (Some(_), Some(_)) => ChangeKind::Kind,
    };
    Some(Change { path: OsStr::from_bytes(path).into(), kind, before, after })
}

fn to_side(item: &Item) -> Side {
    match item {
        Item::File { hash, mode, size } => {
            Side::File { mode: *mode, size: *size, contents: Contents(*hash) }
        }
        Item::Folder { mode, .. } => Side::Folder { mode: *mode },
        Item::Link { target } => Side::Link { target: OsStr::from_bytes(target).into() },
        Item::Unsaved => Side::NotKept,
    }
}

pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(SNIFFED_BYTES).any(|byte| *byte == 0)
}

fn mode_lines(change: &Change) -> String {
    let mode = |side: &Option<Side>| match side {
        Some(Side::File { mode, .. } | Side::Folder { mode }) => Some(*mode),
        Some(Side::Link { .. } | Side::NotKept) | None => None,
    };
    match (mode(&change.before), mode(&change.after)) {
        (Some(old), Some(new)) if old != new => format!("old mode {old:04o}\nnew mode {new:04o}\n"),
        _ => String::new(),
    }
}

/// Names may hold anything; a diff is text.
pub(super) fn to_printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}
