//! Conflicts of a restore: changes that it would overwrite and that are not the session's own.
//!
//! A session saves the files before everything that may write and again after each turn. Whatever then differs
//! between the end of a turn and the beginning of the next, or since its newest snapshot, or since a restore, was
//! changed by someone else.

use std::{
    collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf,
    sync::atomic::AtomicBool,
};

use super::{
    compare::compare_trees, error::Error, hash::Hash, record::Snapshot,
    snapshot_cause::SnapshotCause, snapshot_id::SnapshotId, tree::Item, workspace::Workspace,
};

impl Workspace {
    /// Returns what [`restore_turns`](Self::restore_turns) would overwrite that is not the session's own. This
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// The snapshot is unknown or damaged.
    pub fn external_changes(
        &self,
        id: &SnapshotId,
        starts: &[SnapshotId],
    ) -> Result<Vec<PathBuf>, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        self.vault.0.objects.refresh()?;
        let target = self.get(id)?;
        let now = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        self.overwritten_paths(&target, starts, now.tree)
    }

    /// Returns what was changed outside the session and would be changed again on the way from `now` to `target`.
    pub(super) fn overwritten_paths(
        &self,
        target: &Snapshot,
        starts: &[SnapshotId],
        now: Hash,
    ) -> Result<Vec<PathBuf>, Error> {
        let mut planned = BTreeSet::new();
        compare_trees(&self.vault.0.objects, Some(now), Some(target.tree), &mut |path, _, _| {
            planned.insert(path.to_vec());
        })?;
        let mut theirs = BTreeSet::new();
        for (before, after) in self.tree_gaps(target, starts, now)? {
            // Where a tree cannot be read nobody knows what is theirs; all of now is kept anyway.
            drop(self.collect_differences(before, after, &planned, &mut theirs));
        }
        Ok(theirs.iter().map(|path| OsStr::from_bytes(path).into()).collect())
    }

    /// Trees between which somebody else was at work since the target was taken.
    fn tree_gaps(
        &self,
        target: &Snapshot,
        starts: &[SnapshotId],
        now: Hash,
    ) -> Result<Vec<(Hash, Hash)>, Error> {
        let own = self.own_states()?;
        let later = own.iter().zip(own.iter().skip(1)).filter(|(_, after)| after.id > target.id);
        let mut gaps: Vec<_> = later
            .filter(|(before, after)| {
                matches!(before.made, SnapshotCause::Restored { .. })
                    || matches!(after.made, SnapshotCause::BeforeRestore { .. })
                    || starts.contains(&after.id)
            })
            .map(|(before, after)| (before.tree, after.tree))
            .collect();
        gaps.extend(self.newest_own()?.map(|last| (last.tree, now)));
        Ok(gaps)
    }

    /// Adds what differs and is `planned`.
    fn collect_differences(
        &self,
        before: Hash,
        after: Hash,
        planned: &BTreeSet<Vec<u8>>,
        theirs: &mut BTreeSet<Vec<u8>>,
    ) -> Result<(), Error> {
        let mut unknown: Vec<u8> = Vec::new();
        compare_trees(&self.vault.0.objects, Some(before), Some(after), &mut |path, old, _| {
            if old == Some(&Item::Unsaved) {
                // It could not be read then: nobody can say that it changed.
                unknown = [path, b"/"].concat();
            } else if planned.contains(path) && (unknown.is_empty() || !path.starts_with(&unknown))
            {
                theirs.insert(path.to_vec());
            }
        })
    }
}
