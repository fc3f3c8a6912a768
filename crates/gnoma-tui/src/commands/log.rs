//! `/log`: where the debug log is.

use super::slash::SlashCommandSpec;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "log",
    aliases: &[],
    arguments: "",
    about: "show where the debug log is, or how to write one",
    run: |state, _| state.show_debug_log(),
};
