//! What there is to show and what every key and event means. Pure: inputs in, wishes out, frames on
//! demand; the program around is asked only through the [`Desk`], and only where a person asked for
//! something. What keys do while somebody writes is the composer's part.

mod asking;
mod choosing;
mod completing;
mod completion;
mod inputs;
mod keys;
#[cfg(test)]
mod laws;
mod layer;
mod parts;
mod queue;
mod searching;
mod sending;
mod session;
mod shown;
mod starting;
mod state;
mod typing;
mod view;

pub use self::state::{Options, State};
pub(crate) use self::{asking::meaning, layer::Choice};
