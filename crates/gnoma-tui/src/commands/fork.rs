//! `/fork`: continues in a copy, so that the original stays.

use gnoma_core::protocol::Request;

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "fork",
    aliases: &[],
    arguments: "",
    about: "continue in a copy of this conversation",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.switch_session(Request::Fork);
}
