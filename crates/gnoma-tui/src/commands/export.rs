//! `/export`: writes the conversation to a file.

use super::slash::Slash;
use crate::app::State;

pub(super) const COMMAND: Slash = Slash {
    name: "export",
    aliases: &[],
    arguments: "[path]",
    about: "write the conversation to a file",
    run,
};

fn run(state: &mut State, argument: &str) {
    let outcome = state.desk.export(argument);
    state.report(outcome);
}
