//! The JSON in what a hook printed: alone, among other output, or broken. Pure.

use gnoma_core::json::from_hand;
use serde_json::{Deserializer, Value};

/// Places that are tried for the beginning of an object.
const MAX_STARTS: usize = 200;
/// Objects that are taken from other output.
const MAX_OBJECTS: usize = 16;
/// Objects and lists inside each other that are searched for a denial.
const MAX_DEPTH: usize = 4;
/// Fields by which an object is known as an answer.
const FIELDS: [&str; 8] = [
    "action",
    "continue",
    "decision",
    "hookSpecificOutput",
    "permissionDecision",
    "stopReason",
    "systemMessage",
    "transformed",
];
/// Fields that decide, and what they say to forbid.
const DECIDING: [&str; 4] = ["permissionDecision", "decision", "behavior", "action"];
const FORBIDDING: [&str; 10] = [
    "deny", "denied", "block", "blocked", "reject", "rejected", "refuse", "forbid", "disallow",
    "cancel",
];
/// Fields of an answer whose `false` forbids.
const PERMITTING: [&str; 5] = ["allow", "allowed", "approve", "approved", "permitted"];
/// Longest answer of one word, in bytes.
const MAX_WORD_BYTES: usize = 16;

/// The output of a hook.
#[derive(Debug, PartialEq)]
pub(super) enum HookOutput {
    /// Text without any answer in it.
    Text,
    /// One value and nothing else.
    Json(Value),
    /// Answers among other output.
    Mixed(Vec<Value>),
    /// Output that should be JSON and is not, with the reason.
    Broken(String),
}

/// Finds the JSON in an output.
pub(super) fn parse_output(output: &str) -> HookOutput {
    let output = output.trim().trim_start_matches('\u{feff}');
    // Also in a list, and behind a comment.
    let is_json =
        output.starts_with(['{', '[']) || output.starts_with("//") || output.starts_with("/*");
    let whole = is_json.then(|| from_hand::<Value>(output));
    match whole {
        Some(Ok(Value::Array(mut items))) if items.iter().any(is_answer) => {
            items.retain(is_answer);
            return match <[Value; 1]>::try_from(items) {
                Ok([value]) => HookOutput::Json(value),
                Err(items) => HookOutput::Mixed(items),
            };
        }
        Some(Ok(value @ Value::Object(_))) => return HookOutput::Json(value),
        _ if forbids_in_a_word(output) => {
            return HookOutput::Json(Value::String(bare_word(output)));
        }
        Some(_) | None => (),
    }
    let whole = output.starts_with('{').then(|| from_hand::<Value>(output));
    let found = answers_in(output);
    match whole {
        _ if !found.is_empty() => HookOutput::Mixed(found),
        Some(Err(error)) => HookOutput::Broken(error.to_string()),
        None if FIELDS.iter().any(|field| output.contains(&format!("\"{field}\"")))
            && forbids_somewhere(output) =>
        {
            HookOutput::Broken("it is not alone, and not on lines of its own".to_owned())
        }
        None if output.starts_with('\0') => {
            HookOutput::Broken("it is neither UTF-8 nor UTF-16 text".to_owned())
        }
        Some(Ok(_)) | None => HookOutput::Text,
    }
}

/// Reports whether a value has a field by which an answer is known, or forbids in another way.
fn is_answer(value: &Value) -> bool {
    FIELDS.iter().any(|field| value.get(field).is_some()) || is_forbidding(value)
}

/// The word that an output consists of, in lower case.
fn bare_word(output: &str) -> String {
    output.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase()
}

fn forbids_in_a_word(output: &str) -> bool {
    output.len() <= MAX_WORD_BYTES && FORBIDDING.contains(&&*bare_word(output))
}

/// The answers that begin anywhere and end with a line.
fn answers_in(output: &str) -> Vec<Value> {
    let (mut found, mut from) = (Vec::new(), 0);
    for (at, _) in output.match_indices('{').take(MAX_STARTS) {
        if at < from || found.len() == MAX_OBJECTS {
            continue;
        }
        let rest = output.get(at..).unwrap_or_default();
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { continue };
        let end = values.byte_offset();
        let behind = rest.get(end..).unwrap_or_default();
        let ends_line = behind.lines().next().is_none_or(|line| line.trim().is_empty());
        if ends_line && is_answer(&value) {
            found.push(value);
            from = at + end;
        }
    }
    found
}

/// Reports whether a value forbids, in whatever place of it.
pub(super) fn is_forbidding(value: &Value) -> bool {
    let withholds = |field: &str| value.get(field).and_then(Value::as_bool) == Some(false);
    let is_word = value.as_str().is_some_and(forbids_in_a_word);
    // Programs that a hook calls say `ok` of themselves, without a reason for the hook's decision.
    let is_refusal = withholds("ok") && value.get("reason").is_some();
    is_word
        || is_refusal
        || PERMITTING.iter().any(|field| withholds(field))
        || forbids_within(value, MAX_DEPTH)
}

