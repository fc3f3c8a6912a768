//! Detects a turn that goes in circles, and whether its last checks were red.
//!
//! Each detector is a small state that receives what happened and says whether it is the sign it watches for. The
//! turn machine decides what follows from a sign (a corrective message, the end of the turn). All state is bounded,
//! whatever a model streams.

mod calls;
mod check;
mod repetition;
mod runner;

pub use calls::{PatchSpiral, RepeatVerdict, SameCall};
pub use check::RedCheck;
pub use repetition::Repetition;
