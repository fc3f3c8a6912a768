//! Requests that a server refused for something that can be left out or lowered.
//!
//! A server that says clearly what it does not take ([`read`]) is asked again without it ([`apply`]). What it
//! said holds for the conversation ([`memory`]), so that it is not refused anew in each round. Never left
//! out: that nothing is stored, the limit of an answer, all tools where only one of them was meant.

mod apply;
mod change;
mod memory;
mod pictures;
mod read;
mod refusal_phrases;
mod refused_tool;
mod room;
mod tool_trials;

pub(crate) use self::{
    apply::{apply_changes, parse_fields, prompt_bytes, rewrite_body},
    change::{Adaptation, merge_change},
    memory::AdaptationMemory,
    pictures::{MAX_PICTURE_TRIALS, collect_pictures},
    read::{RefusedRequest, foreign_tools, infer_adaptation},
    tool_trials::MAX_TRIALS,
};
