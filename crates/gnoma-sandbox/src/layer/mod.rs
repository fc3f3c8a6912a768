//! Layers: folders that take what commands change in a copy-on-write view of a workspace.
//!
//! A command runs with an [`Overlay`](crate::Overlay) over each folder it may write. What it changed is
//! then read from the layer ([`Layer::changes`]): a list of facts, and no guess from the command's text.
//! A layer that is dropped is gone with all that is in it. [`Layer::apply_changes`] brings changes into the real
//! folders, all of them or none: every step is a rename whose counterpart stays in the layer, the steps
//! are written down before the first is taken, and what a killed process left is finished or undone at
//! the next start ([`Site::recover_layers`]).
//!
//! Whoever works in the real folder meanwhile loses nothing. A file that changed after the command
//! began is a conflict, told when the changes are listed and looked at again with each step.
//!
//! Paths below a root are opened from the root's descriptor, never through links: what a command left
//! in the workspace leads nowhere else.
//!
//! What a layer cannot do like a plain folder is a [`Difference`]. Not here: which changes may be kept
//! (the guard, and a person), and showing them.

mod change;
mod differences;
mod error;
mod files;
mod folder;
mod journal;
mod keep;
mod list;
mod plan;
mod reset;
mod site;
mod stamp;
mod steps;

#[cfg(test)]
mod laws;

pub use change::{ChangeKind, Changes, LayerChange, NodeKind};
pub use differences::{Difference, known_difference};
pub use error::{KeepError, LayerAttemptError, LayerError, SiteError};
pub use folder::Layer;
pub use site::{KeepRecovery, Site};
