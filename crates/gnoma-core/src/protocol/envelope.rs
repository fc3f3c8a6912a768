//! An event with its place in the log of its session.

use serde::{Deserialize, Serialize};

use crate::{message::Content, session::Event, store::SessionId};

/// One life of a session in one process. A session that is opened again gets another epoch, and its
/// log begins again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// A place in the log of a session: after the event of that number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Position {
    /// The life of the session that the number counts in.
    pub epoch: Epoch,
    /// Number of the last event that is known; 0 before the first.
    pub seq: u64,
}

/// An event with its place in the log of its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Envelope {
    /// The session that tells it.
    pub session: SessionId,
    /// The life of the session.
    pub epoch: Epoch,
    /// The session that started this one, if it is a child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// Its number, from 1 and without gaps within an epoch.
    pub seq: u64,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    pub event: Event,
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
        Event::PermissionAsked { call, preview, parts, notable, dangers, .. } => {
            let parts: usize = parts.iter().map(String::len).sum();
            let notable: usize = notable.iter().map(|it| it.name.len() + it.what.len()).sum();
            let dangers: usize = dangers.iter().map(String::len).sum();
            let preview = preview.as_ref().map_or(0, String::len);
            call.arguments.get().len() + preview + parts + notable + dangers
        }
        Event::ToolStarted { call } => call.arguments.get().len(),
        Event::Compacted { summary, .. } | Event::Uncompacted { summary: Some(summary), .. } => {
            summary.len()
        }
        Event::Checked { evidence, .. } => evidence.len(),
        Event::TurnEnded { undelivered, .. } => {
            undelivered.iter().map(|message| message.content_bytes()).sum()
        }
        Event::Queued { queue } => queue.iter().flatten().map(content_bytes).sum(),
        Event::Started { cwd, tools, .. } => {
            cwd.len() + tools.iter().map(String::len).sum::<usize>()
        }
        Event::Models { models } => models.iter().map(|it| it.name.len() + it.about.len()).sum(),
        Event::Routed(routing) => routing.candidates.iter().map(String::len).sum(),
        _ => 0,
    };
    texts + REST
}

/// Bytes that a part of a message that a person sent takes.
fn content_bytes(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.text.len(),
        Content::Image(image) => image.base64.len(),
        Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => 0,
    }
}
