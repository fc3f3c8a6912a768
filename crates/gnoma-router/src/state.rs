//! What was learnt, as plain data for whoever keeps it. Where pairs start is not part of it: priors and facts may
//! be newer when it is read. Numbers that learning cannot have made are ignored, one by one.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{arm::ArmId, drift::DriftWatch, effects::Belief, task::TaskKind, verifier::Verifier};

/// The form [`RouterState`] has now.
pub const STATE_VERSION: u32 = 1;

/// Everything that the router has learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterState {
    /// The form of the state: [`STATE_VERSION`], or another gnoma wrote it.
    pub version: u32,
    /// The learnt worth of the verifier.
    pub verifier: Verifier,
    /// The facts learnt of each kind.
    pub kinds: BTreeMap<TaskKind, SavedKind>,
    /// The facts learnt of each arm.
    pub arms: Vec<SavedArm>,
    /// Shadow prices by pool.
    pub prices: BTreeMap<Arc<str>, f64>,
}

/// The facts learnt of a kind, for all arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedKind {
    /// The difference in ability that the kind makes.
    pub ability: Belief,
    /// The difference in log cost that the kind makes.
    pub cost: Belief,
}

/// The facts learnt of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedArm {
    /// The arm that they are about.
    pub arm: ArmId,
    /// The difference in ability of the arm, over all kinds.
    pub ability: Belief,
    /// The difference in log cost of the arm, over all kinds.
    pub cost: Belief,
    /// Evidence for a change.
    pub watch: DriftWatch,
    /// The facts learnt of the arm at each kind.
    pub kinds: BTreeMap<TaskKind, SavedPair>,
}

/// The facts learnt of a pair alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedPair {
    /// The difference in ability of the pair.
    pub ability: Belief,
    /// The difference in log cost of the pair.
    pub cost: Belief,
    /// The number of tasks seen.
    pub tasks: u32,
}

/// The reason why a state was not taken.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The state has another form.
    #[error("router state has version {found}, this gnoma reads {STATE_VERSION}")]
    Version {
        /// The form of the state.
        found: u32,
    },
}

gnoma_core::debug_as_display!(StateError);
