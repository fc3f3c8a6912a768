//! `/init`: lets the model write down what an assistant should know about the project. It follows the skill of that
//! name.

use super::slash::SlashCommandSpec;
use crate::{app::State, composer::Draft};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "init",
    aliases: &[],
    arguments: "[what matters]",
    about: "write AGENTS.md, the project's notes for assistants",
    run,
};

fn run(state: &mut State, argument: &str) {
    if !state.is_idle() {
        return state.show_hint("Turn running. Press Esc to stop it first");
    }
    let text = format!("/init {argument}").trim_end().to_owned();
    state.send_draft(Draft { text, ..Draft::default() });
}
