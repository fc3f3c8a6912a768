//! Reads from a layer what was changed in it, by comparing it with what lies below.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::{
    change::{ChangeKind, Changes, LayerChange, NodeKind},
    differences::Difference,
    error::{LayerError, LayerStep},
    files::{self, MAX_DEPTH, Pair},
    stamp::{FileTime, Stamp},
};

/// Most changes that are listed.
const MAX_CHANGES: usize = 100_000;
/// Largest file that is compared to find out where it was moved from.
const MAX_MOVED_BYTES: u64 = 1 << 20;
/// Most pairs of files that are compared for that.
const MAX_MOVES: usize = 256;

/// A root of a layer while it is read.
pub(super) struct LayerReader<'a> {
    pub(super) root: usize,
    /// The path of the real folder.
    pub(super) at: &'a Path,
    /// The folder that took the changes.
    pub(super) upper: &'a Path,
    /// The start of the command, by the clock of the layer's file system.
    pub(super) began: FileTime,
    /// Whole paths that are left out with all below them.
    pub(super) left_out: &'a dyn Fn(&Path) -> bool,
}

/// A folder of the layer and what lies below it.
struct Level<'a> {
    below: &'a Path,
    upper: &'a OwnedFd,
    /// The real folder, where there is one.
    lower: Option<&'a OwnedFd>,
    /// True if the folder hides everything below it.
    opaque: bool,
    /// Names appeared or vanished in the real folder after the command began.
    moved_on: bool,
    depth: usize,
}

/// One name on a level.
struct LayerEntry {
    name: OsString,
    below: PathBuf,
    before: Option<Stamp>,
}

