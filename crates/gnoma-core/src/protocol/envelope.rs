//! What a host tells its clients: events with their place in a session's log, snapshots, replies.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Reply, RequestError, RequestId, SessionView};
use crate::{
    session::{Event, SessionState},
    store::SessionId,
};

/// One life of a session in one process. A session that is opened again gets another epoch, and its
/// log begins again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// A place in the log of a session: after the event of that number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The life of the session that the number counts in.
    pub epoch: Epoch,
    /// Number of the last event that is known; 0 before the first.
    pub seq: u64,
}

/// An event with its place in the log of its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The session that tells it.
    pub session: SessionId,
    /// The life of the session.
    pub epoch: Epoch,
    /// The session that started this one, where it is a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// Its number, from 1 and without gaps within an epoch.
    pub seq: u64,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    pub event: Event,
}

/// A host's message to one client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// The one answer to a request.
    Reply {
        /// The request.
        id: RequestId,
        /// What came of it.
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

/// The first message of a client behind a socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What a process tells of its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The process ends soon; all sessions are stored.
    Stopping,
}

impl Envelope {
    /// Bytes that the event takes in memory, roughly.
    #[must_use]
    pub fn event_bytes(&self) -> usize {
        event_bytes(&self.event)
    }
}

/// Bytes that an event takes, roughly: its texts, and something for the rest.
pub(super) fn event_bytes(event: &Event) -> usize {
    /// What an event takes beside its texts.
    const REST: usize = 128;
    let texts = match event {
        Event::Text { text }
        | Event::Thinking { text }
        | Event::ToolProgress { text, .. }
        | Event::Notice { text, .. } => text.len(),
        Event::ToolCallDelta { fragment, .. } => fragment.len(),
        Event::Appended(message) => message.content_bytes(),
        Event::ToolEnded { result, diff, .. } => {
            result.content_bytes() + diff.as_ref().map_or(0, String::len)
        }
        Event::PermissionAsked { call, preview, .. } => {
            call.arguments.get().len() + preview.as_ref().map_or(0, String::len)
        }
        Event::ToolStarted { call } => call.arguments.get().len(),
        Event::Compacted { summary, .. } => summary.len(),
        Event::Checked { evidence, .. } => evidence.len(),
        Event::TurnEnded { undelivered, .. } => {
            undelivered.iter().map(|message| message.content_bytes()).sum()
        }
        Event::Routed(routing) => routing.candidates.iter().map(String::len).sum(),
        _ => 0,
    };
    texts + REST
}
