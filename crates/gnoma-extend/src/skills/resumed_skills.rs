//! The skills that were used in a continued conversation, so that their texts survive a summary of it like those of
//! skills used later.

use std::sync::Arc;

use gnoma_core::{Content, Message, Role};
use serde_json::Value;

use super::{
    skill::{Skill, TOOL},
    tool,
    used_skills::UsedSkills,
};

/// The start of the result of a call that an elf has done.
const OF_ELF: &str = "elf `";

/// Takes in the calls that loaded a skill, and the messages of people that hold the text of one. `all`: those
/// there are now.
pub(crate) fn restore_skills<'s>(
    kept: &UsedSkills,
    history: &[Arc<Message>],
    all: &(impl Iterator<Item = &'s Skill> + Clone),
    session: &str,
) {
    let before = std::iter::once(None).chain(history.iter().map(Some));
    for (before, message) in before.zip(history) {
        for content in message.content() {
            match content {
                Content::ToolResult(result) if result.name == TOOL && !result.is_error => {
                    // An elf's report on its work is not the text of a skill.
                    let text = result.joined_text();
                    let name = before.and_then(|it| loaded_skill(it, result.call_id.as_str()));
                    if let Some(name) = name.filter(|_| !text.starts_with(OF_ELF)) {
                        kept.record_use(&name, text);
                    }
                }
                Content::Text(said) if message.role() == Role::User => {
                    for skill in all.clone() {
                        let body = tool::fill_skill_text(skill, "", session);
                        if !body.trim().is_empty() && said.text.contains(body.trim()) {
                            kept.record_use(&skill.name, tool::render_skill(skill, "", session));
                        }
                    }
                }
                _ => (),
            }
        }
    }
}

/// The skill that a call of a message has loaded, and none of its files.
fn loaded_skill(message: &Message, call: &str) -> Option<String> {
    let call = message.tool_calls().find(|it| it.id.as_str() == call)?;
    let arguments: Value = call.arguments.read().ok()?;
    let is_whole = arguments.get("file").is_none_or(Value::is_null);
    let name = arguments.get("name").and_then(Value::as_str)?;
    is_whole.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson, ToolCall, message::ToolResult};
    use serde_json::json;

    use super::*;
    use crate::places::ExtensionSource;

    fn skill(name: &str, body: &str) -> Skill {
        Skill {
            name: name.to_owned(),
            by: ExtensionSource::User,
            path: Default::default(),
            has_folder: false,
            description: String::new(),
            hint: String::new(),
            tools: None,
            model: None,
            is_for_people: true,
            fork: None,
            arguments: Vec::new(),
            body: body.to_owned(),
            unsupported: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn loaded_skills_are_restored_from_a_resumed_session() {
        let call = |name: &str, arguments: serde_json::Value| {
            let arguments = RawJson::from_value(&arguments).unwrap();
            ToolCall::new(CallId::new("a"), name, arguments)
        };
        let turn = |call: ToolCall, text: &str| {
            let result = ToolResult::from_text(&call, text, false);
            let assistant = Message::assistant(vec![Content::ToolCall(call)], None, None).unwrap();
            [assistant, Message::results(vec![result]).unwrap()]
        };
        let said = "`/look` was done by an elf. Its result:\n\nelf `look`: completed\nN0thing";
        let history: Vec<Arc<Message>> = ["Do it w3ll.\n\nARGUMENTS: now", said]
            .map(Message::user_text)
            .into_iter()
            .chain(turn(call(TOOL, json!({"name": "pdf"})), "How to d0 it"))
            .chain(turn(call(TOOL, json!({"name": "x", "file": "a.md"})), "a file"))
            .chain(turn(call("fs.read", json!({"path": "a"})), "other"))
            // Where no elf could be started, and where one was.
            .chain(turn(call(TOOL, json!({"name": "near"})), "Look ar0und"))
            .chain(turn(call(TOOL, json!({"name": "look"})), "elf `look`: completed\nN0thing"))
            .map(Arc::new)
            .collect();
        let fork = |name, body| Skill {
            fork: Some(super::super::SkillFork { agent: None }),
            ..skill(name, body)
        };
        let kept = UsedSkills::default();
        let all = [
            skill("well", "Do it w3ll."),
            skill("no", "No."),
            fork("near", "Look ar0und"),
            fork("look", "Look"),
        ];
        restore_skills(&kept, &history, &all.iter(), "s");
        let texts = kept.retained_texts();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("Look ar0und")), "{texts:?}");
        assert!(texts[0].contains("\"well\"") && texts[1].contains("How to d0 it"), "{texts:?}");
    }
}
