//! `/exit`: ends the session.

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "exit",
    aliases: &["quit", "q"],
    arguments: "",
    about: "end the session",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.quit();
}
