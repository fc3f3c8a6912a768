//! `/compact`: the past of the conversation told in short.

use super::Slash;
use crate::{app::State, wish::Again};

pub(super) const COMMAND: Slash = Slash {
    name: "compact",
    aliases: &[],
    arguments: "",
    about: "tell the past in short, to make room",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.again(Again::Compact);
}
