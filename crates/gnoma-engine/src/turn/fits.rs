//! Whether a call's arguments can be those of its tool. Pure.
//!
//! Only what no tool accepts is found here, before anyone is asked about the call: a missing required argument, or
//! a text or number in place of a list or object, or the reverse. The tool checks the rest.

use gnoma_core::{ToolCall, ToolSpec};
use serde_json::{Map, Value};

/// What is wrong with the arguments, for the model.
pub(super) fn misfit(spec: &ToolSpec, call: &ToolCall) -> Option<String> {
    let schema: Value = spec.parameters.read().ok()?;
    let arguments: Value = call.arguments.read().ok()?;
    let why = match &arguments {
        Value::Object(arguments) => missing(&schema, arguments).or_else(|| odd(&schema, arguments)),
        _ => Some("they are not a JSON object".to_owned()),
    }?;
    Some(format!("the arguments do not fit `{}`: {why}; nothing was done", spec.name))
}

fn missing(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let mut absent = required.filter(|name| !arguments.contains_key(*name));
    absent.next().map(|name| format!("missing field `{name}`"))
}

fn odd(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
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
        CallId, RawJson,
        tool::{Access, Tier, ToolKind},
    };

    use super::*;

    #[test]
    fn only_what_no_tool_takes_is_found() {
        let schema = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"},
            "lines":{"type":"array"},"limit":{"type":"integer"},"any":{"type":["string","null"]}}}"#;
        let spec = ToolSpec {
            name: "fs.read".to_owned(),
            description: String::new(),
            parameters: RawJson::parse(schema).unwrap(),
            access: Access::Read,
            touches: [].into(),
            kind: ToolKind::Other,
            tier: Tier::Lean,
        };
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
            let found = misfit(&spec, &call).unwrap_or_default();
            assert!(found.contains(why) && found.is_empty() == why.is_empty(), "{found} {why}");
        }
    }
}
