//! Makes an object with arguments of what a schema has at its root: providers take no references and no choices there.

use serde_json::{Map, Value, json};

/// Deepest references and choices at the root that are followed.
const MAX_DEPTH: usize = 8;
/// The keywords that offer a choice between schemas.
const CHOICES: [&str; 2] = ["anyOf", "oneOf"];
/// Keywords of the root that say something about the whole value, which providers do not take there.
const DROPPED: [&str; 16] = [
    "$ref",
    "$id",
    "id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
];

/// The root as an object.
pub(super) fn to_object(schema: &Value) -> Map<String, Value> {
    let mut merged = MergedArguments::default();
    merged.add_part(schema, schema, 0);
    let mut root = schema.as_object().cloned().unwrap_or_default();
    for key in DROPPED {
        root.remove(key);
    }
    root.insert("type".to_owned(), "object".into());
    let required: Vec<_> =
        merged.required.into_iter().filter(|name| merged.properties.contains_key(name)).collect();
    root.insert("properties".to_owned(), Value::Object(merged.properties));
    if required.is_empty() {
        root.remove("required");
    } else {
        root.insert("required".to_owned(), json!(required));
    }
    root
}

/// The arguments of all parts of a root.
#[derive(Default)]
struct MergedArguments {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl MergedArguments {
    /// Adds what one part says: all of it holds.
    fn add_part(&mut self, part: &Value, whole: &Value, depth: usize) {
        let Some(fields) = part.as_object().filter(|_| depth <= MAX_DEPTH) else { return };
        if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                self.add_property(name, property);
            }
        }
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            self.add_required(name);
        }
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            self.add_part(
                resolve_reference(whole, target).unwrap_or(&Value::Null),
                whole,
                depth + 1,
            );
        }
        for part in fields.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.add_part(part, whole, depth + 1);
        }
        for key in CHOICES {
            if let Some(choices) = fields.get(key).and_then(Value::as_array) {
                self.add_choices(choices, whole, depth);
            }
        }
        for key in ["then", "else"] {
            if let Some(part) = fields.get(key) {
                self.add_choices(&[part.clone(), json!({})], whole, depth);
            }
        }
    }

    /// Adds what several choices say: an argument is required only if all of them require it.
    fn add_choices(&mut self, choices: &[Value], whole: &Value, depth: usize) {
        let mut required: Option<Vec<String>> = None;
        for choice in choices {
            let mut own = Self::default();
            own.add_part(choice, whole, depth + 1);
            for (name, property) in &own.properties {
                self.add_property(name, property);
            }
            required = Some(match required {
                None => own.required,
                Some(before) => {
                    before.into_iter().filter(|name| own.required.contains(name)).collect()
                }
            });
        }
        for name in required.into_iter().flatten() {
            self.add_required(&name);
        }
    }

    fn add_property(&mut self, name: &str, property: &Value) {
        match self.properties.get_mut(name) {
            None => {
                self.properties.insert(name.to_owned(), property.clone());
            }
            Some(known) if known == property => {}
            Some(known) => match known.get_mut("anyOf").and_then(Value::as_array_mut) {
                Some(choices) if !choices.contains(property) => choices.push(property.clone()),
                Some(_) => {}
                None => *known = json!({"anyOf": [known.clone(), property]}),
            },
        }
    }

    fn add_required(&mut self, name: &str) {
        if !self.required.iter().any(|known| known == name) {
            self.required.push(name.to_owned());
        }
    }
}

/// Returns the part of a schema that a reference within it points to.
pub(super) fn resolve_reference<'a>(whole: &'a Value, target: &str) -> Option<&'a Value> {
    let pointer = target.strip_prefix('#')?;
    let pointer = pointer.replace("%24", "$").replace("%7E", "~").replace("%20", " ");
    whole.pointer(&pointer)
}
