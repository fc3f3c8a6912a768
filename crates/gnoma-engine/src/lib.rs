//! Decides what happens next in a session.
//!
//! [`turn`] is the machine of a session, which has two smaller ones: [`call`] for a call to a model, with all attempts at
//! it, and [`compaction`]. Inputs in, effects out, without await, clock, disk or network. [`session`] is
//! the driver that performs the effects. The rest are decisions that the machine needs: [`detect`] loops,
//! [`repair`] arguments, pass calls through the [`gate`], write the [`prompt`], choose the arm
//! ([`routing`]).
//!
//! The engine does not know providers, tools or stores: it gets them as ports of `gnoma-core`.

pub mod answer_form;
mod call;
mod checkpoint;
mod compact;
mod compaction;
mod connections;
pub mod context;
mod conversation;
mod conversation_plan;
pub mod detect;
#[cfg(test)]
mod dice;
mod effect;
mod event_audit;
pub mod gate;
pub mod gate_place;
mod large_results;
mod last_model_request;
mod limits;
mod persistence;
pub mod persistence_options;
mod processes;
pub mod prompt;
mod record;
pub mod repair;
pub mod resume;
pub mod rights;
pub mod routing;
pub mod session;
mod session_notices;
mod summary_input;
pub mod tokens;
mod turn;
mod turn_context;

pub use crate::{
    answer_form::AnswerForm,
    connections::connect_arm,
    gate_place::GatePlace,
    last_model_request::LastRequest,
    limits::Limits,
    persistence_options::{CheckpointFailurePolicy, PersistenceOptions},
    rights::Rights,
    routing::Routes,
    session::{
        CheckpointReadiness, Handle, MissingFilesError, Options, ProjectCheckRunner, Session,
        ToolUpdates,
    },
};
