//! The last events of a session, for clients that read too slowly for its log.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Envelope, envelope::event_bytes};
use crate::session::Event;

/// Most events that are kept.
const MAX_EVENTS: usize = 64;
/// Most bytes of them, roughly.
const MAX_BYTES: usize = 64 << 10;

/// Something that happened, with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recent {
    /// Its number in the log.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    pub event: Event,
}

/// Adds what happened, unless the view has it elsewhere, and lets go of the oldest.
pub(super) fn push_recent(recent: &mut VecDeque<Recent>, envelope: &Envelope) {
    if !is_kept(&envelope.event) || envelope.event_bytes() > MAX_BYTES {
        return;
    }
    let Envelope { seq, at_ms, event, .. } = envelope;
    recent.push_back(Recent { seq: *seq, at_ms: *at_ms, event: event.clone() });
    let mut bytes: usize = recent.iter().map(|recent| event_bytes(&recent.event)).sum();
    while recent.len() > MAX_EVENTS || bytes > MAX_BYTES {
        let Some(oldest) = recent.pop_front() else { break };
        bytes -= event_bytes(&oldest.event);
    }
}

/// Whether an event says something that the rest of the view does not.
fn is_kept(event: &Event) -> bool {
    match event {
        Event::Text { .. }
        | Event::Thinking { .. }
        | Event::ToolCallDrafted { .. }
        | Event::ToolCallDelta { .. }
        | Event::ToolProgress { .. }
        | Event::ToolStarted { .. }
        | Event::PermissionAsked { .. }
        | Event::Queued { .. }
        | Event::Started { .. }
        | Event::Info(_)
        | Event::Models { .. }
        | Event::ModeChanged { .. }
        | Event::ThinkingChanged { .. }
        | Event::PlanChanged { .. }
        | Event::State(_)
        | Event::Waiting { .. }
        | Event::Context(_)
        | Event::Unknown => false,
        Event::RoundStarted { .. }
        | Event::Routed(_)
        | Event::ArmChanged { .. }
        | Event::Conferred { .. }
        | Event::Checking { .. }
        | Event::Checked { .. }
        | Event::Cost { .. }
        | Event::Compacted { .. }
        | Event::Uncompacted { .. }
        | Event::Appended(_)
        | Event::PermissionDecided { .. }
        | Event::ToolEnded { .. }
        | Event::Usage { .. }
        | Event::Retrying { .. }
        | Event::Continuing { .. }
        | Event::Notice { .. }
        | Event::TurnEnded { .. } => true,
    }
}
