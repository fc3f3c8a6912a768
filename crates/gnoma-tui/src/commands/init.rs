//! `/init`: has the model write down what an assistant should know about the project.

use super::slash::Slash;
use crate::{app::State, composer::Draft};

pub(super) const COMMAND: Slash = Slash {
    name: "init",
    aliases: &[],
    arguments: "[what matters]",
    about: "write AGENTS.md, the project's notes for assistants",
    run,
};

const TASK: &str = "Write AGENTS.md at the root of this project: what an assistant who has never \
    seen it has to know to work in it. Look before you write: the README, the build files, the \
    settings of checks and of CI, how the folders are laid out and how the tests are made. If \
    AGENTS.md, CLAUDE.md or notes for other assistants are there already, keep what is true of \
    them and mend what is not.

It holds, and no more than 100 lines:
- what the project is, in a sentence or two
- the commands that build it, check it, run it, run all tests and run one test
- where things are: the folders and files that matter, and what depends on what
- conventions that cannot be guessed from a single file, and traps

Only what you have seen in this project: no general advice, no lists of every file. A command \
    that you have not seen written down or run is left out.";

fn run(state: &mut State, argument: &str) {
    if !state.is_idle() {
        return state.hint("Turn running. Press Esc to stop it first");
    }
    let mut text = TASK.to_owned();
    if !argument.is_empty() {
        text.push_str("\n\nThis matters most: ");
        text.push_str(argument);
    }
    state.send(Draft { text, ..Draft::default() });
}
