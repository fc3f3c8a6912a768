//! What a small model is asked where gnoma has gathered all that it takes: the files and the task in one message,
//! without tools. It answers a question from them, or writes the file that changes anew, whole, in a fenced
//! block, which becomes a call like any other.
//!
//! Such models know what to change and fail at the form: search texts that are not in the file, arguments that do
//! not fit, calls where words are wanted. Everything is found in the messages of the turn; once something was done
//! in another way, or has failed three times, they get their tools. Pure.

mod block;
mod hunk;
mod lines;
mod made;
mod plan;
mod words;
mod writers;

pub(crate) use self::{
    block::{blocks, opens},
    lines::with_line,
    made::{arguments, refusal, written},
    plan::{Direct, DirectStep, LookedAt},
    words::request,
    writers::Writers,
};
