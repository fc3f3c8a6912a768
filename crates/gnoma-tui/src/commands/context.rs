//! `/context`: what fills the context window.

use gnoma_core::protocol::{Request, Topic};

use super::slash::Slash;
use crate::{
    app::{Sought, State},
    status,
};

pub(super) const COMMAND: Slash = Slash {
    name: "context",
    aliases: &[],
    arguments: "",
    about: "show what uses the context window",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let lines = status::window(&state.facts, &state.counts);
    state.say_titled("Context window", lines);
    state.look_up(Sought::Explanation, Request::Explain(Topic::Context), "");
}
