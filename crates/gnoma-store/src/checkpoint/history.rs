//! Undo and redo over snapshots, as a text editor has them. Pure: plain data for the session.

use super::{snapshot_cause::SnapshotCause, snapshot_id::SnapshotId};

/// The snapshots that are behind and ahead of the files as they are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// Oldest first; each was taken before a step.
    past: Vec<SnapshotId>,
    /// The snapshots that were rewound; the last is the next to redo.
    future: Vec<SnapshotId>,
    /// Of these, the states that rewinds set out from.
    rewound: Vec<SnapshotId>,
}

/// A way to go: which snapshot to restore, and how the history looks once that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistoryStep {
    /// Back (`true`) or forth.
    pub(super) is_back: bool,
    /// The number of snapshots to go; at least one.
    pub(super) count: usize,
}

impl History {
    /// The history that a session's snapshots, oldest first, tell of. A restore that was killed
    /// counts as a step: what was there before it can be gone back to.
    pub(super) fn replay<'a>(
        made: impl IntoIterator<Item = (&'a SnapshotId, &'a SnapshotCause)>,
    ) -> Self {
        let mut history = Self::default();
        let mut begun = None;
        for (id, made) in made {
            match made {
                SnapshotCause::Restored { target, before } if begun.as_ref() == Some(before) => {
                    begun = None;
                    match history.step_to(target) {
                        Some(step) => history = history.after_step(step, before.clone()),
                        None => history.record_snapshot(before.clone()),
                    }
                }
                // What it kept before was pruned: nothing to come back to.
                SnapshotCause::Restored { .. } | SnapshotCause::Planned { .. } => {}
                SnapshotCause::Asked
                | SnapshotCause::Merged { .. }
                | SnapshotCause::BeforeRestore { .. } => {
                    begun.take().into_iter().for_each(|killed| history.record_snapshot(killed));
                    if matches!(made, SnapshotCause::BeforeRestore { .. }) {
                        begun = Some(id.clone());
                    } else {
                        history.record_snapshot(id.clone());
                    }
                }
            }
        }
        begun.into_iter().for_each(|killed| history.record_snapshot(killed));
        history
    }

    /// A snapshot was taken before a step: it can be gone back to, and nothing can be redone.
    pub(super) fn record_snapshot(&mut self, id: SnapshotId) {
        self.future.clear();
        self.rewound.clear();
        self.past.push(id);
    }

    /// Snapshots that can be gone back to, oldest first.
    pub(super) fn past_snapshots(&self) -> &[SnapshotId] {
        &self.past
    }

    /// The states that rewinds set out from and that can still be redone, the next one last.
    pub(super) fn redoable_snapshots(&self) -> &[SnapshotId] {
        &self.rewound
    }

    /// Returns the step that leads to `id`; `None` when it is on neither side.
    pub(super) fn step_to(&self, id: &SnapshotId) -> Option<HistoryStep> {
        let far = |ids: &[SnapshotId]| ids.iter().rev().position(|known| known == id);
        let back = far(&self.past).map(|far| HistoryStep { is_back: true, count: far + 1 });
        back.or_else(|| far(&self.future).map(|far| HistoryStep { is_back: false, count: far + 1 }))
    }

    /// The snapshot a step leads to; `None` when there are not so many.
    pub(super) fn target(&self, step: HistoryStep) -> Option<&SnapshotId> {
        let ids = if step.is_back { &self.past } else { &self.future };
        ids.get(ids.len().checked_sub(step.count.max(1))?)
    }

    /// The history after a step was restored. `now` is the snapshot of the files before it
    /// ([`Restored::before`](super::Restored::before)), which the opposite step brings back.
    /// Without a target nothing changes.
    pub(super) fn after_step(&self, step: HistoryStep, now: SnapshotId) -> Self {
        let mut next = self.clone();
        if self.target(step).is_none() {
            return next;
        }
        let (from, to) = if step.is_back {
            (&mut next.past, &mut next.future)
        } else {
            (&mut next.future, &mut next.past)
        };
        to.push(now.clone());
        let passed = from.split_off(from.len().saturating_sub(step.count.max(1)));
        to.extend(passed.into_iter().skip(1).rev());
        if step.is_back {
            next.rewound.push(now);
        }
        let future = &next.future;
        next.rewound.retain(|id| future.contains(id));
        next
    }

    /// Forgets snapshots that were pruned.
    pub(super) fn retain(&mut self, exists: impl Fn(&SnapshotId) -> bool) {
        self.past.retain(&exists);
        self.future.retain(&exists);
        self.rewound.retain(&exists);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: u64) -> SnapshotId {
        format!("{number:016x}").parse().unwrap()
    }

    /// Files are a number; a history over them must behave like an editor's.
    struct Model {
        history: History,
        /// As the vault keeps it; ids of restores are above those of states.
        records: Vec<(SnapshotId, SnapshotCause)>,
        now: u64,
        /// What an editor would hold: every state, and where it is.
        states: Vec<u64>,
        at: usize,
    }

    impl Model {
        fn step(&mut self, is_back: bool, count: usize) {
            let step = HistoryStep { is_back, count };
            let room = if is_back { self.at } else { self.states.len() - 1 - self.at };
            let target = self.history.target(step).cloned();
            assert_eq!(target.is_some(), count <= room);
            let Some(target) = target else { return };
            let before = id(self.now);
            let kept = SnapshotCause::BeforeRestore { target: target.clone() };
            let made = SnapshotCause::Restored { target: target.clone(), before: before.clone() };
            self.records.extend([(before.clone(), kept), (id(u64::MAX), made)]);
            self.history = self.history.after_step(step, before);
            self.at = if is_back { self.at - count } else { self.at + count };
            assert_eq!(target, id(self.states[self.at]));
            self.now = self.states[self.at];
        }
    }

    proptest! {
        #[test]
        fn checkpoint_undo_and_redo_steps_match_an_editor_model(moves in proptest::collection::vec(0usize..9, 0..60)) {
            let mut model = Model {
                history: History::default(),
                records: Vec::new(),
                now: 0,
                states: vec![0],
                at: 0,
            };
            for (index, kind) in moves.into_iter().enumerate() {
                match kind {
                    0..=3 => {
                        model.history.record_snapshot(id(model.now));
                        model.records.push((id(model.now), SnapshotCause::Asked));
                        model.now = index as u64 + 1;
                        model.states.truncate(model.at + 1);
                        model.states.push(model.now);
                        model.at += 1;
                    }
                    4..=6 => model.step(true, kind - 3),
                    _ => model.step(false, kind - 6),
                }
                let replayed = History::replay(model.records.iter().map(|(id, made)| (id, made)));
                prop_assert_eq!(&replayed, &model.history);
                prop_assert_eq!(model.history.past_snapshots().len(), model.at);
                for (place, state) in model.states.iter().enumerate() {
                    let step = model.history.step_to(&id(*state));
                    prop_assert_eq!(step.is_none(), place == model.at);
                    if let Some(step) = step {
                        prop_assert_eq!(model.history.target(step), Some(&id(*state)));
                    }
                }
            }
        }
    }
    #[test]
    fn interrupted_restore_can_be_rewound() {
        let kept = SnapshotCause::BeforeRestore { target: id(1) };
        let records = [(id(1), SnapshotCause::Asked), (id(2), kept)];
        let history = History::replay(records.iter().map(|(id, made)| (id, made)));
        assert_eq!(history.past_snapshots(), [id(1), id(2)]);
    }
}
