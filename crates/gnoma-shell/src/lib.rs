//! Analyses a shell command without running it: text in, facts out.
//!
//! Pure: it reads no file, clock or environment.

mod expand;
pub mod facts;
mod programs;
pub mod syntax;
mod walk;

pub use facts::{Analysis, Effect, FilePlace, Invocation, Risk, StartContext};
pub use walk::analyse_command;
