//! Cleans the keywords of a schema: what is not valid in the newest draft is translated or dropped.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::root::resolve_reference;

/// Deepest schema that is kept; below, anything goes.
const MAX_DEPTH: usize = 24;
/// Keywords whose value is a schema.
const SCHEMAS: [&str; 8] =
    ["additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const TABLES: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
/// Keywords whose value is a number that is not negative.
const COUNTS: [&str; 6] =
    ["maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"];
/// Keywords whose value is a number.
const NUMBERS: [&str; 5] =
    ["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"];
/// Keywords whose value is a text.
const TEXTS: [&str; 7] = [
    "$comment",
    "contentEncoding",
    "contentMediaType",
    "description",
    "format",
    "pattern",
    "title",
];
/// Keywords that only mean something to other readers, and that validators of providers may refuse.
const FOREIGN: [&str; 12] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$schema",
    "$vocabulary",
    "id",
    "nullable",
    "optional",
    "x-mcp-header",
];
/// The types of JSON, and what they are called elsewhere.
const TYPES: [(&str, &str); 22] = [
    ("string", "string"),
    ("number", "number"),
    ("integer", "integer"),
    ("boolean", "boolean"),
    ("object", "object"),
    ("array", "array"),
    ("null", "null"),
    ("str", "string"),
    ("text", "string"),
    ("int", "integer"),
    ("int32", "integer"),
    ("int64", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("bool", "boolean"),
    ("dict", "object"),
    ("map", "object"),
    ("list", "array"),
    ("none", "null"),
    ("tuple", "array"),
];
/// A schema while it is cleaned.
pub(super) struct SchemaCleaner<'a> {
    whole: &'a Value,
}

impl<'a> SchemaCleaner<'a> {
    pub(super) fn new(whole: &'a Value) -> Self {
        Self { whole }
    }

    pub(super) fn clean_root(&self, root: Map<String, Value>) -> Map<String, Value> {
        let mut root = self.clean_object(root, 0);
        root.insert("type".to_owned(), "object".into());
        root.entry("properties").or_insert_with(|| json!({}));
        root
    }

    fn clean_schema(&self, schema: Value, depth: usize) -> Value {
        match schema {
            Value::Object(fields) if depth <= MAX_DEPTH => {
                Value::Object(self.clean_object(fields, depth))
            }
            // Some write only the type.
            Value::String(name) => {
                type_of(&name).map_or_else(|| json!({}), |it| json!({"type": it}))
            }
            _ => json!({}),
        }
    }

    fn clean_object(&self, fields: Map<String, Value>, depth: usize) -> Map<String, Value> {
        let is_nullable = fields.get("nullable") == Some(&Value::Bool(true));
        let mut clean = Map::new();
        for (key, value) in fields {
            if let Some((key, value)) = self.clean_keyword(key, value, depth) {
                clean.entry(key).or_insert(value);
            }
        }
        limit_exclusively(&mut clean);
        drop_empty_kinds(&mut clean);
        describe_items(&mut clean);
        if is_nullable && let Some(Value::String(kind)) = clean.get("type").cloned() {
            clean.insert("type".to_owned(), json!([kind, "null"]));
        }
        clean
    }

    fn clean_list(&self, schemas: Vec<Value>, depth: usize) -> Value {
        schemas.into_iter().map(|it| self.clean_schema(it, depth)).collect()
    }

