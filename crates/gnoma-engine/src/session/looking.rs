//! The first look of a lean arm, taken for it: what a message names is read before the model is asked.
//!
//! Models with the lean tools answer without reading, in whatever words they are told not to. The call goes the way of
//! any other: it is judged, shown, stored and answered; only that it was to be made, the model was not asked.

use std::{path::Path, sync::Arc};

use futures_util::stream;
use gnoma_core::{
    EventStream, Message, Role, StopReason, StreamEvent,
    tool::{Access, Tier, ToolKind, Touches},
};
use serde_json::{Map, Value};

use super::toolset::Toolset;
use crate::{arm::Arm, turn::Turn};

/// Words of a message that are looked up in the folder.
const MAX_WORDS_LOOKED_UP: usize = 200;

/// Returns an answer that reads what the newest message names, if the arm is a lean one.
pub(super) fn first_look(
    tools: &Toolset,
    turn: &Turn,
    arm: &Arm,
    folder: &Path,
) -> Option<EventStream> {
    let tier = arm.tier();
    // Who gives work away lets others look.
    let gives_away = tools.of_kind(tier, ToolKind::StartsSessions).is_some();
    if tier != Tier::Lean || gives_away || !arm.tools || !turn.may_use_tools() {
        return None;
    }
    let (name, argument) = tools.specs(tier).iter().find_map(|spec| {
        let argument = spec.touches.iter().find_map(|touches| match touches {
            Touches::Path(argument) => Some(argument.to_string()),
            Touches::Command(_) | Touches::Action(..) | Touches::Url(_) => None,
        });
        (spec.access == Access::Read).then_some((spec.name.clone(), argument?))
    })?;
    let path = named_path(turn.history(), folder)?;
    let fragment = Value::Object(Map::from_iter([(argument, path.into())])).to_string();
    let events = [
        StreamEvent::ToolCallStart { slot: 0, id: "look".into(), name },
        StreamEvent::ToolCallDelta { slot: 0, fragment },
        StreamEvent::Stop(StopReason::ToolUse),
    ];
    Some(Box::pin(stream::iter(events.map(Ok))))
}

/// Returns the first file that the newest message names, if it is a person's; or else the first folder.
fn named_path(history: &[Arc<Message>], folder: &Path) -> Option<String> {
    let last = history.last().filter(|last| last.role() == Role::User)?;
    let is_part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let text = last.text_content();
    let words = text.split(|c| !is_part_of_name(c)).map(|word| word.trim_end_matches('.'));
    let names = words.filter(|word| !word.is_empty() && !word.starts_with(['/', '-']));
    let there: Vec<&str> =
        names.take(MAX_WORDS_LOOKED_UP).filter(|name| folder.join(name).exists()).collect();
    let file = there.iter().find(|name| folder.join(name).is_file());
    file.or(there.first()).map(ToString::to_string)
}
