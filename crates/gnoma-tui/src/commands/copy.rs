//! `/copy`: the last answer, for the clipboard.

use super::slash::SlashCommandSpec;
use crate::{app::State, effect::Effect};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "copy",
    aliases: &[],
    arguments: "",
    about: "copy the last answer",
    run,
};

fn run(state: &mut State, _argument: &str) {
    match state.transcript.last_answer().map(str::to_owned) {
        Some(answer) => {
            state.emit(Effect::Copy(answer));
            state.show_hint("Copied the last answer");
        }
        None => state.show_hint("No answer to copy yet"),
    }
}
