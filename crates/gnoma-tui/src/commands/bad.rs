//! `/bad`: the last turn's work was wrong.

use super::{good::rate, slash::Slash};
use crate::app::State;

pub(super) const COMMAND: Slash = Slash {
    name: "bad",
    aliases: &[],
    arguments: "",
    about: "say that the last answer was wrong; the router learns from it",
    run,
};

fn run(state: &mut State, _argument: &str) {
    rate(state, false);
}
