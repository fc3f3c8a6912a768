//! `/permission`: how much is asked.

use gnoma_core::session::PermissionMode;

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, State, describe_mode},
    picker::Row,
};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "permission",
    aliases: &["perm", "mode", "permissions"],
    arguments: "[mode]",
    about: "choose the permission mode",
    run,
};

fn run(state: &mut State, argument: &str) {
    if argument.is_empty() {
        let now = state.facts.mode;
        let row = |mode: PermissionMode| {
            (
                Row::new(mode.label(), describe_mode(mode)).with_current(mode == now),
                LayerChoice::Mode(mode),
            )
        };
        return state.open_picker("Permission mode", PermissionMode::ALL.map(row).into(), "");
    }
    match argument.parse() {
        Ok(mode) => state.choose_mode(mode),
        Err(why) => state.show_hint(why.to_string()),
    }
}
