//! Earlier turns for a small model: what was said, done and answered, in a few lines before the current message.
//!
//! Such models continue as they began: after a turn that was answered in text, they answer the next one in text,
//! too, whatever it asks for, and they copy from results that are no longer true. With this text, each turn looks
//! like the first one, and files are read again. Pure.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use gnoma_core::{
    CallId, Content, Message, Role, ToolCall, ToolSpec, cut,
    tool::{Access, Touches},
};
use serde_json::Value;

use crate::{
    detect::{asks_only, named_files, wants_change},
    prompt::{self, said},
};

/// Most bytes of an earlier answer that are included.
const MAX_ANSWER_BYTES: usize = 1_500;
/// Most bytes of a command, or of what an edit replaced.
const MAX_PART_BYTES: usize = 100;

/// Where the turn begins that the last message belongs to: at what a person said after an answer.
pub(crate) fn turn_start(messages: &[Arc<Message>]) -> usize {
    let is_answer = |it: &Message| it.role() == Role::Assistant && it.tool_calls().next().is_none();
    let begins = |at: &usize| {
        let before = at.checked_sub(1).and_then(|at| messages.get(at));
        messages.get(*at).is_some_and(|it| said(it)) && before.is_none_or(|it| is_answer(it))
    };
    (0..messages.len()).rev().find(begins).unwrap_or(0)
}

/// What was said at the beginning of a turn, behind the turns before it.
pub(crate) fn with_earlier(
    now: &Message,
    earlier: &[Arc<Message>],
    spec: impl Fn(&str) -> Option<Arc<ToolSpec>>,
) -> Option<Message> {
    let said = now.text_content();
    let is_task = wants_change(&said) && !named_files(&said).is_empty();
    let told = told(earlier, is_task, spec);
    let words = prompt::earlier(&told, &said);
    // In one text: not every server's template takes several.
    let others = now.content().iter().filter(|it| !matches!(it, Content::Text(_))).cloned();
    let content = others.chain([Content::text(words)]).collect();
    if told.is_empty() { None } else { Message::user(content).ok() }
}

/// A line for each message of a person and each answer, with what was done in between. Before a self-contained
/// task, answered questions are left out: a small model would work on them.
fn told(
    earlier: &[Arc<Message>],
    is_task: bool,
    spec: impl Fn(&str) -> Option<Arc<ToolSpec>>,
) -> String {
    let mut out = String::new();
    let mut open: HashMap<&CallId, &ToolCall> = HashMap::new();
    let mut deeds: Vec<String> = Vec::new();
    let mut is_left_out = false;
    for message in earlier {
        open.extend(message.tool_calls().map(|call| (&call.id, call)));
        for result in message.tool_results().filter(|result| !result.is_error) {
            let call = open.remove(&result.call_id);
            let deed = call.and_then(|call| deed(call, spec(&call.name)?.as_ref()));
            deeds.extend(deed.filter(|deed| !deeds.contains(deed)));
        }
        let words = message.text_content();
        let words = words.trim();
        // Writing to a string cannot fail.
        let _written = if said(message) {
            is_left_out = is_task && asks_only(words);
            if is_left_out { Ok(()) } else { writeln!(out, "User: {words}") }
        } else if message.role() == Role::Assistant && !words.is_empty() && !is_left_out {
            let done = deeds.join("; ");
            let done = if done.is_empty() { done } else { format!(" ({done})") };
            deeds.clear();
            writeln!(out, "You{done}: {}", head(words, MAX_ANSWER_BYTES))
        } else {
            Ok(())
        };
    }
    out
}

/// What a call did, in a few words.
fn deed(call: &ToolCall, spec: &ToolSpec) -> Option<String> {
    let arguments: Value = call.arguments.read().ok()?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    spec.touches.iter().find_map(|touches| match touches {
        Touches::Path(name) => {
            let path = text(name)?;
            if spec.access == Access::Read {
                return Some(format!("read {path}"));
            }
            let part = |name: &str| text(name).map(|text| head(text.trim(), MAX_PART_BYTES));
            let how = part("old_string").zip(part("new_string"));
            let how = how.map(|(old, new)| format!(": `{old}` became `{new}`"));
            Some(format!("changed {path}{}", how.unwrap_or_default()))
        }
        Touches::Command(name) => Some(format!("ran `{}`", head(text(name)?, MAX_PART_BYTES))),
        Touches::Url(_) | Touches::Action(..) => None,
    })
}