impl LayerReader<'_> {
    /// Adds the changes of this root.
    pub(super) fn read_changes(&self, changes: &mut Changes) -> Result<(), LayerError> {
        let opened = |path: &Path| {
            files::open_root_folder(path).with_step(|| format!("open `{}`", path.display()))
        };
        let (upper, lower) = (opened(self.upper)?, opened(self.at)?);
        let from = changes.list.len();
        let moved_on =
            self.is_newer(&files::look_at(&lower).with_step(|| self.describe_step(Path::new("")))?);
        let level = Level {
            below: Path::new(""),
            upper: &upper,
            lower: Some(&lower),
            opaque: false,
            moved_on,
            depth: 0,
        };
        self.read_level(&level, changes)?;
        if let Some(list) = changes.list.get_mut(from..) {
            find_moves(list, self.at, &upper, &lower);
            changes.differences.extend(torn_names(list));
        }
        Ok(())
    }

    fn read_level(&self, level: &Level<'_>, changes: &mut Changes) -> Result<(), LayerError> {
        if level.depth > MAX_DEPTH {
            return Err(LayerError::TooDeep(self.at.join(level.below)));
        }
        let step = || self.describe_step(level.below);
        let names = files::entry_names(level.upper).with_step(step)?;
        for name in &names {
            let below = level.below.join(name);
            if (self.left_out)(&self.at.join(&below)) {
                continue;
            }
            let before = self.stamp_before(level, name)?;
            let entry = LayerEntry { name: name.clone(), below, before };
            self.read_entry(level, &entry, changes)?;
        }
        let Some(lower) = level.lower.filter(|_| level.opaque) else { return Ok(()) };
        let known = gnoma_core::sort::to_set(&names);
        for name in
            files::entry_names(lower).with_step(step)?.iter().filter(|name| !known.contains(name))
        {
            if let Some(before) = files::stat_entry(lower, name).with_step(step)? {
                self.add_deleted_tree(lower, name, level.below.join(name), before, changes)?;
            }
        }
        Ok(())
    }

    fn stamp_before(&self, level: &Level<'_>, name: &OsStr) -> Result<Option<Stamp>, LayerError> {
        let Some(lower) = level.lower else { return Ok(None) };
        files::stat_entry(lower, name).with_step(|| self.describe_step(level.below))
    }

    fn read_entry(
        &self,
        level: &Level<'_>,
        entry: &LayerEntry,
        changes: &mut Changes,
    ) -> Result<(), LayerError> {
        let after = files::stat_entry(level.upper, &entry.name)
            .with_step(|| self.describe_step(&entry.below))?;
        let Some(after) = after else { return Ok(()) };
        if files::is_whiteout(level.upper, &entry.name, &after) {
            return self.add_deletion(level, entry, changes);
        }
        let was_folder = entry.before.is_some_and(|before| before.is_folder());
        if after.is_folder() {
            let read = self.read_folder(level, entry, after, changes);
            return read.or_else(|error| {
                let closed = Difference::Closed(self.at.join(&entry.below));
                error.is_denied().then(|| changes.differences.push(closed)).ok_or(error)
            });
        }
        let Some(node) = node_of(&after) else {
            // A socket without its server is nothing.
            if after.file_type() != FileType::Socket {
                changes.differences.push(Difference::Special(self.at.join(&entry.below)));
            }
            return Ok(());
        };
        if was_folder {
            self.add_deletion(level, entry, changes)?;
            return self.add_change(entry, ChangeKind::Created, node, (None, Some(after)), changes);
        }
        self.read_file(level, entry, (node, after), changes)
    }

    /// Records that the file at an entry was deleted.
    fn add_deletion(
        &self,
        level: &Level<'_>,
        entry: &LayerEntry,
        changes: &mut Changes,
    ) -> Result<(), LayerError> {
        match (level.lower, entry.before) {
            (Some(lower), Some(before)) => {
                self.add_deleted_tree(lower, &entry.name, entry.below.clone(), before, changes)
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    fn read_file(
        &self,
        level: &Level<'_>,
        entry: &LayerEntry,
        (node, after): (NodeKind, Stamp),
        changes: &mut Changes,
    ) -> Result<(), LayerError> {
        let Some((before, lower)) = entry.before.zip(level.lower) else {
            // It was copied from something that has gone since, unless it was moved here.
            if level.moved_on && files::is_copied(level.upper, &entry.name) {
                changes.conflicts.push(self.at.join(&entry.below));
            }
            return self.add_change(entry, ChangeKind::Created, node, (None, Some(after)), changes);
        };
        let pair = Pair { before: (lower, before), after: (level.upper, after), name: &entry.name };
        let kind = if !pair.is_same_content() {
            ChangeKind::Changed
        } else if (before.mode, before.owner) != (after.mode, after.owner) {
            ChangeKind::Mode
        } else if before.written != after.written && node != NodeKind::Link {
            ChangeKind::Touched
        } else {
            // A second name that was made for it would be kept as a file of its own.
            if node == NodeKind::File && after.links > 1 {
                changes.differences.push(Difference::HardLink(self.at.join(&entry.below)));
            }
            return Ok(());
        };
        if before.links > 1 && node == NodeKind::File {
            changes.differences.push(Difference::HardLink(self.at.join(&entry.below)));
        }
        self.add_change(entry, kind, node, (Some(before), Some(after)), changes)
    }

    fn read_folder(
        &self,
        level: &Level<'_>,
        entry: &LayerEntry,
        after: Stamp,
        changes: &mut Changes,
    ) -> Result<(), LayerError> {
        let step = || self.describe_step(&entry.below);
        let opened =
            |folder: &OwnedFd| files::open_folder(folder, Path::new(&entry.name)).with_step(step);
        let upper = opened(level.upper)?;
        let opaque = level.opaque || files::is_opaque(level.upper, &entry.name);
        let before = entry.before.filter(Stamp::is_folder);
        let lower = match (before, level.lower) {
            (Some(_), Some(lower)) => Some(opened(lower)?),
            _ => None,
        };
        match before {
            Some(before) if (before.mode, before.owner) != (after.mode, after.owner) => {
                let stamps = (Some(before), Some(after));
                self.add_change(entry, ChangeKind::Mode, NodeKind::Folder, stamps, changes)?;
            }
            Some(_) => {}
            None => {
                self.add_deletion(level, entry, changes)?;
                if level.moved_on && files::is_copied(level.upper, &entry.name) {
                    changes.conflicts.push(self.at.join(&entry.below));
                }
                let stamps = (None, Some(after));
                self.add_change(entry, ChangeKind::Created, NodeKind::Folder, stamps, changes)?;
            }
        }
        let moved_on = before.is_some_and(|before| self.is_newer(&before));
        let lower = lower.as_ref();
        let depth = level.depth + 1;
        let below = &entry.below;
        self.read_level(&Level { below, upper: &upper, lower, opaque, moved_on, depth }, changes)
    }

    /// Adds what is deleted with all that lies in it.
    fn add_deleted_tree(
        &self,
        lower: &OwnedFd,
        name: &OsStr,
        below: PathBuf,
        before: Stamp,
        changes: &mut Changes,
    ) -> Result<(), LayerError> {
        if below.components().count() > MAX_DEPTH {
            return Err(LayerError::TooDeep(self.at.join(below)));
        }
        let entry = LayerEntry { name: name.to_owned(), below, before: Some(before) };
        // What nobody can make again is deleted all the same; bringing it back is a move as well.
        let node = node_of(&before).unwrap_or(NodeKind::Pipe);
        self.add_change(&entry, ChangeKind::Deleted, node, (Some(before), None), changes)?;
        if !before.is_folder() {
            return Ok(());
        }
        let step = || self.describe_step(&entry.below);
        let folder = files::open_folder(lower, Path::new(name)).with_step(step)?;
        for name in files::entry_names(&folder).with_step(step)? {
            if let Some(before) = files::stat_entry(&folder, &name).with_step(step)? {
                let below = entry.below.join(&name);
                self.add_deleted_tree(&folder, &name, below, before, changes)?;
            }
        }
        Ok(())
    }

    fn add_change(
        &self,
        entry: &LayerEntry,
        kind: ChangeKind,
        node: NodeKind,
        (before, after): (Option<Stamp>, Option<Stamp>),
        changes: &mut Changes,
    ) -> Result<(), LayerError> {
        if changes.list.len() >= MAX_CHANGES {
            return Err(LayerError::TooMany { limit: MAX_CHANGES });
        }
        let path = self.at.join(&entry.below);
        // The time of a folder moves with what lies in it.
        let is_mode_of_folder = kind == ChangeKind::Mode && node == NodeKind::Folder;
        if before.is_some_and(|before| self.is_newer(&before)) && !is_mode_of_folder {
            changes.conflicts.push(path.clone());
        }
        let below = entry.below.clone();
        let root = self.root;
        changes.list.push(LayerChange {
            root,
            below,
            path,
            kind,
            node,
            before,
            after,
            moved_from: None,
        });
        Ok(())
    }

    /// True if the file was touched after the command began.
    fn is_newer(&self, stamp: &Stamp) -> bool {
        stamp.changed > self.began
    }

    fn describe_step(&self, below: &Path) -> String {
        format!("compare `{}`", self.at.join(below).display())
    }
}

fn node_of(stamp: &Stamp) -> Option<NodeKind> {
    match stamp.file_type() {
        FileType::RegularFile => Some(NodeKind::File),
        FileType::Directory => Some(NodeKind::Folder),
        FileType::Symlink => Some(NodeKind::Link),
        FileType::Fifo => Some(NodeKind::Pipe),
        _ => None,
    }
}

/// A file of which one of several names is gone where another was made: in a layer it is a copy that was moved, and
/// what it is under its other names would stay behind.
fn torn_names(list: &[LayerChange]) -> Option<Difference> {
    let is_file = |change: &&LayerChange| change.node == NodeKind::File;
    let mut files = list.iter().filter(is_file);
    files.clone().find(|change| change.kind == ChangeKind::Created)?;
    let torn = files.find(|change| {
        change.kind == ChangeKind::Deleted && change.before.is_some_and(|before| before.links > 1)
    });
    torn.map(|change| Difference::HardLink(change.path.clone()))
}

/// Finds out which created files were moved: one with the same content was deleted.
fn find_moves(list: &mut [LayerChange], at: &Path, upper: &OwnedFd, lower: &OwnedFd) {
    let mut deleted: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for change in &*list {
        let size = change.before.map_or(0, |before| before.size);
        let is_file = change.kind == ChangeKind::Deleted && change.node == NodeKind::File;
        if is_file && (1..=MAX_MOVED_BYTES).contains(&size) {
            deleted.entry(size).or_default().push(change.below.clone());
        }
    }
    let mut looks_left = MAX_MOVES;
    for change in list.iter_mut() {
        let is_file = change.kind == ChangeKind::Created && change.node == NodeKind::File;
        let candidates = deleted.get_mut(&change.bytes()).filter(|_| is_file);
        for place in 0..candidates.as_ref().map_or(0, |all| all.len()) {
            let Some(from) = candidates.as_ref().and_then(|all| all.get(place)) else { break };
            if looks_left == 0 {
                return;
            }
            looks_left -= 1;
            let (before, after) =
                (files::open_file(lower, from), files::open_file(upper, &change.below));
            let is_same = before.and_then(|before| files::is_same_text(before, after?));
            if is_same.unwrap_or(false) {
                change.moved_from = candidates.map(|all| at.join(all.swap_remove(place)));
                break;
            }
        }
    }
}