fn forbids_within(value: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let word = value.as_str().map(str::to_ascii_lowercase);
            let is_word = word.is_some_and(|word| FORBIDDING.contains(&&*word));
            (DECIDING.contains(&&**name) && is_word) || forbids_within(value, depth)
        }),
        Value::Array(items) => items.iter().any(|item| forbids_within(item, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Reports whether a text that cannot be read has a field that forbids.
pub(super) fn forbids_somewhere(text: &str) -> bool {
    DECIDING.iter().any(|field| {
        text.split(&format!("\"{field}\"")).skip(1).any(|behind| {
            let value = behind.trim_start().strip_prefix(':').map(str::trim_start);
            let word = value.and_then(|value| value.strip_prefix('"')?.split('"').next());
            word.is_some_and(|word| FORBIDDING.contains(&&*word.to_ascii_lowercase()))
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hook_json_is_found_before_and_after_other_output() {
        let deny = r#"{"hookSpecificOutput":{"permissionDecision":"deny"}}"#;
        let value: Value = serde_json::from_str(deny).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for output in [
            format!("loading profile\n{deny}"),
            format!("loading profile\n{pretty}\n"),
            format!("{deny}\nbye\n"),
            format!("loading… {deny}\n"),
            format!("{{not json\n{deny}"),
            format!("{{\"level\":\"info\"}}\n{deny}\n{{\"level\":\"info\"}}"),
        ] {
            assert_eq!(parse_output(&output), HookOutput::Mixed(vec![value.clone()]), "{output}");
        }
        assert_eq!(parse_output(&format!("\u{feff}{deny}\n")), HookOutput::Json(value));
        assert_eq!(parse_output("{\"a\": 1,} // c"), HookOutput::Json(json!({"a": 1})));
        for output in ["", "text", "{\"level\":\"info\"}\n{\"level\":\"warn\"}", "uses {braces}"] {
            assert!(
                !matches!(parse_output(output), HookOutput::Mixed(_) | HookOutput::Json(_)),
                "{output}"
            );
        }
        assert_eq!(parse_output("uses {braces}"), HookOutput::Text);
    }

    #[test]
    fn hook_json_in_a_list_or_behind_a_comment_is_parsed() {
        let deny = json!({"decision": "block", "reason": "no"});
        for output in [
            format!("[{deny}]"),
            format!("// c\n{deny}"),
            format!("/* c */ {deny}"),
            format!("[{{\"level\": \"info\"}}, {deny}, 7]"),
        ] {
            assert_eq!(parse_output(&output), HookOutput::Json(deny.clone()), "{output}");
        }
        let both = HookOutput::Mixed(vec![deny.clone(), deny.clone()]);
        assert_eq!(parse_output(&format!("[{deny}, {deny}]")), both);
        for output in ["deny", "\"deny\"", " `Deny`.\n", "BLOCK"] {
            let HookOutput::Json(word) = parse_output(output) else { panic!("{output}") };
            assert!(is_forbidding(&word), "{output}");
        }
        for output in ["denying", "no", "allow", "// note", "[info] begins", "[1, 2]", "[]"] {
            assert_eq!(parse_output(output), HookOutput::Text, "{output}");
        }
    }

    #[test]
    fn hook_denial_is_recognized_in_every_field_and_spelling() {
        for value in [
            json!({"decision": "block"}),
            json!({"permissionDecision": "deny"}),
            json!({"hookSpecificOutput": {"decision": {"behavior": "Deny"}}}),
            json!({"decision": "reject"}),
            json!({"permissionDecision": "Blocked"}),
        ] {
            assert!(is_forbidding(&value), "{value}");
            assert!(forbids_somewhere(&format!("{value} rest")), "{value}");
        }
        for value in [json!({"ok": false, "reason": "r"}), json!({"allow": false}), json!("deny")] {
            assert!(is_forbidding(&value), "{value}");
        }
        let slack = json!({"ok": false, "error": "channel_not_found"});
        for value in
            [slack, json!({"ok": true}), json!({"done": {"ok": false}}), json!({"ok": "false"})]
        {
            assert!(!is_forbidding(&value), "{value}");
        }
        for value in [json!({"decision": "approve"}), json!({"reason": "\"decision\": \"deny\""})] {
            assert!(!is_forbidding(&value), "{value}");
        }
        let no_text = "\0\0\0{\0\0\0}";
        for output in [r#"{"decision": "block", "#, r#"x {"decision" : "block"} y"#, no_text] {
            assert!(matches!(parse_output(output), HookOutput::Broken(_)), "{output}");
        }
    }
}
