//! The session protocol between front ends and the host, over channels or a socket.
//!
//! A host owns sessions; any number of clients attach to any of them. A client sends
//! [`ClientMessage`]s, each a [`Request`] under an id of its own, and gets exactly one [`Reply`] or
//! [`RequestError`] for each. What happens in a session comes as [`Envelope`]s, numbered without gaps
//! within an [`Epoch`]. A client that comes without a known [`Position`], or falls too far behind, gets
//! the session's [`SessionView`], which is the fold of everything up to its `seq`, and goes on from there.

mod client;
mod connection;
mod envelope;
mod error;
mod follow;
mod history_note;
mod memory;
mod message;
mod recent;
mod request;
mod running;
#[cfg(feature = "schema")]
mod schema;
mod shown_progress;
mod spec;
mod tail;
mod task;
mod topic;
mod view;
mod window_use;

pub use self::{
    client::{Client, MAX_MESSAGES, MAX_REQUESTS, Messages, Peer, Requests},
    connection::{ConnectBy, Connection, TypedKey},
    envelope::{Envelope, Epoch, Position},
    error::{RequestError, RequestErrorKind},
    follow::Follower,
    history_note::HistoryNote,
    memory::MemoryRequest,
    message::{Greeting, Hello, ProcessEvent, ServerMessage, common_version},
    recent::Recent,
    request::{
        ChangesSince, ClientMessage, LiveSession, Reply, Request, RequestId, RewindPoint, Setting,
        Switch,
    },
    running::{DraftedCall, Question, RunningCall, RunningTurn},
    spec::{ClientServer, Detach, Environment, Overrides, ServerAddress, SessionSpec, Start},
    tail::TextTail,
    task::{
        TaskReport, TaskRequest, TaskResumeChoice, TaskRunState, TaskStepReport, TaskStepState,
    },
    topic::Topic,
    view::{SessionView, Status},
    window_use::WindowUse,
};

#[cfg(feature = "schema")]
pub use self::schema::protocol_schema;
pub use crate::info::{
    Choice, CommandInfo, FoundKey, FoundProviders, FoundServer, ResumedFrom, SessionInfo,
};

/// The version of the protocol that this program speaks.
pub const VERSION: u32 = 1;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod samples;
