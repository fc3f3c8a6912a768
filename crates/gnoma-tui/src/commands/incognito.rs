//! `/incognito`: whether anything is stored.

use super::slash::Slash;
use crate::{app::State, wish::Again};

pub(super) const COMMAND: Slash = Slash {
    name: "incognito",
    aliases: &[],
    arguments: "",
    about: "store nothing from now on, or again",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.again(Again::Incognito(!state.facts.incognito));
}
