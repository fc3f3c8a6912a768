//! What was learnt, as plain data for whoever keeps it. Where pairs start is not part of it: priors and facts may
//! be newer when it is read. Numbers that learning cannot have made are ignored, one by one.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{arm::ArmId, drift::DriftWatch, effects::Belief, task::TaskKind, verifier::Verifier};

/// The form [`RouterState`] has now.
pub const STATE_VERSION: u32 = 1;

/// Everything learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouterState {
    /// Its form: [`STATE_VERSION`], or another gnoma wrote it.
    pub version: u32,
    /// What the verifier is worth.
    pub verifier: Verifier,
    /// By kind.
    pub kinds: BTreeMap<TaskKind, SavedKind>,
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
    pub watch: DriftWatch,
    /// By kind.
    pub kinds: BTreeMap<TaskKind, SavedPair>,
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
