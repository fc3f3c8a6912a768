//! `/model`: which model is called.

use super::Slash;
use crate::{
    app::{Deed, State},
    desk::Offer,
    picker::Row,
    wish::Again,
};

/// Lets the router choose again.
const AUTO: &str = "auto";

pub(super) const COMMAND: Slash = Slash {
    name: "model",
    aliases: &[],
    arguments: "[name|number|auto]",
    about: "choose the model, or let the router choose",
    run,
};

fn run(state: &mut State, argument: &str) {
    if argument == AUTO {
        return state.pin(None);
    }
    let mut offers = state.desk.models();
    for offer in &mut offers {
        offer.current = state.facts.model.as_ref() == Some(&offer.name);
    }
    let can_pin = offers.iter().any(|offer| offer.arm.is_some());
    let auto = Row::new(AUTO, "the router chooses").current(state.pinned.is_none());
    let first = can_pin.then_some((auto, Deed::Pin(None)));
    state.choose("model", offers, first, argument, deed);
}

/// What the session knows it changes to by itself; anything else needs another session.
fn deed(offer: Offer) -> Deed {
    match offer.arm {
        Some(arm) => Deed::Pin(Some(arm)),
        None => Deed::Again(Again::Model(offer.name)),
    }
}
