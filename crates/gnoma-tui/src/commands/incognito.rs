//! `/incognito`: whether anything is stored.

use gnoma_core::protocol::{Request, Switch};

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "incognito",
    aliases: &[],
    arguments: "",
    about: "turn incognito on or off: nothing is saved",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.switch_session(Request::Switch(Switch::Incognito(!state.facts.incognito)));
}
