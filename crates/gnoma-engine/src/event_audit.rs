//! What is stored of events beside the conversation, for those who look into what happened.

use gnoma_core::{Event, ModelRef, session::Routing, store::Record};

/// Returns the record of an event for later investigations of what happened; `None` if the event leaves none.
pub(crate) fn note_of(event: &Event) -> Option<Record> {
    let routed = |arm: &ModelRef, why: String| Some(Record::Routed { arm: arm.clone(), why });
    match event {
        Event::RoundStarted { arm, why, .. } | Event::ArmChanged { to: arm, why, .. } => {
            routed(arm, why.clone())
        }
        Event::PermissionAsked { call, .. } => Some(Record::Asked { call: call.id.clone() }),
        Event::PermissionDecided { call, allowed, reason } => {
            Some(Record::Judged { call: call.clone(), allowed: *allowed, reason: reason.clone() })
        }
        Event::Usage { round, .. } => Some(Record::Used(*round)),
        Event::Cost { arm, call_micro_usd, .. } => {
            call_micro_usd.map(|micro_usd| Record::Paid { arm: arm.clone(), micro_usd })
        }
        Event::Checked { arm, by, passed, evidence } => Some(Record::Checked {
            arm: arm.clone(),
            by: by.clone(),
            passed: *passed,
            evidence: evidence.clone(),
        }),
        Event::Routed(routing) => {
            let Routing { arms, kind, strategy, decided_by, why, .. } = routing.as_ref();
            let why = format!("{kind} ({decided_by}), {strategy}: {why}");
            routed(arms.first()?, why)
        }
        Event::Conferred { members, chair, author } => {
            routed(author, describe_panel_decision(members, chair.as_ref()))
        }
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
        | Event::TurnEnded { .. } => None,
    }
}

/// Explains why one of several arms' answers was chosen: which arms answered, and which of them decided.
fn describe_panel_decision(members: &[ModelRef], chair: Option<&ModelRef>) -> String {
    let members: Vec<String> = members.iter().map(ToString::to_string).collect();
    let by = chair.map_or_else(|| "nobody".to_owned(), ToString::to_string);
    format!("{} answered, {by} decided", members.join(", "))
}
