//! `/cache`: what prompt caches saved, and what broke them.

use gnoma_core::protocol::{Request, Topic};

use super::slash::SlashCommandSpec;
use crate::app::{LookUpTarget, State};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "cache",
    aliases: &[],
    arguments: "",
    about: "show the prompt cache: hit rate, savings and what broke it",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.look_up(LookUpTarget::Explanation, Request::Explain(Topic::Cache), "");
}
