//! Every verdict is that of `boon`, which divides in binary: multiples have units here that it can divide by.

use boon::{Compiler, Schemas, UrlLoader};
use gnoma_schema::Schema;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Schemas with what people and programs ask for, and values near what they take.
const CASES: &[(&str, &[&str])] = &[
    (r#"true"#, &["1", "{}"]),
    (r#"false"#, &["null"]),
    (
        r#"{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":5},"age":{"type":"integer","minimum":0,"exclusiveMaximum":150}},"required":["name","age"],"additionalProperties":false}"#,
        &[
            r#"{"name":"Ada","age":36}"#,
            r#"{"name":"","age":36}"#,
            r#"{"name":"Ada","age":150}"#,
            r#"{"name":"Ada","age":1.0}"#,
            r#"{"name":"äöüßé","age":0,"x":1}"#,
            "[]",
        ],
    ),
    (
        r#"{"type":"array","items":{"type":"number","multipleOf":0.5},"minItems":1,"maxItems":3,"uniqueItems":true}"#,
        &["[0.5,19]", "[]", "[1,1.0]", "[0.25]", "[1,2,3,4]"],
    ),
    (r#"{"enum":["red","green",null,7,{"a":[1]}]}"#, &[r#""red""#, "7.0", r#"{"a":[1.0]}"#, "8"]),
    (r#"{"const":{"b":1,"a":[true]}}"#, &[r#"{"a":[true],"b":1}"#, r#"{"a":[1],"b":1}"#]),
    (
        r##"{"$defs":{"node":{"type":"object","properties":{"value":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["value"]}},"$ref":"#/$defs/node"}"##,
        &[
            r#"{"value":"a","children":[{"value":"b","children":[]}]}"#,
            r#"{"value":"a","children":[{"children":[]}]}"#,
        ],
    ),
    (
        r##"{"definitions":{"a/b":{"type":"integer"},"t~x":{"type":"null"}},"anyOf":[{"$ref":"#/definitions/a~1b"},{"$ref":"#/definitions/t~0x"}]}"##,
        &["1", "null", r#""x""#],
    ),
    (
        r#"{"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},{"type":"object","properties":{"kind":{"const":"b"},"y":{"type":"string"}},"required":["kind","y"]}]}"#,
        &[r#"{"kind":"a","x":1}"#, r#"{"kind":"b","y":"q"}"#, r#"{"kind":"b","x":1}"#],
    ),
    (r#"{"oneOf":[{"multipleOf":3},{"multipleOf":5}]}"#, &["9", "10", "15", "7"]),
    (
        r#"{"allOf":[{"required":["a"]},{"properties":{"a":{"type":"integer"}}}]}"#,
        &[r#"{"a":1}"#, r#"{"a":"1"}"#, "{}"],
    ),
    (r#"{"not":{"type":["string","null"]}}"#, &["1", r#""a""#, "null"]),
    (
        r#"{"if":{"properties":{"country":{"const":"DE"}},"required":["country"]},"then":{"properties":{"zip":{"pattern":"^[0-9]{5}$"}}},"else":{"properties":{"zip":{"type":"string"}}}}"#,
        &[
            r#"{"country":"DE","zip":"12345"}"#,
            r#"{"country":"DE","zip":"1"}"#,
            r#"{"zip":"1"}"#,
            r#"{"zip":1}"#,
        ],
    ),
    (
        r#"{"patternProperties":{"^x-":{"type":"string"},"[0-9]$":{"minimum":3}},"properties":{"x-1":{"minLength":2}},"additionalProperties":{"type":"boolean"}}"#,
        &[r#"{"x-a":"b","n5":3,"t":true}"#, r#"{"x-1":"b"}"#, r#"{"n5":2}"#, r#"{"t":1}"#],
    ),
    (
        r#"{"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}"#,
        &[r#"["a",1]"#, r#"["a"]"#, r#"["a",1,2]"#, r#"[1]"#],
    ),
    (
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":{"type":"integer"}}"#,
        &[r#"["a",1]"#, r#"["a","b"]"#],
    ),
    (
        r#"{"contains":{"type":"integer"},"minContains":2,"maxContains":3}"#,
        &["[1,2]", "[1]", "[1,2,3,4]", r#"["a",1,2]"#],
    ),
    (
        r#"{"propertyNames":{"pattern":"^[a-z]+$","maxLength":3},"minProperties":1,"maxProperties":2}"#,
        &[r#"{"ab":1}"#, r#"{"A":1}"#, "{}", r#"{"a":1,"b":2,"c":3}"#],
    ),
    (
        r#"{"dependentRequired":{"a":["b","c"]},"dependentSchemas":{"d":{"required":["e"]}}}"#,
        &[r#"{"a":1,"b":1,"c":1}"#, r#"{"a":1,"b":1}"#, r#"{"d":1}"#, r#"{"d":1,"e":1}"#],
    ),
    (
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"minProperties":3}}}"#,
        &[r#"{"a":1}"#, r#"{"a":1,"b":1}"#, r#"{"c":1}"#],
    ),
    (
        r#"{"allOf":[{"properties":{"a":true}},{"anyOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]},{"properties":{"c":true}}]}],"unevaluatedProperties":false}"#,
        &[
            r#"{"a":1,"b":2}"#,
            r#"{"a":1,"b":"x"}"#,
            r#"{"a":1,"c":1}"#,
            r#"{"z":1}"#,
            r#"{"b":1,"c":1}"#,
        ],
    ),
    (
        r#"{"prefixItems":[{"type":"string"}],"contains":{"type":"integer"},"unevaluatedItems":false}"#,
        &[r#"["a",1]"#, r#"["a",1,"b"]"#, r#"["a"]"#],
    ),
    (
        r##"{"$id":"https://example.com/root.json","$defs":{"p":{"$id":"part.json","$anchor":"it","type":"integer","$defs":{"q":{"type":"null"}}}},"properties":{"a":{"$ref":"part.json"},"b":{"$ref":"https://example.com/part.json#it"},"c":{"$ref":"part.json#/$defs/q"}}}"##,
        &[r#"{"a":1,"b":2,"c":null}"#, r#"{"a":"x"}"#, r#"{"b":"x"}"#, r#"{"c":0}"#],
    ),
    (
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s","maxLength":1}}}"##,
        &[r#"{"a":"long"}"#, r#"{"a":1}"#],
    ),
    (
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","minimum":3,"exclusiveMinimum":true}"#,
        &["3", "4"],
    ),
    (r#"{"pattern":"^\\p{Lu}\\d+(-[\\w.]+)?$"}"#, &[r#""A1""#, r#""a1""#, r#""Ä12-a.b""#, "7"]),
    (r#"{"type":"string","format":"date"}"#, &[r#""2026-01-01""#, r#""no date""#]),
    (
        r#"{"minimum":-1e30,"maximum":18446744073709551615}"#,
        &["18446744073709551615", "-1e31", "1e20"],
    ),
];

struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("{url} is not fetched").into())
    }
}

/// The same schema, read by both.
struct Both {
    ours: Schema,
    theirs: (Schemas, boon::SchemaIndex),
}

impl Both {
    fn of(text: &str) -> Self {
        let document: Value = serde_json::from_str(text).unwrap();
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(Nothing));
        compiler.add_resource("https://example.com/root.json", document).unwrap();
        let mut schemas = Schemas::new();
        let index = compiler.compile("https://example.com/root.json", &mut schemas).unwrap();
        Self { ours: Schema::parse(text).unwrap(), theirs: (schemas, index) }
    }

    fn compare(&self, schema: &str, value: &Value) {
        let ours = self.ours.check(value);
        let theirs = self.theirs.0.validate(value, self.theirs.1).is_ok();
        assert_eq!(ours.is_ok(), theirs, "{schema}\n{value}\n{ours:?}");
    }
}

#[test]
fn json_schema_validation_agrees_with_boon_on_listed_cases() {
    for (schema, values) in CASES {
        let both = Both::of(schema);
        for value in *values {
            both.compare(schema, &serde_json::from_str(value).unwrap());
        }
    }
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-5_i64..20).prop_map(Value::from),
        (-500_i64..2000).prop_map(|cents| json!(cents as f64 / 100.0)),
        prop::sample::select(vec!["", "a", "b", "DE", "12345", "red", "A1", "x-y", "äöü"])
            .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "a", "b", "c", "d", "e", "kind", "x", "y", "name", "age", "zip", "country", "x-1", "n5",
        "value", "children",
    ]);
    leaf().prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..5).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

/// A value with one of its parts replaced.
fn spoiled(value: &Value, at: usize, by: &Value) -> Value {
    match value {
        Value::Object(object) if !object.is_empty() => {
            let nth = at % object.len();
            let member = |(number, (name, part)): (usize, (&String, &Value))| {
                let part =
                    if number == nth { spoiled(part, at / object.len(), by) } else { part.clone() };
                (name.clone(), part)
            };
            object.iter().enumerate().map(member).collect()
        }
        Value::Array(items) if !items.is_empty() => {
            let nth = at % items.len();
            let item = |(number, part): (usize, &Value)| {
                if number == nth { spoiled(part, at / items.len(), by) } else { part.clone() }
            };
            items.iter().enumerate().map(item).collect()
        }
        _ => by.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn json_schema_validation_agrees_with_boon_on_generated_values(values in prop::collection::vec((value(), any::<usize>()), 8)) {
        for (schema, near) in CASES {
            let both = Both::of(schema);
            for (number, (value, at)) in values.iter().enumerate() {
                both.compare(schema, value);
                let near: Value = serde_json::from_str(near[number % near.len()]).unwrap();
                both.compare(schema, &spoiled(&near, *at, value));
            }
        }
    }

    /// Reading takes any text without falling over.
    #[test]
    fn json_schema_parser_never_panics_on_any_text(value in value(), text in r#"[\[\]{}":,$a-z0-9 ]{0,60}"#) {
        let _verdict = Schema::parse(&text);
        if let Ok(schema) = Schema::parse(&value.to_string()) {
            let _verdict = schema.find_value(&text);
        }
    }
}
