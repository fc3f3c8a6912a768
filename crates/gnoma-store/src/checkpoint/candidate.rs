//! Updates a copy to what a merge with the current workspace would produce, so that it can be examined and tested
//! before anything lands.

use std::sync::atomic::AtomicBool;

use super::{
    error::Error, lock, merge::Sides, snapshot_cause::SnapshotCause, snapshot_id::SnapshotId,
    workspace::Workspace,
};

/// The result that a merge would have for the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// The merge would bring nothing that the workspace does not have.
    Nothing,
    /// The merge would give the copy as it is: nothing else has changed since it was made.
    Same,
    /// The merge would give the copy as it is now: it was brought up to this snapshot of the workspace, of which it
    /// counts as made from now on.
    BroughtUp(SnapshotId),
    /// Both sides cannot be brought together.
    Conflict,
}

impl Workspace {
    /// Makes `copy`, which was made of the snapshot `base`, what a merge would make of the workspace, where
    /// something changed there meanwhile. Changes nothing in the workspace.
    ///
    /// # Errors
    ///
    /// The copy is gone, somebody writes to it ([`Error::Busy`]), or the vault cannot be written.
    pub fn build_candidate(
        &self,
        base: &SnapshotId,
        copy: &Self,
        label: &str,
    ) -> Result<Candidate, Error> {
        let session = self.vault.begin_session()?;
        let mut copied = copy.state.lock();
        let cancel = AtomicBool::new(false);
        let theirs = copy.scan(&mut copied, &session, &cancel)?;
        let mut state = self.state.lock();
        let _alone = lock::lock_exclusive(&self.restore_lock())?;
        self.finish_merge(&mut state, &session)?;
        self.vault.0.objects.refresh()?;
        let base = self.get(base)?;
        self.is_there(copy, &base, theirs.tree)?;
        let now = self.scan(&mut state, &session, &cancel)?;
        if theirs.tree == base.tree {
            return Ok(Candidate::Nothing);
        }
        if now.tree == base.tree {
            return Ok(Candidate::Same);
        }
        let (ours, theirs) = (now.tree, theirs.tree);
        let sides = Sides { base: base.tree, ours: theirs, theirs: ours };
        let (planned, tree) = self.prepare_merge(sides, &|_, _| false)?;
        if !planned.conflicts.is_empty() {
            return Ok(Candidate::Conflict);
        }
        if tree == ours {
            return Ok(Candidate::Nothing);
        }
        let label = format!("before merging {label}");
        let kept = self.record_snapshot(&mut state, &label, SnapshotCause::Asked, now)?;
        if !copy.apply_tree(&copied, tree)? {
            return Err(Error::Busy);
        }
        Ok(Candidate::BroughtUp(kept.id))
    }
}
