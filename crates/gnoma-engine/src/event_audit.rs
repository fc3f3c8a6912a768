//! What is stored of events beside the conversation, for those who look into what happened.

use gnoma_core::{Event, ModelRef, session::Routing, store::Record};

/// Returns the record of an event for later investigations of what happened; `None` if the event leaves none.
pub(crate) fn note_of(event: &Event) -> Option<Record> {
    Some(match event {
        Event::RoundStarted { arm, why, .. } | Event::ArmChanged { to: arm, why, .. } => {
            route_record(arm, why.clone())
        }
        Event::PermissionAsked { call, .. } => Record::Asked { call: call.id.clone() },
        Event::PermissionDecided { call, allowed, reason } => {
            Record::Judged { call: call.clone(), allowed: *allowed, reason: reason.clone() }
        }
        Event::Usage { round, .. } => Record::Used(*round),
        Event::Cost { arm, call_micro_usd, .. } => {
            Record::Paid { arm: arm.clone(), micro_usd: (*call_micro_usd)? }
        }
        Event::Checked { arm, by, passed, evidence } => check_record(arm, by, *passed, evidence),
        Event::Routed(routing) => routing_record(routing)?,
        Event::Conferred { members, chair, author } => note_panel(members, chair.as_ref(), author),
        Event::Started { .. }
        | Event::State(_)
        | Event::ModeChanged { .. }
        | Event::ThinkingChanged { .. }
        | Event::PlanChanged { .. }
        | Event::Info(_)
        | Event::Models { .. }
        | Event::Queued { .. }
        | Event::ToolCallDelta { .. }
        | Event::Unknown
        | Event::Checking { .. }
        | Event::Compacted { .. }
        | Event::Uncompacted { .. }
        | Event::Context(_)
        | Event::Text { .. }
        | Event::Thinking { .. }
        | Event::ToolCallDrafted { .. }
        | Event::Appended(_)
        | Event::ToolStarted { .. }
        | Event::ToolProgress { .. }
        // It depends on the other calls of the answer.
        | Event::ToolEnded { .. }
        | Event::Retrying { .. }
        | Event::Waiting { .. }
        | Event::Continuing { .. }
        | Event::Notice { .. }
        | Event::TurnEnded { .. } => return None,
    })
}

fn route_record(arm: &ModelRef, why: String) -> Record {
    Record::Routed { arm: arm.clone(), why }
}

/// Returns the record of how a turn was routed; `None` if no arm was chosen.
fn routing_record(routing: &Routing) -> Option<Record> {
    let Routing { arms, kind, strategy, decided_by, why, .. } = routing;
    Some(route_record(arms.first()?, format!("{kind} ({decided_by}), {strategy}: {why}")))
}

fn check_record(arm: &ModelRef, by: &str, passed: bool, evidence: &str) -> Record {
    let (by, evidence) = (by.to_owned(), evidence.to_owned());
    Record::Checked { arm: arm.clone(), by, passed, evidence }
}

/// Returns the record of the answer that was chosen of several arms': which arms answered, and which of them decided.
fn note_panel(members: &[ModelRef], chair: Option<&ModelRef>, author: &ModelRef) -> Record {
    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
    let by = chair.map_or_else(|| "nobody".to_owned(), ToString::to_string);
    route_record(author, format!("{} answered, {by} decided", members.join(", ")))
}
