//! `/detach`: leaves the window; the session continues in its server.

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "detach",
    aliases: &[],
    arguments: "",
    about: "close this window; the session keeps running in the server",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.detach();
}
