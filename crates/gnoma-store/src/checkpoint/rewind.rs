//! Moves back and forth along one session's snapshots, for `gnoma rewind` and `gnoma redo`.
//!
//! The position of a session follows from its snapshots alone ([`History::replay`]): nothing else is written that a
//! crash could separate from them, and another process can continue.

use std::{collections::BTreeSet, sync::atomic::AtomicBool};

use super::{
    error::Error,
    hash::Hash,
    history::History,
    record::Snapshot,
    restore::{Conflict, RestoreReport},
    snapshot_id::SnapshotId,
    workspace::Workspace,
};

impl Workspace {
    /// Restores the files as they were `states` saved states before, according to the session's snapshots: each was
    /// taken before or after something that could write. States that equal the one before them do not count, so
    /// that a step always changes something. The current state is saved first: [`redo`](Self::redo) restores it.
    ///
    /// # Errors
    ///
    /// [`Error::NothingBefore`] with the number of states that exist; else as [`restore`](Self::restore).
    pub fn rewind(&self, states: usize, conflict: Conflict) -> Result<RestoreReport, Error> {
        let history = self.load_history()?;
        let candidates = history.past_snapshots().iter().rev();
        let target = self.nth_state(candidates, states)?.map_err(Error::NothingBefore)?;
        self.restore(&target, conflict)
    }

    /// Undoes the last `rewinds` rewinds that were not followed by new work.
    ///
    /// # Errors
    ///
    /// [`Error::NothingAfter`] with the number of rewinds that exist; else as [`restore`](Self::restore).
    pub fn redo(&self, rewinds: usize, conflict: Conflict) -> Result<RestoreReport, Error> {
        let history = self.load_history()?;
        let candidates = history.redoable_snapshots().iter().rev();
        let target = self.nth_state(candidates, rewinds)?.map_err(Error::NothingAfter)?;
        self.restore(&target, conflict)
    }

    /// The session's snapshots before the current files, oldest first. Pruned ones are not included.
    ///
    /// # Errors
    ///
    /// The vault cannot be read.
    pub fn past_snapshots(&self) -> Result<Vec<SnapshotId>, Error> {
        Ok(self.load_history()?.past_snapshots().to_vec())
    }

    fn load_history(&self) -> Result<History, Error> {
        Ok(replay_history(&self.own_states()?))
    }

    /// The session's snapshots that are still kept, oldest first.
    ///
    /// # Errors
    ///
    /// The vault cannot be read.
    pub fn own_snapshots(&self) -> Result<Vec<SnapshotId>, Error> {
        Ok(self.own_states()?.into_iter().map(|snapshot| snapshot.id).collect())
    }

    /// Reports whether the files are as they were at `id`, as far as they were kept.
    ///
    /// # Errors
    ///
    /// The snapshot is unknown, or the vault cannot be written.
    pub fn is_at(&self, id: &SnapshotId) -> Result<bool, Error> {
        let there = self.get(id)?;
        Ok(self.state_now()? == (there.tree, there.links))
    }

    /// The session's snapshots, oldest first.
    pub(super) fn own_states(&self) -> Result<Vec<Snapshot>, Error> {
        Ok(self
            .readable_snapshots()?
            .filter(|snapshot| self.owns_snapshot(snapshot) && snapshot.made.is_state())
            .collect())
    }

    /// All snapshots that can be read, oldest first.
    fn readable_snapshots(&self) -> Result<impl DoubleEndedIterator<Item = Snapshot>, Error> {
        Ok(self.snapshots()?.into_iter().filter_map(|id| self.get(&id).ok()))
    }

    /// Goes from the files as they are along `ids` until `count` of them brought another state.
    /// Inside, how many did when they are fewer.
    fn nth_state<'i>(
        &self,
        ids: impl Iterator<Item = &'i SnapshotId>,
        count: usize,
    ) -> Result<Result<SnapshotId, usize>, Error> {
        let mut here = self.state_now()?;
        let mut met = 0;
        for snapshot in ids.filter_map(|id| self.get(id).ok()) {
            let state = (snapshot.tree, snapshot.links);
            if state == here {
                continue;
            }
            here = state;
            met += 1;
            if met >= count {
                return Ok(Ok(snapshot.id));
            }
        }
        Ok(Err(met))
    }

    fn state_now(&self) -> Result<(Hash, Option<Hash>), Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let now = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        Ok((now.tree, now.links))
    }
}

fn replay_history(own: &[Snapshot]) -> History {
    let mut history = History::replay(own.iter().map(|snapshot| (&snapshot.id, &snapshot.made)));
    let exist: BTreeSet<_> = gnoma_core::sort::to_set(own.iter().map(|snapshot| &snapshot.id));
    history.retain(|id| exist.contains(id));
    history
}
