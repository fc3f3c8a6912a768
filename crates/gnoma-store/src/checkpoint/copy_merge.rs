//! Merges the changes of a copy into the workspace, completely or not at all.
//!
//! The state that the files will have is stored first, as a snapshot that says so. If the process is killed on the
//! way, that snapshot remains, and whoever opens the workspace next finishes the merge. Files are replaced as in a
//! restore, each as a whole and only while it is still what was merged; if someone writes to one meanwhile,
//! everything is undone and merged again with the new content.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::{
    apply::{TreeRestore, remove_unfinished},
    compare::{compare_trees, find_item, load_tree},
    error::{Error, PathErrorExt},
    hash::Hash,
    ignored::is_ignored,
    lock,
    merge::{MergeConflict, MergePlan, Sides, plan_merge},
    places::replace_file,
    record::Snapshot,
    rules::OuterRules,
    snapshot_cause::SnapshotCause,
    snapshot_id::SnapshotId,
    tree::Item,
    unrestored_paths::UnrestoredReason,
    vault::Session,
    workspace::{ScannedState, Workspace, WorkspaceState},
    write::Batch,
};

/// The number of tries for a merge whose files change while it runs.
const MAX_TRIES: u32 = 5;

/// The newest snapshots, among which the plan of a merge is that was killed.
const MAX_LOOKED_AT: usize = 200;

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The copy has no changes.
    Nothing {
        /// But for these, which version control ignores.
        ignored: Vec<PathBuf>,
    },
    /// They are in the workspace.
    Landed {
        /// The files as they are now.
        after: SnapshotId,
        /// The paths that changed.
        paths: Vec<PathBuf>,
        /// The paths that the copy changed and version control ignores: they were left out.
        ignored: Vec<PathBuf>,
    },
    /// The merge changed nothing: the workspace is not as the copy was made of it, or brought up to it, any more.
    Moved {
        /// All changes of the copy, as a diff.
        diff: String,
    },
    /// The merge changed nothing: both sides cannot be brought together.
    Conflict {
        /// The conflicts, each with its path.
        conflicts: Vec<MergeConflict>,
        /// All changes of the copy, as a diff.
        diff: String,
    },
}

/// The result of looking for a way to rewind one merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeRevert {
    /// Restoring this takes it back.
    Target(SnapshotId),
    /// These were changed again since.
    Changed(Vec<PathBuf>),
}

impl Workspace {
    /// Merges what changed in `copy` since it was made from the snapshot `base`. `label` names the merge.
    ///
    /// # Errors
    ///
    /// The copy is gone, the vault cannot be written, or other programs keep writing to the same files
    /// ([`Error::Busy`]). Nothing was changed then.
    pub fn merge(&self, base: &SnapshotId, copy: &Self, label: &str) -> Result<Merge, Error> {
        self.merge_as(base, copy, label, false)
    }

    /// As [`merge`](Self::merge), but only while the workspace is as in `base`: the files become exactly what the
    /// copy has, so findings about the copy also apply here.
    ///
    /// # Errors
    ///
    /// As [`merge`](Self::merge).
    pub fn merge_checked(
        &self,
        base: &SnapshotId,
        copy: &Self,
        label: &str,
    ) -> Result<Merge, Error> {
        self.merge_as(base, copy, label, true)
    }

