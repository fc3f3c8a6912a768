//! `/vim`: vim's keys in the editor, on or off.

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "vim",
    aliases: &[],
    arguments: "",
    about: "turn vim keys on or off",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let on = state.composer.mode().is_none();
    state.use_vim(on);
}
