//! `/drop`: forgets what waits to be sent.

use super::slash::Slash;
use crate::app::State;

pub(super) const COMMAND: Slash = Slash {
    name: "drop",
    aliases: &[],
    arguments: "",
    about: "forget what waits to be sent; history keeps it",
    run,
};

fn run(state: &mut State, _argument: &str) {
    match state.drop_waiting() {
        0 => state.hint("nothing waits to be sent"),
        1 => state.hint("one message is forgotten"),
        count => state.hint(format!("{count} messages are forgotten")),
    }
}
