//! `/hooks`: which hooks there are, where they come from, and how they ran last.

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
