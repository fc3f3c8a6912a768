//! `/good`: the last turn's work was right.

use gnoma_core::protocol::Request;

use super::slash::Slash;
use crate::{app::State, ask::Purpose};

pub(super) const COMMAND: Slash = Slash {
    name: "good",
    aliases: &[],
    arguments: "",
    about: "rate the last answer as good; the router learns from it",
    run,
};

fn run(state: &mut State, _argument: &str) {
    rate(state, true);
}

/// Tells the session what the person thinks of the last turn.
pub(super) fn rate(state: &mut State, good: bool) {
    if !state.is_idle() {
        return state.hint("The turn is still running. Rate it when it has finished");
    }
    if state.counts.turns == 0 {
        return state.hint("No answer to rate yet");
    }
    // The session says what it noted.
    state.request(Request::Rate { good }, Purpose::Order);
}
