//! `/export`: writes the conversation to a file.

use gnoma_core::protocol::Request;

use super::slash::SlashCommandSpec;
use crate::{app::State, ask::Purpose};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "export",
    aliases: &[],
    arguments: "[path]",
    about: "export the conversation to a file",
    run,
};

fn run(state: &mut State, argument: &str) {
    state.send_request(Request::Export { path: argument.into() }, Purpose::Report(""));
}
