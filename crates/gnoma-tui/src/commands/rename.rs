//! `/rename`: gives the session another title.

use gnoma_core::protocol::Request;

use super::slash::SlashCommandSpec;
use crate::{app::State, ask::Purpose};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "rename",
    aliases: &["title"],
    arguments: "[title]",
    about: "give this session a title",
    run,
};

fn run(state: &mut State, argument: &str) {
    if argument.is_empty() {
        return state.show_hint("Write the title behind it: /rename TITLE");
    }
    state.send_request(Request::Rename { title: argument.to_owned() }, Purpose::Rename);
}
