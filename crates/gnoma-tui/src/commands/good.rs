//! `/good`: the last turn's work was right.

use gnoma_core::protocol::Request;

use super::slash::SlashCommandSpec;
use crate::{app::State, ask::Purpose};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "good",
    aliases: &[],
    arguments: "",
    about: "rate the last answer as good; the router learns from it",
    run,
};

fn run(state: &mut State, _argument: &str) {
    rate_turn(state, true);
}

/// Tells the session what the person thinks of the last turn.
pub(super) fn rate_turn(state: &mut State, good: bool) {
    if !state.is_idle() {
        return state.show_hint("The turn is still running. Rate it when it has finished");
    }
    if state.counts.turns == 0 {
        return state.show_hint("No answer to rate yet");
    }
    // The session says what it noted.
    state.send_request(Request::Rate { good }, Purpose::Order);
}
