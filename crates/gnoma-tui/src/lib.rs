//! The terminal's view of gnoma's sessions: a client of the session protocol that knows only the types of
//! `gnoma-core`.
//!
//! State and view are separate: `app` has the state and decides what a key or an event means, its `view` turns the
//! state into a [`Frame`], `screen` writes a frame to the terminal with as few bytes as possible, and only
//! `terminal` touches the real terminal. Finished parts of the conversation go into the terminal's own scrollback
//! and are never redrawn.

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
pub mod own_themes;
pub mod paint;
pub mod picker;
mod plan;
pub mod prompt;
mod remedies;
pub mod run;
pub mod screen;
pub mod setup;
pub mod sgr;
pub mod status;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod transcript;

pub use commands::{slash_command_arguments, slash_command_names};
pub use frame::{Frame, Size};
pub use input::Input;
