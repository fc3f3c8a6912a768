//! `/usage`: tokens of turn and session.

use super::slash::Slash;
use crate::{app::State, status};

pub(super) const COMMAND: Slash =
    Slash { name: "usage", aliases: &["cost"], arguments: "", about: "show tokens and cost", run };

fn run(state: &mut State, _argument: &str) {
    let lines = status::render_usage(&state.facts, &state.counts);
    state.say_titled("Usage", lines);
}
