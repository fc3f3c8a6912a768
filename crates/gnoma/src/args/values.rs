//! Values of options that are names, and of `--thinking`.

use clap::{Command, CommandFactory as _};
use gnoma_core::ThinkingMode;

use super::Args;

/// Parses the value of `--thinking`.
pub(super) fn parse_thinking(text: &str) -> Result<ThinkingMode, String> {
    let why = "--thinking takes off, adaptive or a number of tokens (1 or more)";
    text.parse().map_err(|_| why.to_owned())
}

/// Parses the id of a session. An empty one, such as from an unset variable, would mean another session.
pub(super) fn parse_session_id(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the id is empty; `gnoma --continue` continues the newest session".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses the name of a provider. An empty one, such as from an unset variable, would let another one answer.
pub(super) fn parse_provider_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the name is empty; `gnoma providers` lists them".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses the name of a model, with or without its provider. Blanks around the parts are none of either.
pub(super) fn parse_model_name(text: &str) -> Result<String, String> {
    Ok(text.split('/').map(str::trim).collect::<Vec<_>>().join("/"))
}

/// Parses the name of a command, or of one that belongs to another.
pub(super) fn parse_command_name(text: &str) -> Result<String, String> {
    if has_command(&Args::command(), text) {
        return Ok(text.to_owned());
    }
    Err(format!("there is no command `{text}`; `gnoma --help` lists them"))
}

fn has_command(group: &Command, name: &str) -> bool {
    group.find_subcommand(name).is_some()
        || group.get_subcommands().any(|inner| has_command(inner, name))
}
