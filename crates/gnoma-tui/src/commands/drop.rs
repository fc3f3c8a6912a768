//! `/drop`: forgets what waits to be sent.

use super::slash::SlashCommandSpec;
use crate::app::State;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "drop",
    aliases: &[],
    arguments: "",
    about: "discard queued messages; they stay in the history",
    run,
};

fn run(state: &mut State, _argument: &str) {
    match state.drop_waiting() {
        0 => state.show_hint("No queued messages"),
        1 => state.show_hint("Discarded 1 queued message"),
        count => state.show_hint(format!("Discarded {count} queued messages")),
    }
}
