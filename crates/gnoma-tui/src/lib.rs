//! The terminal's view of gnoma's sessions: a client of the session protocol that knows only the types of `gnoma-core`.
//!
//! State and view are separate: `app` holds what there is to show and decides what a key or an event
//! means, `view` turns it into a [`Frame`], `screen` writes a frame to the terminal with as few
//! bytes as it can, and `terminal` is the only part that touches the real one. Finished parts of the
//! conversation go into the terminal's own scrollback and are never drawn again.

pub mod app;
pub mod ask;
pub mod charset;
pub mod clean;
mod commands;
pub mod complete;
pub mod composer;
pub mod diff;
pub mod effect;
pub mod frame;
pub mod fuzzy;
pub mod highlight;
pub mod history;
pub mod input;
pub mod keymap;
pub mod markdown;
pub mod paint;
pub mod picker;
pub mod prompt;
pub mod run;
pub mod screen;
pub mod setup;
pub mod status;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod transcript;

pub use frame::{Frame, Size};
pub use input::Input;
