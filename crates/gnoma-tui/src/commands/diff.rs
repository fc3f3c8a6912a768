//! `/diff`: what the session changed in files.

use super::slash::Slash;
use crate::{app::State, diff};

/// Lines that are shown.
const MAX_LINES: usize = 2_000;

pub(super) const COMMAND: Slash = Slash {
    name: "diff",
    aliases: &[],
    arguments: "",
    about: "show what was changed in files",
    run,
};

fn run(state: &mut State, _argument: &str) {
    match state.desk.changes() {
        Ok(diff) if diff.trim().is_empty() => state.note("no file was changed"),
        // A sentence says why there is none.
        Ok(text) if !text.contains("@@ ") => state.note(text.trim()),
        Ok(diff) => {
            let lines = diff::named(&diff, state.size.width, MAX_LINES);
            state.say(lines);
        }
        Err(why) => state.warn(&why),
    }
}
