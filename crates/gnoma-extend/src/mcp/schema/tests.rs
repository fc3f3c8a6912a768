use serde_json::json;

use super::*;

fn is_schema(schema: &Value) {
    // The checker of structured answers is another crate: here only the shape that providers check.
    assert_eq!(schema["type"], "object", "{schema}");
    assert!(schema["properties"].is_object(), "{schema}");
    for key in ["anyOf", "oneOf", "allOf", "enum", "not", "$ref", "$schema", "$id"] {
        assert!(schema.get(key).is_none(), "{key}: {schema}");
    }
}

#[test]
fn tool_schema_root_is_normalized_to_an_object() {
    let text = json!({"type": "string"});
    let part =
        json!({"type": "object", "properties": {"a": text, "b": text}, "required": ["a", "b"]});
    let other = json!({"properties": {"a": text, "c": text}, "required": ["a"]});
    for (schema, arguments, required) in [
        (json!({}), vec![], json!(null)),
        (json!(true), vec![], json!(null)),
        (json!(null), vec![], json!(null)),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#"}), vec![], json!(null)),
        (json!({"type": ["object", "null"], "properties": {"a": text}}), vec!["a"], json!(null)),
        (json!({"type": "string"}), vec![], json!(null)),
        (
            json!({"properties": {"a": text}, "required": ["a", "gone", 3, "a"]}),
            vec!["a"],
            json!(["a"]),
        ),
        (json!({"$ref": "#/$defs/x", "$defs": {"x": part}}), vec!["a", "b"], json!(["a", "b"])),
        (
            json!({"$ref": "#/definitions/x", "definitions": {"x": part}}),
            vec!["a", "b"],
            json!(["a", "b"]),
        ),
        (json!({"anyOf": [part, other]}), vec!["a", "b", "c"], json!(["a"])),
        (json!({"type": "object", "oneOf": [part, other]}), vec!["a", "b", "c"], json!(["a"])),
        (json!({"allOf": [part, other]}), vec!["a", "b", "c"], json!(["a", "b"])),
        (json!({"properties": {"a": text}, "if": {}, "then": other}), vec!["a", "c"], json!(null)),
        (json!({"$ref": "#"}), vec![], json!(null)),
        (json!({"$ref": "https://example.com/x.json"}), vec![], json!(null)),
        (json!({"properties": [], "required": {}, "type": 3}), vec![], json!(null)),
    ] {
        let done = normalize_schema(&schema).schema;
        is_schema(&done);
        let names: Vec<_> = done["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, arguments, "{schema}");
        assert_eq!(done.get("required").cloned().unwrap_or_default(), required, "{schema}");
    }
}

#[test]
fn nonstandard_tool_schema_keywords_are_translated_or_dropped() {
    for (property, clean) in [
        (json!(true), json!({})),
        (json!(null), json!({})),
        (json!("string"), json!({"type": "string"})),
        (json!({"type": "int", "minimum": 1}), json!({"type": "integer", "minimum": 1})),
        (json!({"type": "any", "description": "x"}), json!({"description": "x"})),
        (json!({"type": ["string", "null"]}), json!({"type": ["null", "string"]})),
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
        (
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
            json!({"type": "number", "exclusiveMinimum": 0}),
        ),
        (
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": false}),
            json!({"type": "number", "minimum": 0}),
        ),
        (
            json!({"type": "array", "items": [{"type": "str"}]}),
            json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {}}),
        ),
        (json!({"type": "list"}), json!({"type": "array", "items": {}})),
        (json!({"type": ["array", "null"]}), json!({"type": ["array", "null"], "items": {}})),
        (
            json!({"items": {"type": "string"}}),
            json!({"items": {"type": "string"}, "type": "array"}),
        ),
        (json!({"type": "string", "required": true}), json!({"type": "string"})),
        (json!({"type": "string", "enum": []}), json!({"type": "string"})),
        (json!({"enum": ["a", "a", "b"]}), json!({"enum": ["a", "b"]})),
        (json!({"type": "string", "pattern": 3, "minLength": "4"}), json!({"type": "string"})),
        (json!({"$ref": "#/nowhere", "description": "x"}), json!({"description": "x"})),
        (json!({"anyOf": []}), json!({})),
        (json!({"type": "string", "$id": "x", "x-mcp-header": "A"}), json!({"type": "string"})),
    ] {
        let schema = json!({"type": "object", "properties": {"p": property}});
        assert_eq!(normalize_schema(&schema).schema["properties"]["p"], clean, "{property}");
    }
}

#[test]
fn valid_tool_schema_is_unchanged() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "a path", "pattern": "^/"},
            "depth": {"type": "integer", "minimum": 0, "maximum": 9, "default": 1},
            "kind": {"enum": ["a", "b"]},
            "node": {"$ref": "#/$defs/node"},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["path"],
        "additionalProperties": false,
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    });
    assert_eq!(normalize_schema(&schema), ProviderSchema { schema, renamed: Vec::new() });
}

#[test]
fn tool_schema_property_names_are_sanitized_and_stay_unique() {
    let names = ["a b", "a_b", "a\u{e4}b", "", "$x", &"x".repeat(65), &"x".repeat(66), "fine.x-1"];
    let properties: serde_json::Map<_, _> =
        names.iter().map(|it| ((*it).to_owned(), json!({}))).collect();
    let done = normalize_schema(&json!({"properties": properties, "required": ["a b", "a_b"]}));
    let shown: Vec<_> = done.schema["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(shown.len(), names.len());
    for name in &shown {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        assert!(!name.is_empty() && name.len() <= 64 && name.bytes().all(is_plain), "{name}");
    }
    assert_eq!(done.schema["required"], json!(["a_b_2", "a_b"]));
    assert_eq!(done.renamed.len(), 6);
    assert!(done.renamed.contains(&("_x".to_owned(), "$x".to_owned())));
}

#[test]
fn too_deep_tool_schema_is_truncated_below_the_limit() {
    let deep = (0..120).fold(json!({}), |below, _| json!({"properties": {"a": below}}));
    let done = normalize_schema(&deep).schema;
    is_schema(&done);
    assert!(done.to_string().len() < deep.to_string().len());
}
