//! Which arms a turn goes to, and what is learnt from it.
//!
//! The policy is `gnoma-router`'s. Here it meets the arms that there are ([`routes`]) and how they are
//! ([`vitals`]), the plan of a
//! turn ([`plan`]) and who is chosen for it ([`choosing`]), what to do when a call fails ([`failover`]), what speaks for the work ([`signals`],
//! [`review`]) and for whom ([`parts`]), what a call takes ([`meter`]) and several arms for one answer
//! ([`several`]). What is asked when is decided in `turn`, and asked by `session`.

pub(crate) mod ask;
mod choosing;
pub(crate) mod failover;
pub(crate) mod meter;
pub(crate) mod offers;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod review;
pub mod routes;
pub(crate) mod several;
pub(crate) mod signals;
pub mod speed;
pub(crate) mod task;
pub(crate) mod verify;
mod vitals;

/// Who failed, where it was no provider: there is no arm, no room, or nobody who counts.
pub const OWN: &str = "router";

pub use self::{
    routes::{Exchange, Memory, Routes, RoutingOptions, Strategy, Verify, VitalsStore},
    speed::Speed,
};
