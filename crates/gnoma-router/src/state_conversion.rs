//! Between what is believed and the form it is saved in.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    beliefs::{Beliefs, MOST_ARMS},
    state::{RouterState, STATE_VERSION, SavedArm, SavedKind, SavedPair, StateError},
    tuning::Tuning,
};

impl Beliefs {
    pub(crate) fn from_state(tuning: Tuning, state: &RouterState) -> Result<Self, StateError> {
        if state.version != STATE_VERSION {
            return Err(StateError::Version { found: state.version });
        }
        let mut beliefs = Self::new(tuning);
        if state.verifier.is_sound() {
            beliefs.verifier = state.verifier;
        }
        for kind in state.kinds.keys() {
            beliefs.add_kind(kind);
        }
        beliefs.recompute_starts();
        for (kind, saved) in &state.kinds {
            let Some(kind) = beliefs.own_index_of_kind(kind) else { continue };
            let places = [
                (beliefs.ability.kinds.get_mut(kind), saved.ability),
                (beliefs.cost.kinds.get_mut(kind), saved.cost),
            ];
            for (place, belief) in places {
                if let Some(place) = place.filter(|_| belief.is_sound()) {
                    *place = belief;
                }
            }
        }
        beliefs.waiting = state.arms.iter().take(MOST_ARMS).cloned().collect();
        Ok(beliefs)
    }

    pub(crate) fn to_state(&self, prices: BTreeMap<Arc<str>, f64>) -> RouterState {
        let kinds = self.kinds.iter().enumerate().filter_map(|(index, kind)| {
            let saved = SavedKind {
                ability: *self.ability.kinds.get(index)?,
                cost: *self.cost.kinds.get(index)?,
            };
            Some((kind.clone(), saved))
        });
        let arms = (0..self.arms.len()).filter_map(|arm| self.saved_arm(arm));
        RouterState {
            version: STATE_VERSION,
            verifier: self.verifier,
            kinds: kinds.collect(),
            arms: arms.chain(self.waiting.iter().cloned()).collect(),
            prices,
        }
    }

    fn saved_arm(&self, index: usize) -> Option<SavedArm> {
        let known = self.arms.get(index)?;
        let kinds = self.kinds.iter().enumerate().filter_map(|(kind, name)| {
            let tasks = *known.tasks.get(kind)?;
            let saved = SavedPair {
                ability: *self.ability.pairs.get(index)?.get(kind)?,
                cost: *self.cost.pairs.get(index)?.get(kind)?,
                tasks,
            };
            (tasks > 0).then(|| (name.clone(), saved))
        });
        Some(SavedArm {
            arm: known.id.clone(),
            ability: *self.ability.arms.get(index)?,
            cost: *self.cost.arms.get(index)?,
            watch: known.watch,
            kinds: kinds.collect(),
        })
    }
}
