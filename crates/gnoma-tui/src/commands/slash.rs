//! What a command is.

use crate::app::State;

/// A command that begins with a slash.
pub(crate) struct SlashCommandSpec {
    /// The name that is written behind the slash.
    pub(crate) name: &'static str,
    /// Other names for it.
    pub(crate) aliases: &'static [&'static str],
    /// The arguments that can follow.
    pub(crate) arguments: &'static str,
    /// The purpose of the command, in a few words.
    pub(crate) about: &'static str,
    /// Does it, with what follows the name.
    pub(crate) run: fn(&mut State, &str),
}
