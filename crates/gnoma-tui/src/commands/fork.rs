//! `/fork`: goes on in a copy, so that the original stays.

use super::slash::Slash;
use crate::{app::State, wish::Again};

pub(super) const COMMAND: Slash = Slash {
    name: "fork",
    aliases: &[],
    arguments: "",
    about: "go on in a copy of this conversation",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.again(Again::Fork);
}
