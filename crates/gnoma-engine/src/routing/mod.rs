//! Which arms a turn goes to, and what gnoma learns from it.
//!
//! `gnoma-router` contains the policy. Here it meets the arms ([`routes`]) and their state ([`vitals`]), the plan
//! of a turn ([`plan`]) and the choice of arms for it ([`choosing`]), what to do when a call fails ([`failover`]),
//! the evidence for the work ([`signals`], [`review`]) and whose work it is ([`parts`]), the usage of a call
//! ([`meter`]), and several arms for one answer ([`several`]). `turn` decides which request happens when, and
//! `session` sends it.

pub(crate) mod arm_contributions;
pub(crate) mod arm_panel;
mod arm_selection;
pub(crate) mod ask;
mod choice_reasons;
pub(crate) mod failover;
pub(crate) mod meter;
pub(crate) mod offers;
pub(crate) mod plan;
pub(crate) mod review;
pub mod routes;
pub(crate) mod signals;
pub mod speed;
pub(crate) mod task;
pub(crate) mod verify;
mod vitals;

/// The name for failures that are not a provider's: there is no arm, no room, or no one who counts.
pub const OWN: &str = "router";

pub use self::{
    routes::{Exchange, OutcomeStore, Routes, RoutingOptions, Strategy, Verify, VitalsStore},
    speed::Speed,
};
