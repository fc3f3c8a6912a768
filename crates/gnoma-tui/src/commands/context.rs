//! `/context`: what fills the context window.

use super::slash::Slash;
use crate::{app::State, desk::Topic, status};

pub(super) const COMMAND: Slash = Slash {
    name: "context",
    aliases: &[],
    arguments: "",
    about: "show what fills the context window",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let lines = status::window(&state.facts, &state.counts);
    state.say(lines);
    let outcome = state.desk.explain(Topic::Context);
    state.tell(outcome);
}