    fn merge_as(
        &self,
        base: &SnapshotId,
        copy: &Self,
        label: &str,
        is_checked: bool,
    ) -> Result<Merge, Error> {
        let theirs = copy.take_snapshot(label)?;
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let _alone = lock::lock_exclusive(&self.restore_lock())?;
        self.finish_merge(&mut state, &session)?;
        self.vault.0.objects.refresh()?;
        let base = self.get(base)?;
        self.is_there(copy, &base, theirs.tree)?;
        let root = copy.open_root()?;
        let excludes = self.vault.0.options.excludes.as_deref();
        let outer = OuterRules::read(&copy.root, excludes);
        let is_left_out = |path: &[u8], is_folder| is_ignored(&root, &outer, path, is_folder);
        for _ in 0..MAX_TRIES {
            let now = self.scan(&mut state, &session, &AtomicBool::new(false))?;
            if is_checked && now.tree != base.tree {
                return Ok(Merge::Moved { diff: self.diff_of(copy, &base, &theirs)? });
            }
            let sides = Sides { base: base.tree, ours: now.tree, theirs: theirs.tree };
            let (planned, tree) = self.prepare_merge(sides, &is_left_out)?;
            let MergePlan { paths, conflicts, ignored, .. } = planned;
            if !conflicts.is_empty() {
                let diff = self.diff_of(copy, &base, &theirs)?;
                return Ok(Merge::Conflict { conflicts, diff });
            }
            if tree == now.tree {
                return Ok(Merge::Nothing { ignored });
            }
            if let Some(after) = self.apply_merge(&mut state, &session, (now, tree), label)? {
                return Ok(Merge::Landed { after, paths, ignored });
            }
        }
        Err(Error::Busy)
    }

    /// Returns the changes in `copy` since it was made of the snapshot `base`, as a diff.
    ///
    /// # Errors
    ///
    /// The copy is gone, or the vault cannot be written.
    pub fn changed_in(&self, base: &SnapshotId, copy: &Self, label: &str) -> Result<String, Error> {
        let theirs = copy.take_snapshot(label)?;
        let base = self.get(base)?;
        self.is_there(copy, &base, theirs.tree)?;
        self.diff_of(copy, &base, &theirs)
    }

    /// Finishes a merge that was killed; gives what it was called. Whoever is merging now is left alone.
    ///
    /// # Errors
    ///
    /// The vault cannot be read or written.
    pub fn recover_merge(&self) -> Result<Option<String>, Error> {
        if !self.merge_mark().exists() {
            return Ok(None);
        }
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let _alone = match lock::try_alone(&self.restore_lock()) {
            Err(Error::Busy) => return Ok(None),
            held => held?,
        };
        self.finish_merge(&mut state, &session)
    }

