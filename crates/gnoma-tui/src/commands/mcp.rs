//! `/mcp`: the MCP servers of the session, and how they are.

use gnoma_core::protocol::{Request, Topic};

use super::slash::Slash;
use crate::app::{Sought, State};

pub(super) const COMMAND: Slash = Slash {
    name: "mcp",
    aliases: &[],
    arguments: "",
    about: "show the MCP servers: state, tokens, calls and errors",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.look_up(Sought::Explanation, Request::Explain(Topic::Mcp), "");
}
