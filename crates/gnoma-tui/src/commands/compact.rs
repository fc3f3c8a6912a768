//! `/compact`: the past of the conversation told in fewer words, by the session itself.

use gnoma_core::Command;

use super::slash::Slash;
use crate::{app::State, wish::Wish};

pub(super) const COMMAND: Slash = Slash {
    name: "compact",
    aliases: &[],
    arguments: "[what matters]",
    about: "tell the past in fewer words, to make room",
    run,
};

fn run(state: &mut State, argument: &str) {
    if !state.is_idle() {
        return state.hint("a turn is running; Esc stops it first");
    }
    state.wish(Wish::Tell(Command::Compact { focus: argument.to_owned() }));
    state.hint("the conversation is being told in fewer words");
}
