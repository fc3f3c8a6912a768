//! `/elfs`: the elfs of the session, how they are, a look at one, and how one is stopped.

use gnoma_core::protocol::{Request, Topic};

use super::slash::SlashCommandSpec;
use crate::app::{LookUpTarget, State};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "elfs",
    aliases: &[],
    arguments: "[NAME|back|cancel NAME]",
    about: "show the elfs at work, watch one, or stop one",
    run,
};

fn run(state: &mut State, argument: &str) {
    let request = match argument.trim().split_once(' ').unwrap_or((argument.trim(), "")) {
        ("", _) => Request::Explain(Topic::Elfs),
        ("cancel", name) if !name.trim().is_empty() => {
            Request::CancelElf { name: name.trim().to_owned() }
        }
        ("back", _) => return state.watch_elf(""),
        (name, _) => return state.watch_elf(name),
    };
    state.look_up(LookUpTarget::Explanation, request, "");
}
