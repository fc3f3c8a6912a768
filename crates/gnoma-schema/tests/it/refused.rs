//! Schemas that are no schemas, or that cannot be checked exactly.

use gnoma_schema::{MAX_SCHEMA_BYTES, Schema, SchemaError};

#[test]
fn unsupported_json_schema_is_rejected_with_its_location() {
    for (text, at, what) in [
        (r#"{"type":"strin"}"#, "/type", "`strin` is not a type"),
        (r#"{"properties":{"a b":{"minimum":"3"}}}"#, "/properties/a b/minimum", "a number"),
        (r#"{"properties":{"a/b":7}}"#, "/properties/a~1b", "an object"),
        (r#"{"pattern":"(?=x)"}"#, "/pattern", "look-around"),
        (r#"{"$ref":"https://example.com/x"}"#, "/$ref", "none is fetched"),
        (r#"{"$ref":"other.json#/a"}"#, "/$ref", "none is fetched"),
        (r##"{"$ref":"#/$defs/none"}"##, "/$ref", "points nowhere"),
        (r##"{"$ref":"#anchor"}"##, "/$ref", "an anchor"),
        (r##"{"$ref":"#"}"##, "/", "in a circle"),
        (r##"{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}"##, "", "circle"),
        (r##"{"$dynamicRef":"#x"}"##, "/$dynamicRef", "dynamic"),
        (r#"{"anyOf":[]}"#, "/anyOf", "not empty"),
        (r#"{"multipleOf":0}"#, "/multipleOf", "above 0"),
        (r#"{"minItems":-1}"#, "/minItems", "whole number"),
        (r#"{"required":"a"}"#, "/required", "list of names"),
        ("[]", "/", "an object"),
    ] {
        match Schema::parse(text) {
            Err(SchemaError::Wrong { at: found, what: why }) => {
                assert!(found.starts_with(at), "{text}: {found}");
                assert!(why.contains(what), "{text}: {why}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(Schema::parse("{"), Err(SchemaError::NoJson(_))));
    let long = format!("{}true", " ".repeat(MAX_SCHEMA_BYTES));
    assert!(matches!(Schema::parse(&long), Err(SchemaError::TooLarge(_))));
}

/// Alternatives within alternatives multiply, and end all the same.
#[test]
fn json_schema_check_of_nested_or_recursive_alternatives_terminates() {
    let step = |inner: &str| {
        let deeper = format!(r#"{{"properties":{{"a":{inner}}},"required":["a"]}}"#);
        format!(r#"{{"anyOf":[{deeper},{deeper},{deeper},{deeper}]}}"#)
    };
    let mut text = r#"{"type":"string"}"#.to_owned();
    let mut value = serde_json::json!(1);
    for _ in 0..5 {
        text = step(&text);
        value = serde_json::json!({ "a": value });
    }
    assert!(Schema::parse(&text).unwrap().check(&value).is_err());
    let folded = r##"{"$defs":{"t":{"anyOf":[{"type":"string"},
        {"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"required":["a"]},
        {"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"minProperties":1}]}},"$ref":"#/$defs/t"}"##;
    let mut value = serde_json::json!(1);
    for _ in 0..60 {
        value = serde_json::json!({ "a": value });
    }
    let why = Schema::parse(folded).unwrap().check(&value).unwrap_err().to_string();
    assert!(why.contains("too long"), "{why}");
}