    /// One keyword as the newest draft has it; `None` where it says nothing that a provider takes.
    #[expect(clippy::match_same_arms, reason = "each case stands beside its reason")]
    fn clean_keyword(&self, key: String, value: Value, depth: usize) -> Option<(String, Value)> {
        let below = depth + 1;
        let value = match (key.as_str(), value) {
            (name, _) if FOREIGN.contains(&name) => return None,
            // An older draft has one schema for each item there.
            ("items", Value::Array(all)) => {
                return Some(("prefixItems".to_owned(), self.clean_list(all, below)));
            }
            ("additionalProperties", value @ Value::Bool(_)) => value,
            ("items", Value::Bool(_)) => json!({}),
            (name, value @ (Value::Object(_) | Value::String(_))) if SCHEMAS.contains(&name) => {
                self.clean_schema(value, below)
            }
            (name, Value::Array(all)) if LISTS.contains(&name) && !all.is_empty() => {
                self.clean_list(all, below)
            }
            (name, Value::Object(all)) if TABLES.contains(&name) => {
                let all = all.into_iter().map(|(name, it)| (name, self.clean_schema(it, below)));
                Value::Object(all.collect())
            }
            ("type", value) => allowed_types(&value)?,
            ("required", Value::Array(all)) => unique_names(all)?,
            ("enum", Value::Array(all)) if !all.is_empty() => distinct_values(all),
            ("$ref", Value::String(target)) => {
                resolve_reference(self.whole, &target)?;
                Value::String(target)
            }
            (name, value @ Value::Number(_)) if COUNTS.contains(&name) => {
                value.as_f64().filter(|count| *count >= 0.0).map(|count| json!(count as u64))?
            }
            (name, value @ Value::Number(_)) if NUMBERS.contains(&name) => value,
            ("exclusiveMinimum" | "exclusiveMaximum", value @ Value::Bool(_)) => value,
            (name, value @ Value::String(_)) if TEXTS.contains(&name) => value,
            ("uniqueItems" | "readOnly" | "writeOnly" | "deprecated", value @ Value::Bool(_)) => {
                value
            }
            ("examples", value @ Value::Array(_)) | ("default" | "const" | "example", value) => {
                value
            }
            ("dependentRequired", value @ Value::Object(_)) => value,
            (name, value) if name.starts_with("x-") && !value.is_null() => value,
            _ => return None,
        };
        Some((key, value))
    }
}

/// Truth values of an older draft say that a limit itself does not belong to the range.
fn limit_exclusively(fields: &mut Map<String, Value>) {
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(Value::Bool(is_exclusive)) = fields.get(exclusive).cloned() else { continue };
        fields.remove(exclusive);
        if is_exclusive && let Some(number) = fields.remove(limit) {
            fields.insert(exclusive.to_owned(), number);
        }
    }
}

/// A property without a type that has arguments of its own is an object, and one with items a list.
fn drop_empty_kinds(fields: &mut Map<String, Value>) {
    if fields.contains_key("type") {
        return;
    }
    let is_open = ["$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not", "if"];
    if is_open.iter().any(|key| fields.contains_key(*key)) {
        return;
    }
    if fields.contains_key("properties") {
        fields.insert("type".to_owned(), "object".into());
    } else if fields.contains_key("items") || fields.contains_key("prefixItems") {
        fields.insert("type".to_owned(), "array".into());
    }
}

/// Lets the items of a list be anything where nothing is said of them: OpenAI refuses a list without `items`. Behind the
/// items of a tuple this is what JSON Schema means by their absence.
fn describe_items(fields: &mut Map<String, Value>) {
    let is_list = match fields.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    if is_list {
        fields.entry("items").or_insert_with(|| json!({}));
    }
}

/// The types that a schema allows, in the words of JSON Schema.
fn allowed_types(value: &Value) -> Option<Value> {
    match value {
        Value::String(name) => type_of(name).map(Value::from),
        Value::Array(all) => {
            let kinds: BTreeSet<&str> =
                gnoma_core::sort::to_set(all.iter().filter_map(Value::as_str).filter_map(type_of));
            match kinds.iter().collect::<Vec<_>>()[..] {
                [] => None,
                [only] => Some(Value::from(*only)),
                _ => Some(json!(kinds)),
            }
        }
        _ => None,
    }
}

fn type_of(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    TYPES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// The names of a list, each once.
fn unique_names(all: Vec<Value>) -> Option<Value> {
    let mut names: Vec<String> = Vec::new();
    for value in all {
        if let Value::String(name) = value
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| json!(names))
}

/// The values of a list, each once.
fn distinct_values(all: Vec<Value>) -> Value {
    let mut values: Vec<Value> = Vec::new();
    for value in all {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Value::Array(values)
}
