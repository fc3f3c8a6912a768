//! `/mcp`: the MCP servers of the session, and how they are.

use gnoma_core::protocol::{Request, Topic};

use super::slash::SlashCommandSpec;
use crate::app::{LookUpTarget, State};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "mcp",
    aliases: &[],
    arguments: "",
    about: "show the MCP servers: state, tokens, calls and errors",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.look_up(LookUpTarget::Explanation, Request::Explain(Topic::Mcp), "");
}
