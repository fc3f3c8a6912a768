//! `/status`: all that is known about the session.

use super::slash::SlashCommandSpec;
use crate::{app::State, status};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "status",
    aliases: &[],
    arguments: "",
    about: "show the session's state",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let lines = status::render_details(
        &state.facts,
        &state.counts,
        state.session.view.session.as_str(),
        state.routes.why.as_deref(),
    );
    state.say_titled("Session", lines);
}
