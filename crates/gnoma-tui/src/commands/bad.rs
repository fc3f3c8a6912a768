//! `/bad`: the last turn's work was wrong.

use super::{good::rate_turn, slash::Slash};
use crate::app::State;

pub(super) const COMMAND: Slash = Slash {
    name: "bad",
    aliases: &[],
    arguments: "",
    about: "rate the last answer as bad; the router learns from it",
    run,
};

fn run(state: &mut State, _argument: &str) {
    rate_turn(state, false);
}
