//! Reverts one file, or one hunk of it, to an earlier state: finds the state that all files would have then, which a
//! restore makes them.
//!
//! What is written always comes from a snapshot or from a commit, never from the one who asks: a hunk only names
//! which of the present differences is meant.

use std::{os::unix::ffi::OsStrExt, path::PathBuf, sync::atomic::AtomicBool};

use gnoma_core::diff::reverse_hunk;

use super::{
    changes::{CONTEXT_LINES, Change, MAX_DIFF_BYTES, detect_change, is_binary, to_printable},
    compare::{compare_trees, find_item},
    edit::{Edit, EntryChange},
    error::Error,
    hash::Hash,
    lock,
    snapshot_cause::SnapshotCause,
    snapshot_id::SnapshotId,
    tree::Item,
    workspace::{ScannedState, Workspace},
    write::Batch,
};

/// A mode that lets its owner run a file, as git knows it.
const EXECUTABLE: u32 = 0o100;
/// The mode bits that git does not store: they may differ without a difference for git.
const ALL_BITS: u32 = 0o7777;

/// A file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedFile {
    /// The path relative to the workspace.
    pub path: PathBuf,
    /// The content of the file; `None` where the commit does not have it.
    pub content: Option<Vec<u8>>,
    /// The commit has it as a program.
    pub is_executable: bool,
}

/// The earlier state of a file that it is reverted to.
#[derive(Clone, Copy, Debug)]
pub enum RevertBase<'a> {
    /// The state of the file in a snapshot.
    Snapshot(&'a SnapshotId),
    /// The state of the file in a commit.
    Commit(&'a CommittedFile),
}

/// The outcome of looking for the state without a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revert {
    /// Restoring this reverts the change.
    Target(SnapshotId),
    /// The file is as it was.
    Unchanged,
    /// The file does not contain the hunk any more.
    Moved,
    /// The file has no lines, or is not saved in both states.
    Unsuitable,
}

