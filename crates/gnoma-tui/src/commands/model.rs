//! `/model`: which model is called.

use gnoma_core::protocol::{self, Request, Switch};

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, LookUpTarget, State},
    ask::Purpose,
    picker::Row,
};

/// Lets the router choose again.
const AUTO: &str = "auto";
const TITLE: &str = "Choose the model";

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "model",
    aliases: &["models"],
    arguments: "[name|number|auto]",
    about: "choose a model, or let the router choose",
    run,
};

fn run(state: &mut State, argument: &str) {
    if argument == AUTO {
        return state.pin_model(None);
    }
    // A list that is read out must not change afterwards.
    if argument.is_empty() && !state.is_accessible() {
        let known = state.session.view.models.clone();
        let rows = model_rows(state, known);
        state.pick_growing(TITLE, rows, "the providers");
        return state.send_request(Request::Models { ask: true }, Purpose::GrowModels);
    }
    state.look_up(LookUpTarget::Models, Request::Models { ask: true }, argument);
}

/// Takes the model that was meant, or offers all.
pub(super) fn offer_models(state: &mut State, mut offers: Vec<protocol::Choice>, argument: &str) {
    mark_current(state, &mut offers);
    let first = router_row(state, &offers);
    state.choose_offer("model", offers, first, argument, to_layer_choice);
}

/// All models are known now: they go into the list, if that is open still.
pub(crate) fn fill_model_list(state: &mut State, offers: Vec<protocol::Choice>) {
    let rows = model_rows(state, offers);
    state.fill_picker(rows);
}

fn model_rows(state: &State, mut offers: Vec<protocol::Choice>) -> Vec<(Row, LayerChoice)> {
    mark_current(state, &mut offers);
    let row = |offer: protocol::Choice| {
        let row = Row::new(offer.name.clone(), offer.about.clone()).with_current(offer.current);
        (row, to_layer_choice(offer))
    };
    router_row(state, &offers).into_iter().chain(offers.into_iter().map(row)).collect()
}

fn mark_current(state: &State, offers: &mut [protocol::Choice]) {
    for offer in offers {
        let is_model = state.facts.model.as_ref() == Some(&offer.name);
        offer.current = is_model && !is_routed(state);
    }
}

/// The row that lets the router choose, where it has a choice.
fn router_row(state: &State, offers: &[protocol::Choice]) -> Option<(Row, LayerChoice)> {
    let can_pin = offers.iter().any(|offer| offer.arm.is_some());
    let auto = Row::new(AUTO, "the router chooses").with_current(is_routed(state));
    can_pin.then_some((auto, LayerChoice::Pin(None)))
}

/// The router chooses a model for each turn.
fn is_routed(state: &State) -> bool {
    state.routes.pinned.is_none() && state.facts.chooses
}

/// Returns the choice for an offered model. The session changes by itself to a model that it knows; any other needs
/// another session.
fn to_layer_choice(offer: protocol::Choice) -> LayerChoice {
    match offer.arm {
        Some(arm) => LayerChoice::Pin(Some(arm)),
        None => LayerChoice::Switch(Request::Switch(Switch::Model(offer.name))),
    }
}
