//! What is wrong with a request, and the questions that find it out.

use std::fmt::Display;

use serde_json::Value;

/// Findings, each with its place in the request.
#[derive(Debug, Default)]
pub(super) struct Findings {
    all: Vec<String>,
}

impl Findings {
    pub(super) fn into_all(self) -> Vec<String> {
        self.all
    }

    pub(super) fn add_violation(&mut self, at: &str, what: impl Display) {
        self.all.push(format!("{at}: {what}"));
    }

    /// Notes `what` unless `holds`.
    pub(super) fn add_unless(&mut self, holds: bool, at: &str, what: &str) {
        if !holds {
            self.add_violation(at, what);
        }
    }

    /// `value` is an object, and every field of it is one of `known`.
    pub(super) fn check_fields(&mut self, at: &str, value: &Value, known: &[&str]) {
        let Some(object) = value.as_object() else {
            self.add_violation(at, "must be an object");
            return;
        };
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            self.add_violation(at, format_args!("unknown field `{key}`"));
        }
    }

    /// The string `key`, which must not be empty; empty where it is missing.
    pub(super) fn require_string<'a>(&mut self, at: &str, value: &'a Value, key: &str) -> &'a str {
        let word = value[key].as_str().unwrap_or_default();
        if word.is_empty() {
            self.add_violation(at, format_args!("`{key}` must be a string that is not empty"));
        }
        word
    }

    /// The list `key`, which must not be empty; empty where it is missing.
    pub(super) fn require_list<'a>(
        &mut self,
        at: &str,
        value: &'a Value,
        key: &str,
    ) -> &'a [Value] {
        let list = value[key].as_array().map(Vec::as_slice).unwrap_or_default();
        if list.is_empty() {
            self.add_violation(at, format_args!("`{key}` must be a list that is not empty"));
        }
        list
    }

    /// The name of a tool: letters, digits, `_` and `-`, at most `longest` of them.
    pub(super) fn tool_name(&mut self, at: &str, name: &str, longest: usize) {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let legal = (1..=longest).contains(&name.len()) && name.bytes().all(fits);
        if !legal {
            self.add_violation(at, format_args!("`{name}` is no legal name of a tool"));
        }
    }

    /// The schema of a tool's arguments describes an object.
    pub(super) fn check_schema(&mut self, at: &str, schema: &Value) {
        self.add_unless(schema["type"] == "object", at, "the schema must be of type `object`");
    }

    /// No two tools have the same name.
    pub(super) fn check_unique_names(&mut self, at: &str, mut names: Vec<&str>) {
        names.sort_unstable();
        for pair in names.windows(2) {
            if let [one, other] = pair
                && one == other
            {
                self.add_violation(at, format_args!("two tools are called `{one}`"));
            }
        }
    }
}

/// Text of JSON that must be an object.
pub(super) fn is_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

/// A field that is there and not `null`.
pub(super) fn non_null_field<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|value| !value.is_null())
}
