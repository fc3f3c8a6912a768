//! `/redo`: takes the last rewind back.

use super::slash::Slash;
use crate::{app::State, wish::Again};

pub(super) const COMMAND: Slash =
    Slash { name: "redo", aliases: &[], arguments: "", about: "take the last rewind back", run };

fn run(state: &mut State, _argument: &str) {
    state.again(Again::Redo);
}
