//! `/redo`: takes the last rewind back.

use gnoma_core::protocol::Request;

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "redo",
    aliases: &[],
    arguments: "",
    about: "undo the last rewind",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.switch_session(Request::Redo);
}
