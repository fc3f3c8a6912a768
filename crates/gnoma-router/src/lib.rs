//! Picks the arm for a task and learns from the outcome. Pure: time, randomness and outcomes are inputs.
//!
//! [`Router::choose`] weighs what each arm is likely to achieve and to cost, given what was already tried on this
//! task, looks ahead over the attempts that are left, and runs an arm, several at once, or accepts an attempt.
//! [`Router::record_outcome`] learns from the outcome. [`choice`] applies it to the turns of sessions. Running the arms,
//! saving the state and counting the limits happen elsewhere.

pub mod arm;
mod beliefs;
pub mod choice;
pub mod classify;
mod clock;
mod drift;
mod effects;
mod evidence;
mod explain;
pub mod health;
mod kind;
mod knowledge_gradient;
mod learning;
mod plan;
pub mod pool;
pub mod priors;
mod probit;
pub mod replay;
mod router;
pub mod rules;
mod scarcity;
mod starting_point;
pub mod state;
mod state_conversion;
pub mod task;
mod tuning;
mod verifier;
pub mod vitals;

pub use arm::{Arm, ArmId, Offer, PoolId, Prior, Published, Wire};
pub use beliefs::{MOST_ARMS, MOST_KINDS};
pub use choice::{RouterSettings, Strategy, Verify};
pub use clock::Zone;
pub use drift::DriftWatch;
pub use effects::Belief;
pub use router::{ArmEstimate, Decision, Exclusion, Router, RouterChoice, WeighedArm};
pub use scarcity::PoolBudget;
pub use state::{RouterState, StateError};
pub use task::{Attempt, AttemptResult, Need, Situation, TaskKind, TaskOutcome, UnmetNeed};
pub use tuning::{DriftTuning, LevelVariances, Tuning, VerifierTuning};
pub use verifier::Verifier;
