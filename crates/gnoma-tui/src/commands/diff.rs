//! `/diff`: what the session changed in files.

use gnoma_core::protocol::Request;

use super::slash::SlashCommandSpec;
use crate::{
    app::{LookUpTarget, State},
    diff,
};

/// Lines that are shown.
const MAX_LINES: usize = 2_000;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "diff",
    aliases: &[],
    arguments: "",
    about: "show changed files",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.look_up(LookUpTarget::Changes, Request::Changes, "");
}

/// Shows a diff of changed files.
pub(super) fn show_diff(state: &mut State, diff: &str) {
    match diff.trim() {
        "" => state.append_note("No files changed"),
        // A sentence says why there is none.
        text if !text.contains("@@ ") && !text.contains("+++ ") => state.append_note(text),
        _ => {
            let lines = diff::render_diff_with_names(diff, state.size.width, MAX_LINES);
            state.show_lines(lines);
        }
    }
}