impl Workspace {
    /// Returns how files differ from what a commit has.
    ///
    /// # Errors
    ///
    /// The vault cannot be read or written.
    pub fn changes_from(&self, files: &[CommittedFile]) -> Result<Vec<Change>, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let now = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        let mut changes = Vec::new();
        for file in files {
            let path = file.path.as_os_str().as_bytes();
            let after = find_item(&self.vault.0.objects, now.tree, path)?;
            let before = self.committed_item(file, after.as_ref())?;
            if before != after {
                changes.extend(detect_change(path, before.as_ref(), after.as_ref()));
            }
        }
        Ok(changes)
    }

    /// Returns the state of the files in which the change since `base` of the file called `name` is reverted: all of
    /// it, or the hunk of its diff that reads like `hunk`. The current state is saved first.
    ///
    /// # Errors
    ///
    /// The snapshot is unknown, or the vault cannot be read or written.
    pub fn revert(
        &self,
        name: &str,
        base: RevertBase<'_>,
        hunk: Option<&str>,
    ) -> Result<Revert, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let _alone = lock::lock_exclusive(&self.restore_lock())?;
        self.finish_merge(&mut state, &session)?;
        self.vault.0.objects.refresh()?;
        let now = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        let tree = match self.tree_without(now.tree, name, base, hunk)? {
            Ok(tree) => tree,
            Err(why_not) => return Ok(why_not),
        };
        // As before a restore: what somebody else changed until now does not become the session's own.
        let target = match base {
            RevertBase::Snapshot(id) => Some(id.clone()),
            RevertBase::Commit(_) => self.newest_own()?.map(|newest| newest.id),
        };
        let made =
            target.map_or(SnapshotCause::Asked, |target| SnapshotCause::BeforeRestore { target });
        let kept =
            self.record_snapshot(&mut state, &format!("before reverting {name}"), made, now)?;
        let goal = ScannedState { tree, links: now.links };
        let made = SnapshotCause::Planned { before: kept.id };
        Ok(Revert::Target(
            self.record_snapshot(&mut state, &format!("reverting {name}"), made, goal)?.id,
        ))
    }

    /// Returns why [`revert`](Self::revert) would find nothing to restore; `None` if it would. Saves no state.
    ///
    /// # Errors
    ///
    /// As [`revert`](Self::revert).
    pub fn revert_hindrance(
        &self,
        name: &str,
        base: RevertBase<'_>,
        hunk: Option<&str>,
    ) -> Result<Option<Revert>, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        self.vault.0.objects.refresh()?;
        let now = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        Ok(self.tree_without(now.tree, name, base, hunk)?.err())
    }

    /// The files without a change, or why there is no such state.
    fn tree_without(
        &self,
        now: Hash,
        name: &str,
        base: RevertBase<'_>,
        hunk: Option<&str>,
    ) -> Result<Result<Hash, Revert>, Error> {
        let Some((path, before, after)) = self.find_both_states(name, base, now)? else {
            return Ok(Err(Revert::Unchanged));
        };
        if !is_plain(before.as_ref()) || !is_plain(after.as_ref()) {
            return Ok(Err(Revert::Unsuitable));
        }
        let set = match (hunk, &before) {
            (None, Some(item)) => Ok(EntryChange::Put(item.clone())),
            (None, None) => Ok(EntryChange::Remove),
            (Some(hunk), _) => self.entry_without_hunk(before.as_ref(), after.as_ref(), hunk)?,
        };
        match set {
            Ok(set) => self.tree_with(now, &path, set).map(Ok),
            Err(why_not) => Ok(Err(why_not)),
        }
    }

    /// The path that a diff calls `name` and its two states; `None` where they are equal.
    #[expect(clippy::type_complexity, reason = "a path and its two states")]
    fn find_both_states(
        &self,
        name: &str,
        base: RevertBase<'_>,
        now: Hash,
    ) -> Result<Option<(Vec<u8>, Option<Item>, Option<Item>)>, Error> {
        let objects = &self.vault.0.objects;
        match base {
            RevertBase::Snapshot(id) => {
                let mut found = Vec::new();
                compare_trees(
                    objects,
                    Some(self.get(id)?.tree),
                    Some(now),
                    &mut |path, old, new| {
                        if to_printable(path) == name {
                            found.push((path.to_vec(), old.cloned(), new.cloned()));
                        }
                    },
                )?;
                // Names that read alike are none.
                Ok(found.pop().filter(|_| found.is_empty()))
            }
            RevertBase::Commit(file) => {
                let path = file.path.as_os_str().as_bytes();
                let after = find_item(objects, now, path)?;
                let before = self.committed_item(file, after.as_ref())?;
                Ok((before != after).then(|| (path.to_vec(), before, after)))
            }
        }
    }

    /// A file of a commit as the vault has it. Of its mode a commit knows only whether it is a program.
    fn committed_item(
        &self,
        file: &CommittedFile,
        now: Option<&Item>,
    ) -> Result<Option<Item>, Error> {
        let Some(content) = &file.content else { return Ok(None) };
        let mode = match now {
            Some(Item::File { mode, .. }) if (mode & EXECUTABLE != 0) == file.is_executable => {
                mode & ALL_BITS
            }
            _ if file.is_executable => 0o755,
            _ => 0o644,
        };
        Ok(Some(Item::File { hash: self.store_object(content)?, mode, size: content.len() as u64 }))
    }

    /// The file without a hunk, or why there is no such state.
    fn entry_without_hunk(
        &self,
        before: Option<&Item>,
        after: Option<&Item>,
        hunk: &str,
    ) -> Result<Result<EntryChange, Revert>, Error> {
        let (Some(old), Some(new)) = (self.lines_of(before)?, self.lines_of(after)?) else {
            return Ok(Err(Revert::Unsuitable));
        };
        let Some(text) = reverse_hunk(&old, &new, CONTEXT_LINES, hunk) else {
            return Ok(Err(Revert::Moved));
        };
        let mode = match after.or(before) {
            Some(Item::File { mode, .. }) => *mode,
            _ => return Ok(Err(Revert::Unsuitable)),
        };
        if text.is_empty() && before.is_none() {
            return Ok(Ok(EntryChange::Remove));
        }
        let (hash, size) = (self.store_object(text.as_bytes())?, text.len() as u64);
        Ok(Ok(EntryChange::Put(Item::File { hash, mode, size })))
    }

    /// The text of a file that a diff shows line by line, byte for byte.
    fn lines_of(&self, item: Option<&Item>) -> Result<Option<String>, Error> {
        match item {
            None => Ok(Some(String::new())),
            Some(Item::File { hash, size, .. }) if *size <= MAX_DIFF_BYTES => {
                let bytes = self.vault.0.objects.read(hash)?;
                Ok(if is_binary(&bytes) { None } else { String::from_utf8(bytes).ok() })
            }
            Some(_) => Ok(None),
        }
    }

    fn store_object(&self, bytes: &[u8]) -> Result<Hash, Error> {
        self.in_batch(|batch| batch.store_bytes(bytes))
    }

    fn tree_with(&self, tree: Hash, path: &[u8], set: EntryChange) -> Result<Hash, Error> {
        let mut edit = Edit::default();
        edit.edit_at(path).set = Some(set);
        self.in_batch(|batch| edit.apply_to_tree(&self.vault.0.objects, batch, tree))
    }

    fn in_batch(&self, act: impl FnOnce(&Batch<'_>) -> Result<Hash, Error>) -> Result<Hash, Error> {
        let inner = &*self.vault.0;
        let batch = Batch::new(&inner.objects, inner.options.durable);
        let hash = act(&batch)?;
        let added_bytes = batch.finish()?;
        inner.size.lock().add(added_bytes);
        Ok(hash)
    }
}

/// Reports whether an item is absent, a file or a link: folders and what was not saved are not reverted alone.
fn is_plain(item: Option<&Item>) -> bool {
    matches!(item, None | Some(Item::File { .. } | Item::Link { .. }))
}
