//! The JSON Schema of the fields before the steps.

use serde_json::{Value, json};

/// Returns the JSON Schema of the fields of a task file.
#[must_use]
pub fn task_schema() -> Value {
    let texts = json!({ "type": ["string", "array"], "items": { "type": "string" } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Fields of a gnoma task",
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": "The name of the file without `.md`."
            },
            "description": { "type": "string", "description": "What the task does, in a line." },
            "arguments": argument_schema(&texts),
            "permission": {
                "description": "The permission mode of runs; a stricter one of the session holds.",
                "enum": ["plan", "default", "auto", "accept_edits", "deny", "bypass"]
            },
            "model": { "type": "string", "description": "The model of steps that name none." },
            "timeout": {
                "type": "string",
                "pattern": "^[0-9]+[smh]$",
                "description": "The time limit of commands that name none, such as `20m`: at most 1h, which is the default."
            },
            "checks": {
                "description": "Commands that must succeed after the last step.",
                "anyOf": [texts]
            },
            "sessions": {
                "description": "Ids of the sessions that the task was made from.",
                "anyOf": [texts]
            }
        },
        "additionalProperties": false
    })
}

/// The schema of the arguments: with their types, or as names alone (`texts`).
fn argument_schema(texts: &Value) -> Value {
    let kind = r#"^(version|path|branch|text|number|choice\s*\(.+\))?(\s*=.*)?$"#;
    let argument = json!({ "type": ["string", "null"], "pattern": kind });
    json!({
        "description": "Arguments in order, each with its type and perhaps a default: `version`, \
            `text = origin`, `choice(patch, minor) = patch`. `$name` stands for the value.",
        "anyOf": [
            {
                "type": "object",
                "propertyNames": { "pattern": "^[a-z][a-z0-9_]{0,31}$" },
                "additionalProperties": argument,
                "maxProperties": super::arguments::MAX_ARGUMENTS
            },
            texts
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::{super::fault::FIELDS, *};

    #[test]
    fn task_schema_lists_the_fields_that_the_parser_accepts() {
        let schema = task_schema();
        let mut properties: Vec<_> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut fields = FIELDS.to_vec();
        properties.sort_unstable();
        fields.sort_unstable();
        assert_eq!(properties, fields);
    }
}
