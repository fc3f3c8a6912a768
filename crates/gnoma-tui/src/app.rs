//! What there is to show and what every key and event means. Pure: inputs in, effects out, frames on
//! demand. The session and its host are asked by requests, whose replies are inputs like any other:
//! nothing waits. What keys do while somebody writes is the composer's part.

mod asked;
mod asking;
mod attached;
mod choosing;
mod completing;
mod completion;
mod greeting;
mod inputs;
mod keys;
#[cfg(test)]
mod laws;
mod layer;
mod panes;
mod parts;
mod queue;
mod searching;
mod sending;
mod session;
mod shown;
mod starting;
mod state;
mod status_script;
mod typing;
mod view;

pub use self::state::{AppOptions, State};
pub(crate) use self::{asking::meaning, layer::LayerChoice, parts::Sought};
