//! `/provider`: whose models are called.

use gnoma_core::protocol::{self, Request, Switch};

use super::slash::SlashCommandSpec;
use crate::app::{LayerChoice, LookUpTarget, State};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "provider",
    aliases: &[],
    arguments: "[name or number]",
    about: "choose a provider",
    run,
};

fn run(state: &mut State, argument: &str) {
    state.look_up(LookUpTarget::Providers, Request::Providers, argument);
}

/// Takes the provider that was meant, or offers all.
pub(super) fn offer_providers(state: &mut State, offers: Vec<protocol::Choice>, argument: &str) {
    if offers.is_empty() && argument.is_empty() && state.set_up() {
        return;
    }
    state.choose_offer("provider", offers, None, argument, |offer| {
        LayerChoice::Switch(Request::Switch(Switch::Provider(offer.name)))
    });
}
