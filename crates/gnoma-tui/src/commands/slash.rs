//! What a command is.

use crate::app::State;

/// A command.
pub(crate) struct Slash {
    /// What is written behind the slash.
    pub(crate) name: &'static str,
    /// Other names for it.
    pub(crate) aliases: &'static [&'static str],
    /// What can follow.
    pub(crate) arguments: &'static str,
    /// What it does, in a few words.
    pub(crate) about: &'static str,
    /// Does it, with what follows the name.
    pub(crate) run: fn(&mut State, &str),
}
