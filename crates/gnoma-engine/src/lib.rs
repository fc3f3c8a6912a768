//! Decides what happens next in a session.
//!
//! [`turn`] is the machine: inputs in, effects out, without await, clock, disk or network. [`session`] is
//! the driver that performs the effects. The rest are decisions that the machine needs: [`detect`] loops,
//! [`repair`] arguments, pass calls through the [`gate`], write the [`prompt`], choose the arm
//! ([`routing`]).
//!
//! The engine does not know providers, tools or stores: it gets them as ports of `gnoma-core`.

pub mod arm;
mod asides;
mod checkpoint;
mod compact;
pub mod context;
pub mod detect;
pub mod gate;
mod gauge;
pub mod keeping;
mod large_results;
mod noted;
mod past;
mod persistence;
mod planned;
mod processes;
pub mod prompt;
mod record;
pub mod repair;
pub mod resume;
pub mod rights;
pub mod routing;
pub mod session;
pub mod shape;
pub mod tokens;
mod turn;

pub use crate::{
    arm::Arm,
    gate::GatePlace,
    gauge::Gauge,
    keeping::{Keeping, Unkept},
    rights::Rights,
    routing::Routes,
    session::{FilesReady, Handle, Options, Prover, Session, ToolUpdates},
    shape::Shape,
    turn::Limits,
};
