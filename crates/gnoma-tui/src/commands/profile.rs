//! `/profile`: which profile of the settings is used.

use gnoma_core::protocol::{self, Request, Switch};

use super::slash::SlashCommandSpec;
use crate::app::{LayerChoice, LookUpTarget, State};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "profile",
    aliases: &[],
    arguments: "[name or number]",
    about: "choose a settings profile",
    run,
};

fn run(state: &mut State, argument: &str) {
    state.look_up(LookUpTarget::Profiles, Request::Profiles, argument);
}

/// Takes the profile that was meant, or offers all.
pub(super) fn offer_profiles(state: &mut State, offers: Vec<protocol::Choice>, argument: &str) {
    state.choose_offer("profile", offers, None, argument, |offer| {
        LayerChoice::Switch(Request::Switch(Switch::Profile(offer.name)))
    });
}
