//! `/compact`: the past of the conversation told in fewer words, by the session itself.

use gnoma_core::protocol::Request;

use super::slash::Slash;
use crate::{app::State, ask::Purpose};

pub(super) const COMMAND: Slash = Slash {
    name: "compact",
    aliases: &[],
    arguments: "[what matters]",
    about: "compact the conversation to free up context",
    run,
};

fn run(state: &mut State, argument: &str) {
    if !state.is_idle() {
        return state.hint("Turn running. Press Esc to stop it first");
    }
    state.request(Request::Compact { focus: argument.to_owned() }, Purpose::Order);
    state.hint("Compacting the conversation…");
}
