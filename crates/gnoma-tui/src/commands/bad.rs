//! `/bad`: the last turn's work was wrong.

use super::{good::rate_turn, slash::SlashCommandSpec};
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "bad",
    aliases: &[],
    arguments: "",
    about: "rate the last answer as bad; the router learns from it",
    run,
};

fn run(state: &mut State, _argument: &str) {
    rate_turn(state, false);
}
