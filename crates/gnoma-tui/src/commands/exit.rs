//! `/exit`: ends the session.

use super::slash::Slash;
use crate::app::State;

pub(super) const COMMAND: Slash =
    Slash { name: "exit", aliases: &["quit", "q"], arguments: "", about: "end the session", run };

fn run(state: &mut State, _argument: &str) {
    state.quit();
}
