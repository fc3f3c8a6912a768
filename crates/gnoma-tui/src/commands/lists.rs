//! `/agents`, `/skills`, `/plugins`: what the session has besides its tools.

use gnoma_core::protocol::{Request, Topic};

use super::slash::SlashCommandSpec;
use crate::app::{LookUpTarget, State};

pub(super) const AGENTS: SlashCommandSpec = SlashCommandSpec {
    name: "agents",
    aliases: &[],
    arguments: "",
    about: "list the agents that elfs can be",
    run: |state, _| look_up(state, Topic::Agents),
};

pub(super) const SKILLS: SlashCommandSpec = SlashCommandSpec {
    name: "skills",
    aliases: &[],
    arguments: "",
    about: "list the skills, and where they are from",
    run: |state, _| look_up(state, Topic::Skills),
};

pub(super) const PLUGINS: SlashCommandSpec = SlashCommandSpec {
    name: "plugins",
    aliases: &["plugin"],
    arguments: "",
    about: "list the plugins, and whether they are loaded",
    run: |state, _| look_up(state, Topic::Plugins),
};

fn look_up(state: &mut State, topic: Topic) {
    state.look_up(LookUpTarget::Explanation, Request::Explain(topic), "");
}
