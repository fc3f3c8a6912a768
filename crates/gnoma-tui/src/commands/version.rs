//! `/version`: which gnoma this is.

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "version",
    aliases: &[],
    arguments: "",
    about: "show the version",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let version = state.facts.version.clone();
    state.append_note(&format!("gnoma {version}"));
}
