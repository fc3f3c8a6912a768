//! JSON Schema features that vendors accept. Sources: OpenAI's guide "Structured model outputs" and Anthropic's guide
//! "Structured outputs", both with the lists of what they refuse.

use serde_json::{Map, Value};

/// Deepest nesting of a schema that is looked at; deeper ones are taken to be refused.
const MAX_DEPTH: usize = 64;

/// Keywords that OpenAI takes where it guarantees the form.
const STRICT: [&str; 23] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "$schema",
];

/// Formats of texts that OpenAI and Anthropic know.
const FORMATS: [&str; 9] =
    ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"];

/// Reports whether OpenAI would guarantee answers of that form: every object is closed and all of its properties
/// are required. OpenAI takes other forms as a hint.
pub(super) fn is_strict(schema: &Value) -> bool {
    schema["type"] == "object" && schema.get("anyOf").is_none() && is_strict_part(schema, 0)
}

fn is_strict_part(schema: &Value, depth: usize) -> bool {
    let Value::Object(object) = schema else { return false };
    if depth > MAX_DEPTH || !object.keys().all(|key| STRICT.contains(&key.as_str())) {
        return false;
    }
    let known_format = |format: &Value| format.as_str().is_some_and(|it| FORMATS.contains(&it));
    let is_closed = object.get("additionalProperties") == Some(&Value::Bool(false));
    let says_object = says_type(object, "object") || object.contains_key("properties");
    let names = |key| object.get(key).and_then(Value::as_object).map(Map::len).unwrap_or_default();
    let required = object.get("required").and_then(Value::as_array).map(Vec::len);
    object.get("format").is_none_or(known_format)
        && (!says_object || is_closed && required.unwrap_or_default() == names("properties"))
        && schema_parts(object).all(|part| is_strict_part(part, depth + 1))
}

/// The schema as Anthropic takes it: what it refuses to hold a model to is left out, since the answer is
/// checked all the same, and objects are closed. `None` where that would be another schema.
pub(super) fn loosen_schema(schema: &Value) -> Option<Value> {
    let is_object = schema["type"] == "object";
    (is_object && !leads_back(schema)).then(|| loosened_part(schema, 0)).flatten()
}

fn loosened_part(schema: &Value, depth: usize) -> Option<Value> {
    let object = schema.as_object().filter(|_| depth <= MAX_DEPTH)?;
    let mut loose = Map::new();
    for (key, value) in object {
        let kept = match key.as_str() {
            "type" | "const" | "default" | "title" | "description" | "required" => value.clone(),
            "enum" if value.as_array()?.iter().all(|one| !one.is_object() && !one.is_array()) => {
                value.clone()
            }
            "$ref" if value.as_str()?.starts_with("#/") => value.clone(),
            "items" if value.is_object() => loosened_part(value, depth + 1)?,
            "anyOf" => value
                .as_array()?
                .iter()
                .map(|it| loosened_part(it, depth + 1))
                .collect::<Option<_>>()?,
            "properties" | "$defs" | "definitions" => {
                let part = |(name, it): (&String, &Value)| {
                    Some((name.clone(), loosened_part(it, depth + 1)?))
                };
                value.as_object()?.iter().map(part).collect::<Option<Map<_, _>>>()?.into()
            }
            "format" if FORMATS.contains(&value.as_str()?) => value.clone(),
            "minItems" if value.as_u64()? <= 1 => value.clone(),
            // A closed object is what every object becomes; others are maps, which it does not know.
            "additionalProperties" if *value == Value::Bool(false) => continue,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
            | "minLength" | "maxLength" | "pattern" | "minItems" | "maxItems" | "uniqueItems"
            | "minProperties" | "maxProperties" | "format" | "$schema" | "$id" | "$comment"
            | "examples" => continue,
            _ => return None,
        };
        loose.insert(key.clone(), kept);
    }
    if says_type(object, "object") {
        loose.get("properties")?;
        loose.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(loose.into())
}

/// Reports whether a reference leads to a part that it stands in.
fn leads_back(root: &Value) -> bool {
    fn walk_references<'v>(root: &'v Value, part: &'v Value, around: &mut Vec<&'v str>) -> bool {
        match part {
            Value::Object(object) => {
                let reference = object.get("$ref").and_then(Value::as_str);
                if let Some(reference) = reference {
                    let target = reference.strip_prefix('#').and_then(|path| root.pointer(path));
                    let Some(target) = target else { return true };
                    if around.contains(&reference) || around.len() > MAX_DEPTH {
                        return true;
                    }
                    around.push(reference);
                    let is_back = walk_references(root, target, around);
                    around.pop();
                    return is_back;
                }
                let inside =
                    object.iter().filter(|(key, _)| *key != "$defs" && *key != "definitions");
                inside.map(|(_, part)| part).any(|part| walk_references(root, part, around))
            }
            Value::Array(parts) => parts.iter().any(|part| walk_references(root, part, around)),
            _ => false,
        }
    }
    walk_references(root, root, &mut vec!["#"])
}

