//! The first look of a small model, taken for it: files that a person names, or else the folder or the one
//! file that the question is about, are read before it is asked.
//!
//! Such models answer without reading, or edit what they guess. The call goes the way of any other: it is
//! judged, shown, stored and answered; only that it was to be made, the model was not asked.

use std::path::Path;

use futures_util::stream;
use gnoma_core::{
    EventStream, StopReason, StreamEvent,
    tool::{Access, Tier, ToolKind, Touches},
};
use serde_json::json;

use super::toolset::Toolset;
use crate::{arm::Arm, around, turn::Turn};

/// An answer that reads the next of the files that were named, if the model is a small one.
pub(super) fn first_look(
    tools: &Toolset,
    turn: &mut Turn,
    arm: &Arm,
    cwd: &Path,
) -> Option<EventStream> {
    let tier = arm.tier();
    if tier != Tier::Lean || !arm.tools || !turn.may_use_tools() || !turn.has_rounds() {
        return None;
    }
    // Who gives work away lets others look.
    if tools.of_kind(tier, ToolKind::StartsSessions).is_some() {
        return None;
    }
    let (tool, argument) = tools.specs(tier).iter().find_map(|spec| {
        let argument = spec.touches.iter().find_map(|touches| match touches {
            Touches::Path(argument) => Some(argument.to_string()),
            Touches::Command(_) | Touches::Action(..) | Touches::Url(_) => None,
        });
        (spec.access == Access::Read).then_some((spec.name.clone(), argument?))
    })?;
    let is_there = |path: &str| around::is_small_file(&cwd.join(path));
    let is_folder = |path: &str| around::is_folder(&cwd.join(path));
    let path = turn.looks_at(is_there, is_folder, |text| around::about(cwd, text))?;
    turn.answered_by(arm.name(), true);
    let fragment = json!({ argument: path }).to_string();
    let events = [
        StreamEvent::ToolCallStart { slot: 0, id: "look".into(), name: tool },
        StreamEvent::ToolCallDelta { slot: 0, fragment },
        StreamEvent::Stop(StopReason::ToolUse),
    ];
    Some(Box::pin(stream::iter(events.map(Ok))))
}
