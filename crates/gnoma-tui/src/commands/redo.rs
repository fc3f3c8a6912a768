//! `/redo`: takes the last rewind back.

use gnoma_core::protocol::Request;

use super::slash::Slash;
use crate::app::State;

pub(super) const COMMAND: Slash =
    Slash { name: "redo", aliases: &[], arguments: "", about: "undo the last rewind", run };

fn run(state: &mut State, _argument: &str) {
    state.switch_session(Request::Redo);
}
