//! Notes beside the messages of a conversation: times, costs, routing and rewinds.

use serde::{Deserialize, Serialize};

use super::envelope::event_bytes;
use crate::session::Event;

/// Something that happened in a conversation, with its place between the messages: a turn that ended, its cost, why a model
/// was chosen, what a call changed and how long it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryNote {
    /// Number of the message after which it happened, from 0.
    pub after: u64,
    /// Its number in the log; 0 for what happened before the session's epoch began.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened. The end of a call comes without arguments and result, which the messages have.
    pub event: Event,
}

impl HistoryNote {
    /// Bytes that the event takes in memory, roughly.
    #[must_use]
    pub fn event_bytes(&self) -> usize {
        event_bytes(&self.event)
    }
}
