//! `/model`: which model is called.

use super::Slash;
use crate::{app::State, wish::Again};

pub(super) const COMMAND: Slash = Slash {
    name: "model",
    aliases: &[],
    arguments: "[name or number]",
    about: "choose the model",
    run,
};

fn run(state: &mut State, argument: &str) {
    let offers = state.desk.models();
    state.choose("model", offers, argument, Again::Model);
}
