//! `/profile`: which profile of the settings is used.

use super::slash::Slash;
use crate::{
    app::{Choice, State},
    wish::Again,
};

pub(super) const COMMAND: Slash = Slash {
    name: "profile",
    aliases: &[],
    arguments: "[name or number]",
    about: "choose the profile of the settings",
    run,
};

fn run(state: &mut State, argument: &str) {
    let offers = state.desk.profiles();
    state.choose("profile", offers, None, argument, |offer| {
        Choice::Again(Again::Profile(offer.name))
    });
}
