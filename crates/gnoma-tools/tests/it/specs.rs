//! What the model is told about the built-in tools.

use std::collections::BTreeSet;

use gnoma_tools::{ToolOptions, builtin_tools};
use serde_json::{Map, Value};

/// What a request spends on one tool at most; about a quarter as many tokens.
const MAX_SPEC_BYTES: usize = 900;

#[test]
fn builtin_tools_begin_with_bash_and_have_unique_names() {
    let tools = builtin_tools(&ToolOptions::default());
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names[..2], ["bash", "job"]);
    assert!(names[2..].iter().all(|name| name.starts_with("fs.")));
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn every_schema_is_an_object_whose_names_fit_the_spec() {
    for tool in builtin_tools(&ToolOptions::default()) {
        let spec = tool.spec();
        let schema: Map<String, Value> = spec.parameters.read().unwrap();
        assert_eq!(schema["type"], "object", "{}", spec.name);
        let properties = schema["properties"].as_object().unwrap();
        for property in properties.values() {
            assert!(property["type"].is_string(), "{}: {property}", spec.name);
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(required.as_str().unwrap()));
        }
        for touches in spec.touches.iter() {
            assert!(properties.contains_key(touches.argument()), "{}", spec.name);
        }
    }
}

#[test]
fn specs_are_short() {
    for tool in builtin_tools(&ToolOptions::default()) {
        let spec = tool.spec();
        let bytes = spec.description.len() + spec.parameters.get().len();
        assert!(!spec.description.is_empty() && bytes <= MAX_SPEC_BYTES, "{}: {bytes}", spec.name);
    }
}
