//! Messages of the session protocol: events, snapshots, replies, and the handshake of a socket.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Envelope, LiveSession, Reply, RequestError, RequestId, SessionView};
use crate::{session::SessionState, store::SessionId};

/// A host's message to one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// The one answer to a request.
    Reply {
        /// The request.
        id: RequestId,
        /// Its outcome.
        result: Result<Reply, RequestError>,
    },
    /// Something happened in a session that the client is attached to.
    Event(Arc<Envelope>),
    /// The state of a session, in place of all events up to it: at the beginning, after another
    /// epoch has begun, and where the client read too slowly for the log.
    Snapshot(Box<SessionView>),
    /// Something happened to a session of the process, attached or not. Only for clients that watch.
    Process(ProcessEvent),
}

impl ServerMessage {
    /// Reads a message. The reader is compiled here, once, and not in each crate that calls it.
    ///
    /// # Errors
    /// The text is not JSON, or something else.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        crate::json::from_str(text)
    }
}

/// The first message of a client behind a socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub version: u32,
    /// The program and its version, for people.
    pub program: String,
    /// Names the client over all its connections, so that a request that it sends again after a
    /// broken one has no second effect. Nobody else can guess it.
    pub client: String,
}

/// The first message of a host to a client behind a socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Greeting {
    /// Requests may follow.
    Welcome {
        /// The version that both speak.
        version: u32,
        /// The program and its version, for people.
        program: String,
        /// Its process id.
        pid: u32,
    },
    /// The connection is closed.
    Refused(RequestError),
}

/// The version that two programs speak to each other: the older one's, where they are at most one
/// apart.
#[must_use]
pub fn common_version(ours: u32, theirs: u32) -> Option<u32> {
    (ours.abs_diff(theirs) <= 1).then_some(ours.min(theirs)).filter(|version| *version > 0)
}

/// What a process reports about its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessEvent {
    /// A session was opened.
    Opened {
        /// The session.
        session: SessionId,
    },
    /// A session began or ended a turn, or waits for a person.
    Changed {
        /// The session.
        session: SessionId,
        /// Whether a turn runs.
        state: SessionState,
        /// Questions that wait for a person.
        questions: usize,
    },
    /// A session has ended.
    Closed {
        /// The session.
        session: SessionId,
    },
    /// So much happened while the client did not read that some of it is not told: how all sessions
    /// are, in place of it. A session that is not among them has ended.
    Lagged {
        /// The sessions there are.
        sessions: Vec<LiveSession>,
    },
    /// The process ends soon; all sessions are stored.
    Stopping,
}
