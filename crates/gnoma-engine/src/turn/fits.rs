//! Whether a call's arguments can be those of its tool, and texts in them that mean something else. Pure.
//!
//! Only what no tool accepts is found here, before anyone is asked about the call: a missing required argument, or
//! a text or number in place of a list or object, or the reverse. The tool checks the rest.

use gnoma_core::{RawJson, ToolCall, ToolSpec};
use serde_json::{Map, Value};

/// Describes for the model what is wrong with the arguments.
pub(super) fn find_argument_error(spec: &ToolSpec, call: &ToolCall) -> Option<String> {
    let schema: Value = spec.parameters.read().ok()?;
    let arguments: Value = call.arguments.read().ok()?;
    let why = match &arguments {
        Value::Object(arguments) => {
            missing_field(&schema, arguments).or_else(|| mistyped_field(&schema, arguments))
        }
        _ => Some("they are not a JSON object".to_owned()),
    }?;
    Some(format!("the arguments do not fit `{}`: {why}; nothing was done", spec.name))
}

/// The arguments with our names where they have those of other programs, and with a number, a truth value, a list
/// or an object where the tool wants one and the model wrote it as
/// a text; `None` where it did not.
pub(super) fn normalize_arguments(spec: &ToolSpec, call: &ToolCall) -> Option<RawJson> {
    let schema: Value = spec.parameters.read().ok()?;
    let properties = schema.get("properties")?.as_object()?;
    let mut arguments: Map<String, Value> = call.arguments.read().ok()?;
    let mut is_respelt = rename_arguments(&schema, &mut arguments);
    for (name, value) in &mut arguments {
        let property = properties.get(name);
        if let Some(meant) = property.and_then(|property| coerce_text(property, value.as_str()?)) {
            *value = meant;
            is_respelt = true;
        }
    }
    is_respelt.then(|| RawJson::from_value(&arguments).ok())?
}

/// Names that other programs give to arguments, and what ours are called.
const OTHER_NAMES: [(&str, &[&str]); 6] = [
    (
        "path",
        &["file_path", "filepath", "filePath", "filename", "file", "absolute_path", "target_file"],
    ),
    ("command", &["cmd", "script", "shell_command"]),
    ("content", &["contents", "file_text", "text"]),
    ("old_string", &["old_str", "old_text", "oldString"]),
    ("new_string", &["new_str", "new_text", "newString"]),
    ("pattern", &["query", "regex", "search"]),
];

/// Gives arguments that the tool does not know the names of the required ones that they can only mean.
fn rename_arguments(schema: &Value, arguments: &mut Map<String, Value>) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let (Some(properties), Some(required)) = (properties, required) else { return false };
    let mut is_renamed = false;
    for wanted in required.iter().filter_map(Value::as_str) {
        let others =
            OTHER_NAMES.iter().find(|(name, _)| *name == wanted).map(|(_, others)| *others);
        let is_meant = |name: &&String| {
            others.is_some_and(|others| others.contains(&name.as_str()))
                && !properties.contains_key(*name)
        };
        let mut meant = arguments.keys().filter(is_meant);
        let (Some(name), None) = (meant.next().cloned(), meant.next()) else { continue };
        if !arguments.contains_key(wanted)
            && let Some(value) = arguments.shift_remove(&name)
        {
            arguments.insert(wanted.to_owned(), value);
            is_renamed = true;
        }
    }
    is_renamed
}

/// Returns the value that a text means if the schema wants a value other than text.
fn coerce_text(property: &Value, text: &str) -> Option<Value> {
    let wanted = property.get("type")?.as_str()?;
    let text = text.trim();
    match wanted {
        "boolean" if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        "boolean" if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        "integer" | "number" => gnoma_core::json::from_str(text).ok().filter(Value::is_number),
        "array" => gnoma_core::json::from_str(text).ok().filter(Value::is_array),
        "object" => gnoma_core::json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

fn missing_field(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let mut absent = required.filter(|name| !arguments.contains_key(*name));
    absent.next().map(|name| format!("missing field `{name}`"))
}

fn mistyped_field(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    arguments.iter().find_map(|(name, value)| {
        let wanted = properties.get(name)?.get("type")?.as_str()?;
        let fits = match wanted {
            "array" => value.is_array() || value.is_null(),
            "object" => value.is_object() || value.is_null(),
            "string" | "integer" | "number" | "boolean" => !value.is_array() && !value.is_object(),
            _ => true,
        };
        // Some write a list or an object as a text, which tools read.
        let is_text = value.is_string() && matches!(wanted, "array" | "object");
        (!fits && !is_text).then(|| format!("`{name}` must be of type {wanted}"))
    })
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        CallId,
        tool::{Access, Tier, ToolKind},
    };

    use super::*;

    fn spec() -> ToolSpec {
        let schema = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"},
            "lines":{"type":"array"},"limit":{"type":"integer"},"any":{"type":["string","null"]},
            "all":{"type":"boolean"},"more":{"type":"object"}}}"#;
        ToolSpec {
            name: "fs.read".to_owned(),
            description: String::new(),
            parameters: RawJson::parse(schema).unwrap(),
            access: Access::Read,
            touches: [].into(),
            kind: ToolKind::Other,
            tier: Tier::Lean,
        }
    }

    #[test]
    fn texts_become_what_the_tool_wants_and_texts_that_it_wants_stay() {
        for (written, meant) in [
            (
                r#"{"path":"7","limit":" 20 ","all":"True","any":"1"}"#,
                r#"{"path":"7","limit":20,"all":true,"any":"1"}"#,
            ),
            (
                r#"{"path":"true","lines":"[1, {\"a\": 2}]","more":"{\"x\":\"\\u0061\"}"}"#,
                r#"{"path":"true","lines":[1,{"a":2}],"more":{"x":"a"}}"#,
            ),
            (r#"{"path":"7","limit":"many","all":"1","lines":"7","unknown":"7"}"#, ""),
            (r#"{"path":"7","limit":3}"#, ""),
            (r#"{"file_path":"a","limit":3}"#, r#"{"limit":3,"path":"a"}"#),
            (r#"{"file_path":"a","file":"b"}"#, ""),
            (r#"{"path":"a","file":"b"}"#, ""),
            (r#"["7", "20"]"#, ""),
        ] {
            let arguments = RawJson::parse(written).unwrap();
            let call = ToolCall::new(CallId::new("c"), "fs.read", arguments);
            let found = normalize_arguments(&spec(), &call);
            assert_eq!(found.as_ref().map_or("", RawJson::get), meant, "{written}");
        }
    }

    #[test]
    fn only_what_no_tool_takes_is_found() {
        let spec = spec();
        for (arguments, why) in [
            (r#"{"path":"a"}"#, ""),
            (r#"{"path":"a","limit":"3","lines":"[1]","any":7,"more":{}}"#, ""),
            (r#"{"path":"a","lines":null}"#, ""),
            ("{}", "missing field `path`"),
            (r#"{"path":["a"]}"#, "`path` must be of type string"),
            (r#"{"path":"a","lines":3}"#, "`lines` must be of type array"),
            (r#"{"path":"a","limit":{}}"#, "`limit` must be of type integer"),
        ] {
            let arguments = RawJson::parse(arguments).unwrap();
            let call = ToolCall::new(CallId::new("c"), "fs.read", arguments);
            let found = find_argument_error(&spec, &call).unwrap_or_default();
            assert!(found.contains(why) && found.is_empty() == why.is_empty(), "{found} {why}");
        }
    }
}
