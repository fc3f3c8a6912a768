//! `/diff`: what the session changed in files.

use gnoma_core::protocol::Request;

use super::slash::Slash;
use crate::{
    app::{Sought, State},
    diff,
};

/// Lines that are shown.
const MAX_LINES: usize = 2_000;

pub(super) const COMMAND: Slash =
    Slash { name: "diff", aliases: &[], arguments: "", about: "show changed files", run };

fn run(state: &mut State, _argument: &str) {
    state.look_up(Sought::Changes, Request::Changes, "");
}

/// Shows a diff of changed files.
pub(super) fn show(state: &mut State, diff: &str) {
    match diff.trim() {
        "" => state.note("No files changed"),
        // A sentence says why there is none.
        text if !text.contains("@@ ") && !text.contains("+++ ") => state.note(text),
        _ => {
            let lines = diff::named(diff, state.size.width, MAX_LINES);
            state.say(lines);
        }
    }
}
