//! Sessions that live in this process, and the clients that see and steer them.
//!
//! [`Host`] owns the sessions and the connections of clients. A session is one task that owns its engine and writes
//! its [`EventLog`]; a connection is one task that carries requests to sessions, and events and replies back.
//! Nothing waits for a client: a slow one just falls behind in the log.

mod actor;
mod actor_continuation;
mod actor_suggestions;
mod actor_tasks;
mod actor_waits;
mod change;
mod child_result;
mod child_start;
mod child_status;
mod children;
mod command;
mod connection;
mod continuation;
mod costs;
mod elfs;
mod engine;
mod handle;
mod history_notes;
mod host;
mod log;
mod notice_queue;
mod own_question;
mod ports;
mod replier;
mod replies;
mod session;
mod session_start;
mod session_tasks;
mod shared;
mod side_fold;
mod spending;
mod step_children;
mod step_fold;
mod task_link;
mod task_run;
mod waits;

pub use self::{
    host::Host,
    log::{Delivery, EventLog, Subscription},
    ports::{
        BackgroundService, Change, ChildOpening, CopyMergeError, JobCounter, MergePreview,
        OpenedSession, Opener, PreparedSession, Services, SessionChangeResult, SessionOpening,
    },
};
