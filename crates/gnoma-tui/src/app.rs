//! The state of the view and its update function. Pure: inputs in, effects out, frames on demand. The session and its
//! host are asked by requests, whose replies are inputs like any other: nothing waits. What keys do while somebody
//! writes is the composer's part.

mod choice_layers;
mod completion;
mod completion_menu;
mod draft_display;
mod editor_input;
mod first_start;
mod greeting;
mod history_search;
mod inputs;
mod keys;
#[cfg(test)]
mod laws;
mod layer;
mod message_sending;
mod panes;
mod parts;
mod permission_prompts;
mod queue;
mod session;
mod session_attachment;
mod state;
mod status_script;
mod status_sources;
mod view;
mod view_requests;

pub use self::state::{AppOptions, State};
pub(crate) use self::{layer::LayerChoice, parts::LookUpTarget, permission_prompts::describe_mode};
