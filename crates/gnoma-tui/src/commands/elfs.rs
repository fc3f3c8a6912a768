//! `/elfs`: the elfs of the session, how they are, and how one is stopped.

use gnoma_core::protocol::{Request, Topic};

use super::slash::Slash;
use crate::app::{Sought, State};

pub(super) const COMMAND: Slash = Slash {
    name: "elfs",
    aliases: &[],
    arguments: "[cancel NAME]",
    about: "show the elfs at work: model, what they do, tokens, cost, time; or stop one",
    run,
};

fn run(state: &mut State, argument: &str) {
    let name = argument.trim().strip_prefix("cancel ").map(str::trim);
    let request = match name.filter(|name| !name.is_empty()) {
        Some(name) => Request::CancelElf { name: name.to_owned() },
        None => Request::Explain(Topic::Elfs),
    };
    state.look_up(Sought::Explanation, request, "");
}
