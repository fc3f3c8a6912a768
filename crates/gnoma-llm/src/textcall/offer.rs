//! The tools on offer, and what JSON is a call of one of them.

use std::sync::Arc;

use gnoma_core::ToolSpec;
use serde_json::{Map, Value};

use super::scan;
use crate::names::NameMap;

const NAME_KEYS: [&str; 4] = ["name", "function", "tool", "tool_name"];
const ARGUMENT_KEYS: [&str; 4] = ["arguments", "parameters", "input", "args"];
/// Other keys that an object may have and still be a call if nothing around it says so.
const OTHER_KEYS: [&str; 3] = ["id", "type", "call_id"];
/// Objects that hold calls.
const WRAPPER_KEYS: [&str; 3] = ["tool_calls", "tool_call", "function_call"];

/// The depth to which calls may be wrapped: a list in a wrapper, each call in a wrapper of its own.
const MAX_WRAPPINGS: usize = 4;

/// A call found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextCall {
    /// Our name of the tool.
    pub(super) name: String,
    /// The arguments as JSON text, broken perhaps.
    pub(super) arguments: String,
}

/// The tools on offer.
#[derive(Clone)]
pub(super) struct Offer {
    pub(super) names: Arc<NameMap>,
    pub(super) tools: Arc<[Arc<ToolSpec>]>,
}

impl Offer {
    /// Reports whether unfinished JSON may still become a call: none of its keys says otherwise.
    pub(super) fn is_hopeful(&self, text: &str) -> bool {
        let object = text.strip_prefix('[').unwrap_or(text).trim_start();
        let Some(inside) = object.strip_prefix('{') else {
            return object.is_empty();
        };
        let inside = inside.trim_start();
        let has_keys = inside.is_empty() || inside.starts_with(['"', '\'']);
        has_keys
            && scan::object_entries(object).all(|(key, value)| {
                let is_name = NAME_KEYS.contains(&key);
                let name = scan::parse_string(value).filter(|_| is_name);
                is_call_key(key) && name.is_none_or(|name| self.names.has_tool(&name))
            })
    }

    /// The calls of an object or a list; `None` if anything in it is no call.
    pub(super) fn parse_calls(&self, value: &str, explicit: bool) -> Option<Vec<TextCall>> {
        let mut calls = Vec::new();
        self.collect_calls(value, explicit, MAX_WRAPPINGS, &mut calls)?;
        Some(calls).filter(|calls| !calls.is_empty())
    }

    fn collect_calls(
        &self,
        value: &str,
        explicit: bool,
        wrappings: usize,
        calls: &mut Vec<TextCall>,
    ) -> Option<()> {
        let inside = wrappings.checked_sub(1)?;
        if value.starts_with('[') {
            return scan::list_elements(value)
                .try_for_each(|element| self.collect_calls(element, explicit, inside, calls));
        }
        let find = |keys: &[&str]| {
            scan::object_entries(value).find(|(key, _)| keys.contains(key)).map(|(_, value)| value)
        };
        if let Some(wrapped) = find(&WRAPPER_KEYS) {
            return self.collect_calls(wrapped, explicit, inside, calls);
        }
        let name = find(&NAME_KEYS)?;
        if name.starts_with('{') {
            return self.collect_calls(name, explicit, inside, calls);
        }
        let name = scan::parse_string(name).filter(|name| self.names.has_tool(name))?;
        let arguments = find(&ARGUMENT_KEYS);
        let is_plain = || scan::object_entries(value).all(|(key, _)| is_call_key(key));
        let is_certain = explicit || (arguments.is_some() && is_plain());
        if !is_certain {
            return None;
        }
        let arguments = arguments.unwrap_or_default();
        let arguments = scan::parse_string(arguments).unwrap_or_else(|| arguments.to_owned());
        calls.push(self.build_call(&name, &arguments));
        Some(())
    }

    pub(super) fn build_call(&self, name: &str, arguments: &str) -> TextCall {
        TextCall { name: self.names.tool_name(name).to_owned(), arguments: arguments.to_owned() }
    }

    /// Parameters as an object. Their text says nothing of their type: the tool's schema does.
    pub(super) fn build_arguments(&self, name: &str, pairs: Vec<(&str, &str)>) -> String {
        let ours = self.names.tool_name(name);
        let tool = self.tools.iter().find(|tool| tool.name == ours);
        let schema: Value = tool.and_then(|tool| tool.parameters.read().ok()).unwrap_or_default();
        let object: Map<String, Value> = pairs
            .into_iter()
            .map(|(key, text)| {
                (key.to_owned(), parse_typed_value(&schema["properties"][key], text))
            })
            .collect();
        Value::Object(object).to_string()
    }
}

/// A parameter's text as its schema wants it: text stays text.
fn parse_typed_value(schema: &Value, text: &str) -> Value {
    if schema["type"] == "string" || schema["type"].is_null() {
        return Value::from(text);
    }
    serde_json::from_str(text.trim()).unwrap_or_else(|_| Value::from(text))
}

fn is_call_key(key: &str) -> bool {
    [&NAME_KEYS[..], &ARGUMENT_KEYS[..], &OTHER_KEYS[..], &WRAPPER_KEYS[..]]
        .iter()
        .any(|keys| keys.contains(&key))
}
