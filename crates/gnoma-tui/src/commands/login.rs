//! `/login`: sets a provider up, gives one another key, or removes one.

use gnoma_core::protocol::{self, Request};

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, LookUpTarget, State},
    ask::Purpose,
};

/// The argument that removes a provider.
const REMOVE: &str = "remove";

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "login",
    aliases: &["providers", "logout", "key"],
    arguments: "[name|remove NAME]",
    about: "add a provider, enter a key, or remove one",
    run,
};

fn run(state: &mut State, argument: &str) {
    match argument.split_once(char::is_whitespace).unwrap_or((argument, "")) {
        (REMOVE, "") => state.look_up(LookUpTarget::Removable, Request::Providers, ""),
        (REMOVE, name) => {
            state.send_request(removal_request(name.trim()), Purpose::Report(""));
        }
        _ => state.look_up_providers(argument),
    }
}

/// Offers the providers that can be removed.
pub(super) fn show_removable(state: &mut State, offers: Vec<protocol::Choice>) {
    if offers.is_empty() {
        return state.show_hint("No provider to remove");
    }
    state.choose_offer("provider to remove", offers, None, "", |offer| {
        LayerChoice::Report(removal_request(&offer.name))
    });
}

fn removal_request(provider: &str) -> Request {
    Request::RemoveProvider { provider: provider.to_owned() }
}