/// The schema with its references as they are one level deeper.
pub(super) fn move_references(schema: Value, to: &str) -> Value {
    match schema {
        Value::Object(object) => {
            let member = |(key, value): (String, Value)| {
                let value = match value {
                    Value::String(path) if key == "$ref" => {
                        Value::String(match path.strip_prefix('#') {
                            Some(path) if path.is_empty() || path.starts_with('/') => {
                                format!("#{to}{path}")
                            }
                            _ => path,
                        })
                    }
                    other => move_references(other, to),
                };
                (key, value)
            };
            object.into_iter().map(member).collect()
        }
        Value::Array(parts) => parts.into_iter().map(|part| move_references(part, to)).collect(),
        other => other,
    }
}

fn says_type(object: &Map<String, Value>, name: &str) -> bool {
    match object.get("type") {
        Some(Value::String(own)) => own == name,
        Some(Value::Array(names)) => names.iter().any(|own| own == name),
        _ => false,
    }
}

/// The schemas right below.
fn schema_parts(object: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    object.iter().flat_map(|(key, value)| -> Vec<&Value> {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(parts)) => {
                parts.values().collect()
            }
            ("anyOf", Value::Array(parts)) => parts.iter().collect(),
            ("items", part) => vec![part],
            _ => Vec::new(),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn openai_strict_schema_needs_closed_objects_with_all_required() {
        let point = json!({"type": "object", "properties": {"x": {"type": "number", "minimum": 0}},
            "required": ["x"], "additionalProperties": false});
        assert!(is_strict(&point));
        let list = json!({"type": "object", "properties": {"all": {"type": "array", "items": point}},
            "required": ["all"], "additionalProperties": false});
        assert!(is_strict(&list));
        for (key, value) in [
            ("required", json!([])),
            ("additionalProperties", json!(true)),
            ("patternProperties", json!({})),
            ("anyOf", json!([{"type": "object"}])),
        ] {
            let mut other = point.clone();
            other[key] = value;
            assert!(!is_strict(&other), "{other}");
        }
        assert!(!is_strict(&json!({"type": "array", "items": {"type": "string"}})));
    }

    #[test]
    fn anthropic_output_schema_is_loosened_or_omitted() {
        let loose = loosen_schema(&json!({"$schema": "x", "type": "object", "properties": {
            "n": {"type": "integer", "minimum": 1}, "at": {"type": "string", "format": "date"},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 2}},
            "$defs": {"tag": {"type": "string", "pattern": "^a"}}}));
        assert_eq!(
            loose.unwrap(),
            json!({"type": "object", "properties": {"n": {"type": "integer"},
                "at": {"type": "string", "format": "date"},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}}},
                "$defs": {"tag": {"type": "string"}}, "additionalProperties": false})
        );
        for refused in [
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "properties": {"a": {"not": {}}}}),
            json!({"type": "object", "properties": {"next": {"$ref": "#"}}}),
            json!({"type": "object", "properties": {"a": {"type": "object"}}}),
        ] {
            assert_eq!(loosen_schema(&refused), None, "{refused}");
        }
    }

    #[test]
    fn json_schema_refs_are_rewritten_when_a_schema_is_nested() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#b"}]}}});
        let moved = move_references(schema, "/properties/answer");
        assert_eq!(moved["$ref"], "#/properties/answer/$defs/a");
        assert_eq!(
            moved["$defs"]["a"]["anyOf"],
            json!([{"$ref": "#/properties/answer"}, {"$ref": "#b"}])
        );
    }
}
