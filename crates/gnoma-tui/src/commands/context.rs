//! `/context`: what fills the context window.

use super::Slash;
use crate::{app::State, desk::Topic};

pub(super) const COMMAND: Slash = Slash {
    name: "context",
    aliases: &[],
    arguments: "",
    about: "show what fills the context window",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let outcome = state.desk.explain(Topic::Context);
    state.tell(outcome);
}
