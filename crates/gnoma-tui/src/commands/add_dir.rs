//! `/add-dir`: lets the session work in one more folder.

use gnoma_core::protocol::{Request, Switch};

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "add-dir",
    aliases: &["add-folder"],
    arguments: "FOLDER",
    about: "work in one more folder, as with `gnoma --add-dir`",
    run,
};

fn run(state: &mut State, argument: &str) {
    if argument.is_empty() {
        return state.show_hint("Write the folder behind it: /add-dir FOLDER");
    }
    state.switch_session(Request::Switch(Switch::Folder(argument.into())));
}
