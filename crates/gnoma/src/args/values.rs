//! Values of options that are names, and of `--thinking`.

use std::convert::Infallible;

use clap::{Command, CommandFactory as _};
use gnoma_core::ThinkingMode;

use super::{Args, error::ArgumentError};

/// Parses the value of `--thinking`.
pub(super) fn parse_thinking(text: &str) -> Result<ThinkingMode, ArgumentError> {
    text.parse().map_err(|_| ArgumentError::NotThinking)
}

/// Parses the id of a session. An empty one, such as from an unset variable, would mean another session.
pub(super) fn parse_session_id(text: &str) -> Result<String, ArgumentError> {
    parse_nonempty(text, "id", "`gnoma --continue` continues the newest session")
}

/// Parses the name of a provider. An empty one, such as from an unset variable, would let another one answer.
pub(super) fn parse_provider_name(text: &str) -> Result<String, ArgumentError> {
    parse_nonempty(text, "name", "`gnoma providers` lists them")
}

fn parse_nonempty(
    text: &str,
    what: &'static str,
    remedy: &'static str,
) -> Result<String, ArgumentError> {
    if text.trim().is_empty() {
        return Err(ArgumentError::Empty { what, remedy });
    }
    Ok(text.to_owned())
}

/// Parses the name of a model, with or without its provider. Blanks around the parts are none of either.
pub(super) fn parse_model_name(text: &str) -> Result<String, Infallible> {
    Ok(text.split('/').map(str::trim).collect::<Vec<_>>().join("/"))
}

/// Parses the name of a command, or of one that belongs to another.
pub(super) fn parse_command_name(text: &str) -> Result<String, ArgumentError> {
    if has_command(&Args::command(), text) {
        return Ok(text.to_owned());
    }
    Err(ArgumentError::UnknownCommand(text.to_owned()))
}

fn has_command(group: &Command, name: &str) -> bool {
    group.find_subcommand(name).is_some()
        || group.get_subcommands().any(|inner| has_command(inner, name))
}