/// The file that was read or changed last.
pub(crate) fn last_file(messages: &[Arc<Message>]) -> Option<String> {
    let calls = messages.iter().rev().flat_map(|message| message.tool_calls());
    let path = |call: &ToolCall| {
        let arguments: Value = call.arguments.read().ok()?;
        Some(arguments.get("path")?.as_str()?.to_owned())
    };
    calls.filter_map(path).next()
}

fn head(text: &str, most: usize) -> String {
    let head = cut::head(text, most);
    if head.len() < text.len() { format!("{head}…") } else { head.to_owned() }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        RawJson, ToolResult,
        tool::{Tier, ToolKind},
    };

    use super::*;

    fn spec(name: &str, access: Access, touches: Touches) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: RawJson::empty_object(),
            access,
            touches: vec![touches].into(),
            kind: ToolKind::default(),
            tier: Tier::Lean,
        })
    }

    fn specs(name: &str) -> Option<Arc<ToolSpec>> {
        match name {
            "fs.read" => Some(spec(name, Access::Read, Touches::path("path"))),
            "fs.edit" => Some(spec(name, Access::Edit, Touches::path("path"))),
            "bash" => Some(spec(name, Access::Execute, Touches::command("command"))),
            _ => None,
        }
    }

    fn called(name: &str, arguments: &str, is_error: bool) -> Vec<Arc<Message>> {
        let call = ToolCall::new(CallId::new("c"), name, RawJson::parse(arguments).unwrap());
        let result = ToolResult::text(&call, "long output", is_error);
        let call = Message::assistant(vec![Content::ToolCall(call)], None, None).unwrap();
        vec![Arc::new(call), Arc::new(Message::results(vec![result]).unwrap())]
    }

    fn user(text: &str) -> Vec<Arc<Message>> {
        vec![Arc::new(Message::user_text(text))]
    }

    fn answer(text: &str) -> Vec<Arc<Message>> {
        vec![Arc::new(Message::assistant(vec![Content::text(text)], None, None).unwrap())]
    }

    #[test]
    fn earlier_turns_become_a_few_lines_and_the_turn_stays_as_it_is() {
        let edit = r#"{"path":"a.py","old_string":"x + 1","new_string":"x * 2"}"#;
        let messages = [
            user("What is in a.py?"),
            called("fs.read", r#"{"path":"a.py"}"#, false),
            answer("A function."),
            user("Fix it."),
            called("fs.edit", r#"{"path":"a.py","old_string":"y"}"#, true),
            user(&prompt::note("a note")),
            called("fs.edit", edit, false),
            called("bash", r#"{"command":"python3 a.py"}"#, false),
            answer("Fixed."),
            user("Which file was it?"),
            called("fs.read", r#"{"path":"b.py"}"#, false),
        ]
        .concat();
        let start = turn_start(&messages);
        assert_eq!(start, messages.len() - 3);
        let told = with_earlier(&messages[start], &messages[..start], specs).unwrap();
        let expected = "[system] Earlier in this session:\nUser: What is in a.py?\nYou (read a.py): \
             A function.\nUser: Fix it.\nYou (changed a.py: `x + 1` became `x * 2`; ran `python3 a.py`): \
             Fixed.\n\n[system] Now the user says:\nWhich file was it?";
        assert_eq!(told.text_content(), expected);
        assert_eq!(last_file(&messages).as_deref(), Some("b.py"));
    }

    #[test]
    fn a_task_that_stands_for_itself_is_not_told_of_answered_questions() {
        let messages = [
            user("Always indent with tabs."),
            answer("Noted."),
            user("What is GREETING in a.py?"),
            called("fs.read", r#"{"path":"a.py"}"#, false),
            answer("It is Hi."),
        ]
        .concat();
        let told = |now: &str| with_earlier(&Message::user_text(now), &messages, specs).unwrap();
        let task = told("greet() in a.py fails. Fix it.").text_content();
        assert!(task.contains("tabs") && !task.contains("GREETING"), "{task}");
        assert!(told("Fix it.").text_content().contains("GREETING"));
    }

    #[test]
    fn the_first_turn_has_nothing_before_it() {
        let messages = [user("Fix a.py."), called("fs.read", r#"{"path":"a.py"}"#, false)].concat();
        assert_eq!(turn_start(&messages), 0);
        assert!(with_earlier(&messages[0], &[], specs).is_none());
        assert_eq!((turn_start(&[]), last_file(&[])), (0, None));
    }

    /// What is said while tools run belongs to the turn that runs.
    #[test]
    fn what_is_said_in_between_begins_no_turn() {
        let messages =
            [user("Fix a.py."), called("fs.read", r#"{"path":"a.py"}"#, false), user("and b.py")]
                .concat();
        assert_eq!(turn_start(&messages), 0);
    }
}
