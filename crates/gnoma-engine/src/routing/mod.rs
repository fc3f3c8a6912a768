//! The arms as sessions use them, and what gnoma learns from it.
//!
//! `gnoma-router` contains the policy, pure. Here it meets connections, clocks and stores ([`routes`]); here are the
//! questions to arms beside a conversation ([`ask`]), several arms for one answer ([`arm_panel`]), the usage of a call
//! ([`meter`]) and whose it is ([`call_origin`]), and the evidence for the work of a turn ([`signals`], [`review`],
//! [`verify`]). `turn` decides which request happens when, and `session` sends it.

pub(crate) mod arm_panel;
pub(crate) mod ask;
pub(crate) mod call_origin;
pub(crate) mod meter;
pub(crate) mod review;
pub mod routes;
pub(crate) mod signals;
pub(crate) mod verify;

/// The name for failures that are not a provider's: there is no arm, no room, or no one who counts.
pub const OWN: &str = "router";

pub use self::routes::{Exchange, OutcomeStore, Routes, RoutingPorts, VitalsStore};
