//! `/version`: which gnoma this is.

use super::slash::Slash;
use crate::app::State;

pub(super) const COMMAND: Slash =
    Slash { name: "version", aliases: &[], arguments: "", about: "show the version", run };

fn run(state: &mut State, _argument: &str) {
    let version = state.facts.version.clone();
    state.show_note(&format!("gnoma {version}"));
}
