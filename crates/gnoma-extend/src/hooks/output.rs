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
const FORBIDDING: [&str; 2] = ["deny", "block"];

/// What a hook printed.
#[derive(Debug, PartialEq)]
pub(super) enum HookOutput {
    /// Only text.
    Text,
    /// One value and nothing else.
    Json(Value),
    /// Answers among other output.
    Mixed(Vec<Value>),
    /// What should be JSON and is none; why.
    Broken(String),
}

/// Finds the JSON in an output.
pub(super) fn read(output: &str) -> HookOutput {
    let output = output.trim().trim_start_matches('\u{feff}');
    let whole = output.starts_with('{').then(|| from_hand::<Value>(output));
    if let Some(Ok(value)) = whole {
        return HookOutput::Json(value);
    }
    let found = answers_in(output);
    match whole {
        _ if !found.is_empty() => HookOutput::Mixed(found),
        Some(Err(error)) => HookOutput::Broken(error.to_string()),
        None if FIELDS.iter().any(|field| output.contains(&format!("\"{field}\"")))
            && forbids_somewhere(output) =>
        {
            HookOutput::Broken("other output is on the same line".to_owned())
        }
        Some(Ok(_)) | None => HookOutput::Text,
    }
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
        if ends_line && FIELDS.iter().any(|field| value.get(field).is_some()) {
            found.push(value);
            from = at + end;
        }
    }
    found
}

/// Whether a value forbids, in whatever place of it.
pub(super) fn forbids(value: &Value) -> bool {
    forbids_within(value, MAX_DEPTH)
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

/// Whether a text that cannot be read has a field that forbids.
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
    fn json_is_found_behind_and_before_other_output() {
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
            assert_eq!(read(&output), HookOutput::Mixed(vec![value.clone()]), "{output}");
        }
        assert_eq!(read(&format!("\u{feff}{deny}\n")), HookOutput::Json(value));
        assert_eq!(read("{\"a\": 1,} // c"), HookOutput::Json(json!({"a": 1})));
        for output in ["", "text", "{\"level\":\"info\"}\n{\"level\":\"warn\"}", "uses {braces}"] {
            assert!(
                !matches!(read(output), HookOutput::Mixed(_) | HookOutput::Json(_)),
                "{output}"
            );
        }
        assert_eq!(read("uses {braces}"), HookOutput::Text);
    }

    #[test]
    fn a_denial_is_seen_in_whatever_place_and_form() {
        for value in [
            json!({"decision": "block"}),
            json!({"permissionDecision": "deny"}),
            json!({"hookSpecificOutput": {"decision": {"behavior": "Deny"}}}),
        ] {
            assert!(forbids(&value), "{value}");
            assert!(forbids_somewhere(&format!("{value} rest")), "{value}");
        }
        for value in [json!({"decision": "approve"}), json!({"reason": "\"decision\": \"deny\""})] {
            assert!(!forbids(&value), "{value}");
        }
        for output in [r#"{"decision": "block", "#, r#"x {"decision" : "block"} y"#] {
            assert!(matches!(read(output), HookOutput::Broken(_)), "{output}");
        }
    }
}
