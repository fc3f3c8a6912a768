//! `/hooks`: the hooks, where they come from, and their last runs.

use gnoma_core::protocol::{Request, Topic};

use super::slash::SlashCommandSpec;
use crate::app::{LookUpTarget, State};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "hooks",
    aliases: &[],
    arguments: "",
    about: "list hooks and their last runs",
    run: |state: &mut State, _| {
        state.look_up(LookUpTarget::Explanation, Request::Explain(Topic::Hooks), "");
    },
};
