//! The terminal face of gnoma: a client of one session that knows only the vocabulary.
//!
//! State and view are apart: `app` holds what there is to show and decides what a key or an event
//! means, `view` turns it into a [`Frame`], `screen` brings a frame to the terminal with as few
//! bytes as it can, and `terminal` is the only part that touches the real one. Finished parts of the
//! conversation go into the terminal's own scrollback and are never drawn again.

pub mod frame;
pub mod text;

pub use frame::Frame;
