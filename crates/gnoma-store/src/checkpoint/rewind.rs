//! Going back and forth along one session's snapshots, for `gnoma rewind` and `gnoma redo`.
//!
//! Where a session stands is told by its snapshots alone ([`History::replay`]): nothing else is
//! written that a crash could tear from them, and another process can go on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::AtomicBool,
};

use gnoma_core::{
    message::Role,
    store::{Entry, Record},
};

use super::{
    error::Error,
    hash::Hash,
    history::History,
    made::Made,
    record::{Snapshot, SnapshotId},
    restore::{Conflict, Restored},
    workspace::Workspace,
};

/// How far to go back. States that equal the one before on the way are not counted, so that a step
/// always changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back<'a> {
    /// So many kept states: each was taken before something that could write, or after.
    States(usize),
    /// So many turns.
    Turns {
        /// How many; at least one.
        count: usize,
        /// The snapshots turns began with, as [`turn_starts`] finds them.
        starts: &'a [SnapshotId],
    },
}

/// The snapshot each turn began with, oldest first, from a session's entries. Turns before which
/// nothing was kept are left out.
#[must_use]
pub fn turn_starts<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> Vec<SnapshotId> {
    let mut starts: Vec<SnapshotId> = Vec::new();
    let mut is_open = false;
    for entry in entries {
        match &entry.record {
            Record::Message(message) if message.role() == Role::User => is_open = true,
            Record::Checkpoint { id } if is_open => {
                is_open = false;
                if let Ok(id) = id.parse()
                    && starts.last() != Some(&id)
                {
                    starts.push(id);
                }
            }
            _ => {}
        }
    }
    starts
}

impl Workspace {
    /// Makes the files what they were before, as the session's snapshots have it. What is there now
    /// is kept first: [`redo`](Self::redo) brings it back.
    ///
    /// # Errors
    ///
    /// [`Error::NothingBefore`] with the number of states there are; else as
    /// [`restore`](Self::restore).
    pub fn rewind(&self, back: Back<'_>, conflict: Conflict) -> Result<Restored, Error> {
        let own = self.own()?;
        let history = history(&own);
        let originals = originals(&own);
        let (count, starts) = match back {
            Back::States(count) => (count, None),
            Back::Turns { count, starts } => (count, Some(starts.iter().collect::<BTreeSet<_>>())),
        };
        let is_start = |id: &&SnapshotId| {
            let original = originals.get(id).unwrap_or(id);
            starts.as_ref().is_none_or(|starts| starts.contains(original))
        };
        let candidates = history.past().iter().rev().filter(is_start);
        let target = self.nth_state(candidates, count)?.map_err(Error::NothingBefore)?;
        self.restore(&target, conflict)
    }

    /// Takes back the last `rewinds` rewinds that were not followed by new work.
    ///
    /// # Errors
    ///
    /// [`Error::NothingAfter`] with the number of rewinds there are; else as
    /// [`restore`](Self::restore).
    pub fn redo(&self, rewinds: usize, conflict: Conflict) -> Result<Restored, Error> {
        let history = self.history()?;
        let candidates = history.rewound().iter().rev();
        let target = self.nth_state(candidates, rewinds)?.map_err(Error::NothingAfter)?;
        self.restore(&target, conflict)
    }

    /// What lies behind and ahead of the files in the session. Snapshots that were pruned are not
    /// in it.
    ///
    /// # Errors
    ///
    /// The vault cannot be read.
    pub fn history(&self) -> Result<History, Error> {
        Ok(history(&self.own()?))
    }

    /// The session that took a snapshot last.
    ///
    /// # Errors
    ///
    /// The vault cannot be read.
    pub fn latest_session(&self) -> Result<Option<String>, Error> {
        Ok(self.readable()?.rev().find_map(|snapshot| snapshot.session))
    }

    /// The session's snapshots, oldest first.
    fn own(&self) -> Result<Vec<Snapshot>, Error> {
        Ok(self.readable()?.filter(|snapshot| self.owns(snapshot)).collect())
    }

    /// All snapshots that can be read, oldest first.
    fn readable(&self) -> Result<impl DoubleEndedIterator<Item = Snapshot>, Error> {
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
        let mut state = self.state();
        let session = self.vault.session()?;
        let now = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        Ok((now.tree, now.links))
    }
}

fn history(own: &[Snapshot]) -> History {
    let mut history = History::replay(own.iter().map(|snapshot| (&snapshot.id, &snapshot.made)));
    let exist: BTreeSet<_> = own.iter().map(|snapshot| &snapshot.id).collect();
    history.retain(|id| exist.contains(id));
    history
}

/// Snapshots that a restore took of what the restore just before had brought back, each with the
/// snapshot that was brought back: they stand for it in the history after a redo.
fn originals(own: &[Snapshot]) -> BTreeMap<&SnapshotId, &SnapshotId> {
    let mut originals = BTreeMap::new();
    for (last, snapshot) in own.iter().zip(own.iter().skip(1)) {
        if let (Made::Restored { target, .. }, Made::BeforeRestore { .. }) =
            (&last.made, &snapshot.made)
            && (last.tree, last.links) == (snapshot.tree, snapshot.links)
        {
            let original = originals.get(target).copied().unwrap_or(target);
            originals.insert(&snapshot.id, original);
        }
    }
    originals
}
