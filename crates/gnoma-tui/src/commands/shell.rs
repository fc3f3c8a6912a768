//! `/shell`: hands the terminal over to a shell or a program.

use super::slash::SlashCommandSpec;
use crate::{app::State, effect::Effect};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "shell",
    aliases: &[],
    arguments: "[program]",
    about: "open a shell; exit it to come back",
    run,
};

fn run(state: &mut State, argument: &str) {
    let program = (!argument.is_empty()).then(|| argument.to_owned());
    state.emit(Effect::HandOver(program));
}