    /// The state that the files would have without the merge that led to `merged`.
    ///
    /// # Errors
    ///
    /// It was no merge, or the vault cannot be written.
    pub fn state_without_merge(&self, merged: &SnapshotId) -> Result<MergeRevert, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let _alone = lock::lock_exclusive(&self.restore_lock())?;
        self.finish_merge(&mut state, &session)?;
        self.vault.0.objects.refresh()?;
        let after = self.get(merged)?;
        let SnapshotCause::Merged { before } = &after.made else {
            return Err(Error::Unknown(merged.to_string()));
        };
        let before = self.get(before)?;
        let now = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        let changed = self.changed_since(&before, &after, now.tree)?;
        let sides = Sides { base: after.tree, ours: now.tree, theirs: before.tree };
        let (planned, tree) = self.prepare_merge(sides, &|_, _| false)?;
        let conflicts = planned.conflicts.into_iter().map(|conflict| conflict.path);
        let mut in_the_way: BTreeSet<PathBuf> = gnoma_core::sort::to_set(conflicts);
        in_the_way.extend(changed);
        if !in_the_way.is_empty() {
            return Ok(MergeRevert::Changed(in_the_way.into_iter().collect()));
        }
        let made = SnapshotCause::Planned { before: before.id };
        let target = ScannedState { tree, links: now.links };
        Ok(MergeRevert::Target(self.record_snapshot(&mut state, &after.label, made, target)?.id))
    }

    /// The newest merge of the session with that label.
    ///
    /// # Errors
    ///
    /// The vault cannot be read.
    pub fn find_merge(&self, label: &str) -> Result<Option<SnapshotId>, Error> {
        let own = self.own_states()?.into_iter().rev();
        let mut merges =
            own.filter(|snapshot| matches!(snapshot.made, SnapshotCause::Merged { .. }));
        Ok(merges.find(|snapshot| snapshot.label == label).map(|snapshot| snapshot.id))
    }

    /// Held by the one who merges or restores.
    pub(super) fn restore_lock(&self) -> PathBuf {
        self.folder.join("restore.lock")
    }

    /// Finishes a merge that was killed, and says what it was called. What somebody else changed since
    /// stays as it is, and is named.
    pub(super) fn finish_merge(
        &self,
        state: &mut WorkspaceState,
        session: &Session,
    ) -> Result<Option<String>, Error> {
        let Ok(mark) = std::fs::read_to_string(self.merge_mark()) else { return Ok(None) };
        let finished = self.finish_marked_merge(state, session, &mark);
        // What is not there any more will not be there the next time either: it is told once.
        if matches!(finished, Ok(_) | Err(Error::Unknown(_) | Error::Damaged(_))) {
            self.unmark_merge();
        }
        finished
    }

    fn finish_marked_merge(
        &self,
        state: &mut WorkspaceState,
        session: &Session,
        mark: &str,
    ) -> Result<Option<String>, Error> {
        self.vault.0.objects.refresh()?;
        let ids = self.snapshots()?;
        let newest = ids.iter().rev().take(MAX_LOOKED_AT).filter_map(|id| self.get(id).ok());
        let mut of_mark = newest.filter(|snapshot| match &snapshot.made {
            SnapshotCause::Merged { before } | SnapshotCause::Planned { before } => {
                before.as_str() == mark
            }
            SnapshotCause::Asked
            | SnapshotCause::BeforeRestore { .. }
            | SnapshotCause::Restored { .. } => false,
        });
        // Where the newest of them says that it is done, nothing is left to do.
        let Some(goal) = of_mark.next() else { return Ok(None) };
        let SnapshotCause::Planned { before } = &goal.made else { return Ok(None) };
        let before = self.get(before)?;
        let now = self.scan(state, session, &AtomicBool::new(false))?;
        remove_unfinished(&self.open_root()?, &state.known);
        let sides = Sides { base: before.tree, ours: now.tree, theirs: goal.tree };
        let (planned, tree) = self.prepare_merge(sides, &|_, _| false)?;
        self.apply_tree(state, tree)?;
        self.record_merge(state, session, &goal, &before.id)?;
        let mut left = Vec::new();
        for MergeConflict { path, .. } in &planned.conflicts {
            use std::os::unix::ffi::OsStrExt;
            let at = |tree| find_item(&self.vault.0.objects, tree, path.as_os_str().as_bytes());
            // Half of a rename is not at odds with the whole.
            if at(now.tree)? != at(goal.tree)? {
                left.push(path.display().to_string());
            }
        }
        Ok(Some(match left.is_empty() {
            true => goal.label,
            false => {
                format!("{} (except what has changed since: {})", goal.label, left.join(", "))
            }
        }))
    }

    /// Makes the files what was merged. `None`: somebody wrote to one of them, and all is as it was.
    fn apply_merge(
        &self,
        state: &mut WorkspaceState,
        session: &Session,
        (now, tree): (ScannedState, Hash),
        label: &str,
    ) -> Result<Option<SnapshotId>, Error> {
        let before = self.record_snapshot(
            state,
            &format!("before merging {label}"),
            SnapshotCause::Asked,
            now,
        )?;
        let goal = ScannedState { tree, links: now.links };
        let made = SnapshotCause::Planned { before: before.id.clone() };
        let sync = self.vault.0.options.durable;
        let mark = before.id.as_str().as_bytes();
        replace_file(&self.vault.0.objects.places, &self.merge_mark(), mark, sync)?;
        let goal = self.record_snapshot(state, label, made, goal)?;
        if self.apply_tree(state, tree)? {
            let after = self.record_merge(state, session, &goal, &before.id)?;
            self.unmark_merge();
            return Ok(Some(after));
        }
        let now = self.scan(state, session, &AtomicBool::new(false))?;
        let back = Sides { base: tree, ours: now.tree, theirs: before.tree };
        let (_, tree) = self.prepare_merge(back, &|_, _| false)?;
        self.apply_tree(state, tree)?;
        self.forget_plan(&goal.id);
        self.unmark_merge();
        Ok(None)
    }

    /// Writes down that the files have become what was planned.
    fn record_merge(
        &self,
        state: &mut WorkspaceState,
        session: &Session,
        goal: &Snapshot,
        before: &SnapshotId,
    ) -> Result<SnapshotId, Error> {
        let now = self.scan(state, session, &AtomicBool::new(false))?;
        let made = SnapshotCause::Merged { before: before.clone() };
        let after = self.record_snapshot(state, &goal.label, made, now)?.id;
        self.forget_plan(&goal.id);
        Ok(after)
    }

    /// Returns what a merge does, and the tree that it leads to where nothing is at odds.
    pub(super) fn prepare_merge(
        &self,
        sides: Sides,
        is_left_out: &dyn Fn(&[u8], bool) -> bool,
    ) -> Result<(MergePlan, Hash), Error> {
        let inner = &*self.vault.0;
        let batch = Batch::new(&inner.objects, inner.options.durable);
        let planned = plan_merge(&inner.objects, &batch, sides, is_left_out)?;
        let tree = planned.edits.apply_to_tree(&inner.objects, &batch, sides.ours)?;
        let added_bytes = batch.finish()?;
        inner.size.lock().add(added_bytes);
        Ok((planned, tree))
    }

    /// Makes the files, which are as they are known, what `tree` says; gives whether all of them are.
    pub(super) fn apply_tree(&self, state: &WorkspaceState, tree: Hash) -> Result<bool, Error> {
        let (forced, root) = (BTreeSet::new(), self.open_root()?);
        let mut apply = TreeRestore::new(&self.vault.0.objects, &forced);
        apply.run(&root, &state.known, tree)?;
        let left = apply.finish(&root).left;
        Ok(left.iter().all(|left| left.why == UnrestoredReason::NotKept))
    }

    /// Fails where nothing is left in the copy: somebody has cleaned up there, and it says nothing.
    pub(super) fn is_there(&self, copy: &Self, base: &Snapshot, theirs: Hash) -> Result<(), Error> {
        let is_empty =
            |tree: Hash| Ok::<_, Error>(load_tree(&self.vault.0.objects, &tree)?.0.is_empty());
        if is_empty(theirs)? && !is_empty(base.tree)? {
            return Err(io::Error::from(io::ErrorKind::NotFound)).io_context("read", &copy.root);
        }
        Ok(())
    }

    /// Returns the paths of a merge that were changed again since.
    fn changed_since(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        now: Hash,
    ) -> Result<Vec<PathBuf>, Error> {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
        let objects = &self.vault.0.objects;
        let mut merged = Vec::new();
        compare_trees(objects, Some(before.tree), Some(after.tree), &mut |path, _, item| {
            if !matches!(item, Some(Item::Folder { .. })) {
                merged.push((path.to_vec(), item.cloned()));
            }
        })?;
        let mut changed = Vec::new();
        for (path, item) in merged {
            let found = find_item(objects, now, &path)?;
            let is_kept_folder = item.is_none() && matches!(found, Some(Item::Folder { .. }));
            if found != item && !is_kept_folder {
                changed.push(Path::new(OsStr::from_bytes(&path)).to_owned());
            }
        }
        Ok(changed)
    }

    fn diff_of(&self, copy: &Self, base: &Snapshot, theirs: &Snapshot) -> Result<String, Error> {
        let mut text = String::new();
        for change in self.changes_between(base.tree, theirs.tree)? {
            text.push_str(&copy.render_diff(&change)?);
        }
        Ok(text)
    }

    fn merge_mark(&self) -> PathBuf {
        self.folder.join("merging")
    }

    fn unmark_merge(&self) {
        // A mark that stays has the next one look for a plan that is not there.
        drop(std::fs::remove_file(self.merge_mark()));
    }

    fn forget_plan(&self, id: &SnapshotId) {
        // One that stays is no state, and a later merge's mark finds its own plan first.
        drop(std::fs::remove_file(self.records_folder().join(id.as_str())));
    }
}
