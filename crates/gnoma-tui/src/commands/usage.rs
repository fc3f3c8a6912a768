//! `/usage`: tokens of turn and session.

use super::slash::SlashCommandSpec;
use crate::{app::State, status};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "usage",
    aliases: &["cost"],
    arguments: "",
    about: "show tokens and cost",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let lines = status::render_usage(&state.facts, &state.counts);
    state.say_titled("Usage", lines);
}
