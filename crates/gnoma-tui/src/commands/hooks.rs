//! `/hooks`: the hooks, where they come from, and their last runs.

use gnoma_core::protocol::{Request, Topic};

use super::slash::Slash;
use crate::app::{Sought, State};

pub(super) const COMMAND: Slash = Slash {
    name: "hooks",
    aliases: &[],
    arguments: "",
    about: "list hooks and their last runs",
    run: |state: &mut State, _| {
        state.look_up(Sought::Explanation, Request::Explain(Topic::Hooks), "");
    },
};
