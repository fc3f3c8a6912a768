//! A tool as a server lists it.

use serde_json::Value;

use super::{
    approval::DescribedTool,
    http::{HeaderParameter, HeaderParameterError, find_header_parameters},
    limits::{MAX_DESCRIPTION_BYTES, MAX_SCHEMA_BYTES, MAX_TOOLS},
    lists::{ListElement, ListElementError, identity_field, text_field},
    wire::json,
};

/// The schema of a tool that takes nothing.
const NO_ARGUMENTS: &str = r#"{"type":"object"}"#;

/// A tool, and the arguments that are sent in headers over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListedTool {
    pub(super) described: DescribedTool,
    pub(super) headers: Result<Vec<HeaderParameter>, HeaderParameterError>,
}

impl ListElement for ListedTool {
    const FIELD: &'static str = "tools";
    const KIND: &'static str = "tool";
    const MAX: usize = MAX_TOOLS;

    fn from_value(value: &Value) -> Result<(Self, Option<String>), ListElementError> {
        let name = identity_field(value, "name")?;
        let (schema, odd_schema) = schema_text(value.get("inputSchema"))?;
        let (description, odd_text) = tool_description(value);
        let headers = find_header_parameters(&json::parse_lenient(&schema).unwrap_or_default());
        let described = DescribedTool { name, description, schema };
        Ok((Self { described, headers }, odd_schema.or(odd_text)))
    }

    fn identity(&self) -> &str {
        &self.described.name
    }
}

/// The schema of a tool's arguments, as text.
fn schema_text(given: Option<&Value>) -> Result<(String, Option<String>), ListElementError> {
    let none = |odd: &str| (NO_ARGUMENTS.to_owned(), Some(odd.to_owned()));
    let text = match given {
        Some(Value::Object(_)) => given.map(Value::to_string).unwrap_or_default(),
        None | Some(Value::Null) => {
            return Ok(none("it has no schema of arguments, so it is offered without any"));
        }
        Some(Value::Bool(true)) => {
            return Ok(none("its schema of arguments is `true`, so it is offered without any"));
        }
        // Some write the document into a text.
        Some(Value::String(text)) if json::parse_lenient(text).is_some_and(|it| it.is_object()) => {
            json::parse_lenient(text).unwrap_or_default().to_string()
        }
        Some(_) => return Err(ListElementError::NoSchema),
    };
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(ListElementError::LargeSchema { limit: MAX_SCHEMA_BYTES });
    }
    Ok((text, None))
}

/// Returns the description of a tool for models, and perhaps what is odd about it.
fn tool_description(value: &Value) -> (String, Option<String>) {
    let (text, odd) = text_field(value, "description");
    let whole = match value.get("description") {
        Some(Value::String(_)) => text,
        _ => text_field(value, "title").0,
    };
    let start = gnoma_core::text_truncation::word_prefix(&whole, MAX_DESCRIPTION_BYTES);
    let more = if start.len() < whole.len() { " […]" } else { "" };
    (format!("{start}{more}"), odd)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::lists::Collector, *};

    #[test]
    fn mcp_tools_with_odd_fields_are_offered_and_invalid_schemas_are_reported() {
        let read = |tool: Value| {
            let mut all = Collector::<ListedTool>::new();
            let sound = json!({"name": "hello", "inputSchema": {"type": "object"}});
            all.add_page(&json!({"tools": [sound, tool, {"name": "last"}]}));
            let names = all.elements.iter().map(|tool| tool.described.name.clone());
            (names.collect::<Vec<_>>().join(" "), all.describe_faults().join("; "))
        };
        let object = json!({"type": "object"});
        for (tool, names, fault) in [
            (json!({"name": "odd"}), "hello odd last", "`odd`: it has no schema"),
            (
                json!({"name": "odd", "inputSchema": null}),
                "hello odd last",
                "`odd`: it has no schema",
            ),
            (json!({"name": "odd", "inputSchema": true}), "hello odd last", "`odd`: its schema"),
            (json!({"name": "odd", "inputSchema": "{\"type\":\"object\"}"}), "hello odd last", ""),
            (json!({"name": "odd", "inputSchema": 3}), "hello last", "`odd`: the schema"),
            (json!({"name": "odd", "inputSchema": []}), "hello last", "`odd`: the schema"),
            (json!({"name": "odd", "inputSchema": false}), "hello last", "`odd`: the schema"),
            (json!({"name": "odd", "inputSchema": "text"}), "hello last", "`odd`: the schema"),
            (
                json!({"name": "odd", "inputSchema": object, "description": {}}),
                "hello odd last",
                "`odd`: its `description`",
            ),
            (
                json!({"name": "odd", "inputSchema": object, "icons": ["x"], "annotations": 1, "outputSchema": []}),
                "hello odd last",
                "",
            ),
            (json!({"name": {"a": 1}, "inputSchema": object}), "hello last", "the tool number 2"),
            (json!({"title": "odd"}), "hello last", "the tool number 2"),
        ] {
            let (found, faults) = read(tool.clone());
            assert_eq!(found, names, "{tool}");
            assert!(faults.contains(fault), "{tool}: {faults}");
        }
    }
}
