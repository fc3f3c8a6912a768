//! Drives a turn: performs its effects and reports the results.
//!
//! One task owns everything that changes. Front ends hold a [`Handle`]: commands go in, events come out, both over
//! bounded channels, so a front end that does not read slows the model's stream down instead of filling memory.
//! Dropping the handle stops the session and everything that it started.
//!
//! `turn` decides what happens next, and `routing` which model is called. Each file here performs one kind of
//! effect.

mod additions;
mod call_failures;
mod call_judgement;
mod call_payment;
mod call_reservation;
mod call_runs;
mod compaction_extras;
mod event_emission;
mod extension_calls;
mod handle;
mod lean_first_look;
mod model_calls;
mod model_port;
mod panel_runs;
mod paths;
mod pending;
mod room;
mod router;
mod routing;
mod session_loop;
mod side_answer;
mod side_model;
mod side_steps;
mod silence;
mod spending;
mod state;
mod summary_requests;
mod thinking;
mod tool_questions;
mod toolset;
mod verdicts;
mod window_fullness;
mod work_checks;

pub use self::{
    handle::{
        CheckpointReadiness, Handle, MissingFilesError, Options, ProjectCheckRunner, ToolUpdates,
    },
    state::Session,
};
