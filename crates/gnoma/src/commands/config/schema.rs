//! The JSON Schema of the configuration file, and a file that has every setting as a comment. Both are
//! made from the table of keys.

use std::fmt::Write as _;

use gnoma_config::{
    schema::{Kind, ROWS, Row, THEMES},
    toml,
};
use gnoma_core::json_value::json;
use serde_json::{Map, Value};

/// The file that the schema is written to, beside the configuration.
pub(super) const FILE: &str = "config.schema.json";

const HEAD: &str = "\
# The configuration of gnoma. Every setting is here as a comment with its built-in value; take the `#` away
# in front of a section and of a setting to change it. `gnoma config explain KEY` says more about each.
#
# A server of your own, and a key from the environment or a file with keys:
#
# [provider.endpoints]
# work = \"https://models.example.com/v1\"
# [provider.api_keys]
# work = \"${WORK_KEY}\"
";

/// The schema as text.
pub(super) fn render_schema() -> String {
    format!("{:#}\n", config_schema())
}

fn config_schema() -> Value {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of gnoma",
        "type": "object",
        "properties": {},
        "additionalProperties": false,
    });
    for row in ROWS {
        let steps: Vec<&str> = row.path.split('.').collect();
        insert_row(&mut root, &steps, row);
    }
    root
}

/// Puts a row where its steps lead, and makes the tables and lists on the way.
fn insert_row(at: &mut Value, steps: &[&str], row: &Row) {
    let Some((step, rest)) = steps.split_first() else {
        *at = leaf_schema(row);
        return;
    };
    let Some(object) = at.as_object_mut() else { return };
    let next = if step.starts_with('[') {
        // What stands for the entries of a list was begun as a table.
        object.insert("type".to_owned(), json!("array"));
        object.remove("properties");
        object.remove("additionalProperties");
        let items = object.entry("items").or_insert_with(empty_table);
        if row.required {
            mark_required(items, rest);
        }
        items
    } else if *step == "*" {
        let others = object.entry("additionalProperties").or_insert(Value::Bool(false));
        if !others.is_object() {
            *others = empty_table();
        }
        others
    } else {
        let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        let Some(properties) = properties.as_object_mut() else { return };
        properties.entry((*step).to_owned()).or_insert_with(empty_table)
    };
    insert_row(next, rest, row);
}

fn empty_table() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

fn mark_required(items: &mut Value, rest: &[&str]) {
    let (Some(items), [name]) = (items.as_object_mut(), rest) else { return };
    let required = items.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        required.push(json!(name));
    }
}

fn leaf_schema(row: &Row) -> Value {
    let mut leaf = value_schema(row.kind);
    if let Some(object) = leaf.as_object_mut() {
        object.insert("description".to_owned(), row.doc.into());
        if let Some(value) = row.built_in().and_then(|value| toml_to_json(&value)) {
            object.insert("default".to_owned(), value);
        }
        if row.path == "tui.theme" {
            object.insert("examples".to_owned(), json!(THEMES));
        }
        if row.replaced_by().is_some() {
            object.insert("deprecated".to_owned(), true.into());
        }
    }
    leaf
}

/// Parses a TOML value as JSON.
fn toml_to_json(value: &str) -> Option<Value> {
    let table = toml::from_str::<toml::Table>(&format!("value = {value}")).ok()?;
    serde_json::to_value(table.get("value")?).ok()
}

/// Returns the JSON schema of the values that a key takes. A variable such as `${NAME}` may stand for a word.
fn value_schema(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Verbatim | Kind::Secret => json!({ "type": "string" }),
        Kind::Form(form) if form.takes_numbers => {
            json!({ "type": ["string", "integer"], "examples": [form.example] })
        }
        Kind::Form(form) => json!({ "type": "string", "examples": [form.example] }),
        Kind::Url => json!({ "type": "string", "pattern": "^https?://|\\$\\{" }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { least, most: i64::MAX } => json!({ "type": "integer", "minimum": least }),
        Kind::Integer { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Number { least, most: f64::MAX } => json!({ "type": "number", "minimum": least }),
        Kind::Number { least, most } => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        Kind::Money { most } => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": most },
            { "type": "string", "examples": ["5 EUR"] },
        ] }),
        Kind::Duration { least_s } => json!({ "anyOf": [
            { "type": "integer", "minimum": least_s },
            { "type": "string", "examples": ["30s", "1m30s"] },
        ] }),
        Kind::Bytes => json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "examples": ["1MB", "64KiB"] },
        ] }),
        Kind::Word(words) => json!({ "anyOf": [
            { "enum": words },
            { "type": "string", "pattern": "\\$\\{" },
        ] }),
        Kind::List => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Words(words) => json!({ "type": "array", "items": { "enum": words } }),
        Kind::Forms(form) => {
            json!({ "type": "array", "items": { "type": "string", "examples": [form.example] } })
        }
    }
}

/// A configuration file that sets nothing and shows everything.
pub(super) fn render_template() -> String {
    let mut text = format!("#:schema ./{FILE}\n{HEAD}");
    let mut section = "";
    for row in ROWS.iter().filter(|row| row.is_single() && row.replaced_by().is_none()) {
        let (table, name) = row.path.rsplit_once('.').unwrap_or(("", row.path));
        if table != section {
            section = table;
            let _infallible = writeln!(text, "\n# [{table}]");
        }
        let value = row.built_in().unwrap_or_else(|| "…".to_owned());
        let _infallible = writeln!(text, "# {}\n# {name} = {value}", row.doc);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_in_the_schema() {
        let schema = config_schema();
        for row in ROWS {
            let at = row.path.split('.').try_fold(&schema, |at, step| match step {
                "*" => at.get("additionalProperties"),
                step if step.starts_with('[') => at.get("items"),
                step => at.get("properties")?.get(step),
            });
            let described = at.and_then(|at| at.get("description")).and_then(Value::as_str);
            assert_eq!(described, Some(row.doc), "{}", row.path);
        }
        assert_eq!(
            schema["properties"]["provider"]["properties"]["max_tokens"]["default"],
            json!(8192)
        );
    }

    #[test]
    fn a_setting_taken_out_of_its_comment_is_valid() {
        let (mut section, mut checked) = (String::new(), 0);
        for line in render_template().lines().skip_while(|line| !line.is_empty()) {
            let Some(line) = line.strip_prefix("# ") else { continue };
            if line.starts_with('[') {
                line.clone_into(&mut section);
            } else if let Some((name, value)) = line.split_once(" = ")
                && name.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
                && value != "…"
            {
                let file = format!("{section}\n{line}\n");
                gnoma_config::load::check_user_file(&file)
                    .unwrap_or_else(|error| panic!("{file}: {error}"));
                checked += 1;
            }
        }
        assert!(checked > 30, "{checked}");
        gnoma_config::load::check_user_file(&render_template()).unwrap();
    }

    #[test]
    fn the_themes_that_can_be_set_are_those_that_there_are() {
        assert!(gnoma_tui::theme::theme_names().eq(THEMES));
    }
}
