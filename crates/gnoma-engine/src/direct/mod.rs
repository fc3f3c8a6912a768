//! Requests to a small model when gnoma has gathered everything that it needs: the files and the task in one
//! message, without tools. The model answers a question from them, or rewrites the file to change in a fenced
//! block, which becomes a call like any other.
//!
//! Such models know what to change but fail at the form: search texts that are not in the file, arguments that do
//! not fit, calls where text is expected. Everything is derived from the messages of the turn. Once something was
//! done in another way, or has failed three times, the model gets its tools. Pure.

mod block;
mod hunk;
mod made;
mod plan;
mod words;
mod writers;

pub(crate) use self::{
    block::{blocks, opens},
    made::{arguments, refusal, written},
    plan::{Direct, DirectStep, LookedAt},
    words::request,
    writers::Writers,
};
