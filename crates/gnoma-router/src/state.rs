//! What was learnt, as plain data for whoever keeps it. Where pairs start is not part of it: priors and facts may
//! be newer when it is read. Numbers that learning cannot have made are ignored, one by one.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    arm::ArmId,
    beliefs::{Beliefs, MOST_ARMS},
    drift::Watch,
    effects::Belief,
    task::Kind,
    tuning::Tuning,
    verifier::Verifier,
};

/// The form [`State`] has now.
pub const STATE_VERSION: u32 = 1;

/// Everything learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Its form: [`STATE_VERSION`], or another gnoma wrote it.
    pub version: u32,
    /// What the verifier is worth.
    pub verifier: Verifier,
    /// By kind.
    pub kinds: BTreeMap<Kind, SavedKind>,
    /// By arm.
    pub arms: Vec<SavedArm>,
    /// Shadow prices by pool.
    pub prices: BTreeMap<Arc<str>, f64>,
}

/// What was learnt of a kind, for all arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedKind {
    /// How ability differs.
    pub ability: Belief,
    /// How log cost differs.
    pub cost: Belief,
}

/// What was learnt of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedArm {
    /// Which.
    pub arm: ArmId,
    /// How ability differs, over all kinds.
    pub ability: Belief,
    /// How log cost differs, over all kinds.
    pub cost: Belief,
    /// Evidence for a change.
    pub watch: Watch,
    /// By kind.
    pub kinds: BTreeMap<Kind, SavedPair>,
}

/// What was learnt of a pair alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedPair {
    /// How ability differs.
    pub ability: Belief,
    /// How log cost differs.
    pub cost: Belief,
    /// Tasks seen.
    pub tasks: u32,
}

/// Why a state was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Another form.
    #[error("router state has version {found}, this gnoma reads {STATE_VERSION}")]
    Version {
        /// Its form.
        found: u32,
    },
}

impl Beliefs {
    pub(crate) fn from_state(tuning: Tuning, state: &State) -> Result<Self, StateError> {
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
        beliefs.refresh();
        for (kind, saved) in &state.kinds {
            let Some(kind) = beliefs.kind(kind) else { continue };
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

    pub(crate) fn to_state(&self, prices: BTreeMap<Arc<str>, f64>) -> State {
        let kinds = self.kinds.iter().enumerate().filter_map(|(index, kind)| {
            let saved = SavedKind {
                ability: *self.ability.kinds.get(index)?,
                cost: *self.cost.kinds.get(index)?,
            };
            Some((kind.clone(), saved))
        });
        let arms = (0..self.arms.len()).filter_map(|arm| self.saved_arm(arm));
        State {
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
            arm: known.arm.id.clone(),
            ability: *self.ability.arms.get(index)?,
            cost: *self.cost.arms.get(index)?,
            watch: known.watch,
            kinds: kinds.collect(),
        })
    }
}
