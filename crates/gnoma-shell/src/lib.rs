//! Reads a shell command without running it: text in, facts out.
//!
//! Pure: no file, clock or environment is looked at.

mod expand;
pub mod facts;
mod programs;
pub mod syntax;
mod walk;

pub use facts::{Analysis, Effect, FilePlace, Invocation, Risk, StartContext};
pub use walk::analyse;
