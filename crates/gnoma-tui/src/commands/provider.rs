//! `/provider`: whose models are called.

use super::slash::Slash;
use crate::{
    app::{Choice, State},
    wish::Again,
};

pub(super) const COMMAND: Slash = Slash {
    name: "provider",
    aliases: &[],
    arguments: "[name or number]",
    about: "choose the provider",
    run,
};

fn run(state: &mut State, argument: &str) {
    let offers = state.desk.providers();
    if offers.is_empty() && argument.is_empty() && state.set_up() {
        return;
    }
    state.choose("provider", offers, None, argument, |offer| {
        Choice::Again(Again::Provider(offer.name))
    });
}
