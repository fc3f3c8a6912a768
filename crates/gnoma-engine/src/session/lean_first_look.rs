//! The first look of a lean arm, taken for it: what a message names is read before the model is asked.
//!
//! Models with the lean tools answer without reading, whatever their prompt says. The call goes the way of any other: it
//! is judged, shown, stored and answered. Only the decision to make it is not the model's.

use std::{path::Path, sync::Arc};

use futures_util::stream;
use gnoma_core::{
    Content, EventStream, Message, SYSTEM_NOTE, StopReason, StreamEvent, places,
    tool::{Access, Tier, ToolKind, TouchedResource},
};
use gnoma_router::Arm;
use serde_json::{Map, Value};

use super::toolset::Toolset;
use crate::{prompt, turn::Turn};

/// Larger files are for the model to look into: they would fill its window.
const MAX_LOOK_BYTES: u64 = 8 * 1024;
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
    // A session that can start elfs leaves reading to them.
    let starts_elfs = tools.of_kind(tier, ToolKind::StartsSessions).is_some();
    let may_look = arm.tools && turn.may_use_tools() && turn.has_rounds();
    if tier != Tier::Lean || starts_elfs || !may_look {
        return None;
    }
    let (name, argument) = tools.specs(tier).iter().find_map(|spec| {
        let argument = spec.touches.iter().find_map(|touches| match touches {
            TouchedResource::Path(argument) => Some(argument.to_string()),
            TouchedResource::Command(_) | TouchedResource::Action(..) | TouchedResource::Url(_) => {
                None
            }
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

/// Returns the first small file in `folder`, whose links are resolved, that a person names in the newest message; or else
/// the first folder. What hooks and commands add to a message is not what the person says.
fn named_path(history: &[Arc<Message>], folder: &Path) -> Option<String> {
    let last = history.last().filter(|last| prompt::is_from_user(last))?;
    let texts = last.content().iter().filter_map(|part| match part {
        Content::Text(text) if !text.text.starts_with(SYSTEM_NOTE) => text.text.split("```").next(),
        _ => None,
    });
    let is_part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let words = texts.flat_map(|text| text.split(|c| !is_part_of_name(c)));
    // A path that goes up is left to the model, and the dots at its end are no end of a sentence.
    let inside = words.filter(|word| !word.contains(".."));
    let names = inside.map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty());
    let there: Vec<(&str, bool)> = names
        .take(MAX_WORDS_LOOKED_UP)
        .filter_map(|name| {
            // Links are followed, but not out of the folder.
            let path = folder.join(name).canonicalize().ok()?;
            let may_be_read = path.starts_with(folder) && places::find_secret(&path).is_none();
            let found = path.metadata().ok().filter(|_| may_be_read)?;
            let is_small = found.is_file() && found.len() <= MAX_LOOK_BYTES;
            (is_small || found.is_dir()).then_some((name, is_small))
        })
        .collect();
    let file = there.iter().find(|(_, is_file)| *is_file);
    file.or(there.first()).map(|(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn named(folder: &Path, text: &str) -> Option<String> {
        named_path(&[Arc::new(Message::user_text(text))], folder)
    }

    #[test]
    fn path_named_in_a_prompt_is_found_in_the_working_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = &folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        for name in ["src/a.py", ".env", "LICENSE"] {
            fs::write(root.join(name), "1").unwrap();
        }
        fs::write(root.join("large.py"), "1".repeat(10_000)).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        for (text, path) in [
            ("What does `src/a.py` do?", Some("src/a.py")),
            ("Was liegt in src? Und was steht in LICENSE.", Some("LICENSE")),
            ("Which files are in src?", Some("src")),
            ("fix large.py", None),
            ("why is .env not read", None),
            ("why does ../ or /etc or src/../.. fail", None),
            ("what is link or link/hosts", None),
            ("hello", None),
            ("I ran `ls`:\n```\nLICENSE\n```", None),
        ] {
            assert_eq!(named(root, text).as_deref(), path, "{text}");
        }
        assert_eq!(named(root, &prompt::system_note("read src")), None);
        let added = vec![
            Content::from_text("hello"),
            Content::from_text(prompt::system_note("LICENSE changed")),
        ];
        let message = Message::user(added).unwrap();
        assert_eq!(named_path(&[Arc::new(message)], root), None);
    }
}
