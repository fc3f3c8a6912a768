//! Drives a turn: performs its effects and reports the results.
//!
//! One task owns everything that changes. Front ends hold a [`Handle`]: commands go in, events come out, both over
//! bounded channels, so a front end that does not read slows the model's stream down instead of filling memory.
//! Dropping the handle stops the session and everything that it started.
//!
//! `turn` decides what happens next, and `routing` which model is called. Each file here performs one kind of
//! effect.

mod added;
mod additions;
mod asking;
mod beside;
mod calling;
mod checking;
mod compacting;
mod conferring;
mod failing;
mod filling;
mod handle;
mod judging;
mod live;
mod looking;
mod model_port;
mod paths;
mod paying;
mod pending;
mod reserving;
mod room;
mod router;
mod routing;
mod running;
mod side_model;
mod silence;
mod spending;
mod state;
mod telling;
mod thinking;
mod toolset;
mod verdicts;

pub use self::{
    handle::{FilesReady, Handle, Options, Prover, ToolUpdates},
    state::Session,
};
