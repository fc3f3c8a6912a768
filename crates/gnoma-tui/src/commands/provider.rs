//! `/provider`: whose models are called.

use super::Slash;
use crate::{app::State, wish::Again};

pub(super) const COMMAND: Slash = Slash {
    name: "provider",
    aliases: &[],
    arguments: "[name or number]",
    about: "choose the provider",
    run,
};

fn run(state: &mut State, argument: &str) {
    let offers = state.desk.providers();
    state.choose("provider", offers, argument, Again::Provider);
}
