//! Twenty schemas as people and programs write them, each with a value that fits and one that does not.

/// A schema and what it says of two values.
pub(super) struct Sample {
    pub schema: &'static str,
    pub good: &'static str,
    pub bad: &'static str,
}

const fn sample(schema: &'static str, good: &'static str, bad: &'static str) -> Sample {
    Sample { schema, good, bad }
}

pub(super) const SCHEMAS: [Sample; 20] = [
    sample(
        r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150}},"required":["name","age"],"additionalProperties":false}"#,
        r#"{"name":"Ada","age":36}"#,
        r#"{"name":"Ada","age":360}"#,
    ),
    sample(
        r#"{"type":"object","properties":{"project":{"type":"object","properties":{"owner":{"type":"object","properties":{"mail":{"type":"string","minLength":3}},"required":["mail"]}},"required":["owner"]}},"required":["project"]}"#,
        r#"{"project":{"owner":{"mail":"a@b"}}}"#,
        r#"{"project":{"owner":{"mail":""}}}"#,
    ),
    sample(
        r#"{"type":"object","properties":{"level":{"enum":["low","high",null]}},"required":["level"]}"#,
        r#"{"level":null}"#,
        r#"{"level":"middle"}"#,
    ),
    sample(
        r##"{"type":"object","properties":{"from":{"$ref":"#/$defs/point"},"to":{"$ref":"#/$defs/point"}},"required":["from","to"],"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}},"required":["x","y"]}}}"##,
        r#"{"from":{"x":0.5,"y":1},"to":{"x":-2,"y":1e3}}"#,
        r#"{"from":{"x":0.5,"y":1},"to":{"x":"-2","y":1}}"#,
    ),
    sample(
        r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"node":{"type":"object","properties":{"value":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["value"]}},"$ref":"#/$defs/node"}"##,
        r#"{"value":"a","children":[{"value":"b","children":[]}]}"#,
        r#"{"value":"a","children":[{"children":[]}]}"#,
    ),
    sample(
        r#"{"type":"object","properties":{"found":{"anyOf":[{"type":"string"},{"type":"object","properties":{"line":{"type":"integer"}},"required":["line"]}]}},"required":["found"]}"#,
        r#"{"found":{"line":3}}"#,
        r#"{"found":{"line":"three"}}"#,
    ),
    sample(
        r#"{"type":"object","properties":{"version":{"type":"string","pattern":"^\\d+\\.\\d+\\.\\d+$"}},"required":["version"]}"#,
        r#"{"version":"1.20.3"}"#,
        r#"{"version":"1.20"}"#,
    ),
    sample(
        r#"{"type":"array","items":{"type":"string","maxLength":8},"minItems":2,"maxItems":3,"uniqueItems":true}"#,
        r#"["a.txt","b.txt"]"#,
        r#"["a.txt","a.txt"]"#,
    ),
    sample(
        r#"{"type":"object","properties":{"price":{"type":"number","exclusiveMinimum":0,"multipleOf":0.01}},"required":["price"]}"#,
        r#"{"price":19.99}"#,
        r#"{"price":19.999}"#,
    ),
    sample(
        r#"{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1}"#,
        r#"{"a":1,"b/c~d":2}"#,
        r#"{"a":"1"}"#,
    ),
    sample(
        r#"{"oneOf":[{"type":"object","properties":{"ok":{"const":true},"value":{}},"required":["ok","value"]},{"type":"object","properties":{"ok":{"const":false},"error":{"type":"string"}},"required":["ok","error"]}]}"#,
        r#"{"ok":false,"error":"none"}"#,
        r#"{"ok":false,"value":1}"#,
    ),
    sample(
        r#"{"allOf":[{"type":"object","required":["id"]},{"properties":{"id":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}}}],"type":"object"}"#,
        r#"{"id":7,"tags":["x"]}"#,
        r#"{"id":7,"tags":["x",1]}"#,
    ),
    sample(r#"{"type":"boolean"}"#, "true", r#""yes""#),
    sample(r#"{"type":["string","null"],"maxLength":5}"#, r#""äöüßé""#, r#""too long""#),
    sample(
        r#"{"type":"object","properties":{"row":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2}},"required":["row"]}"#,
        r#"{"row":["a",1]}"#,
        r#"{"row":["a",1,2]}"#,
    ),
    sample(
        r#"{"type":"object","patternProperties":{"^test_":{"type":"boolean"}},"additionalProperties":false,"minProperties":1}"#,
        r#"{"test_a":true,"test_b":false}"#,
        r#"{"a":true}"#,
    ),
    sample(
        r#"{"type":"object","properties":{"kind":{"type":"string"},"port":{"type":"integer"}},"required":["kind"],"if":{"properties":{"kind":{"const":"tcp"}}},"then":{"required":["port"]}}"#,
        r#"{"kind":"tcp","port":80}"#,
        r#"{"kind":"tcp"}"#,
    ),
    sample(
        r#"{"type":"object","properties":{"word":{"not":{"enum":["no","none"]},"type":"string"}},"required":["word"],"dependentRequired":{"word":["lang"]}}"#,
        r#"{"word":"yes","lang":"en"}"#,
        r#"{"word":"yes"}"#,
    ),
    sample(
        r##"{"type":"object","properties":{"all":{"type":"array","items":{"$ref":"#/definitions/entry"},"contains":{"properties":{"main":{"const":true}},"required":["main"]}}},"required":["all"],"definitions":{"entry":{"type":"object","properties":{"path":{"type":"string"},"main":{"type":"boolean"}},"required":["path"]}}}"##,
        r#"{"all":[{"path":"a"},{"path":"b","main":true}]}"#,
        r#"{"all":[{"path":"a"}]}"#,
    ),
    sample(
        r#"{"type":"object","properties":{"first":{"type":"string"}},"required":["first"],"anyOf":[{"properties":{"second":{"type":"string"}}}],"unevaluatedProperties":false}"#,
        r#"{"first":"a","second":"b"}"#,
        r#"{"first":"a","third":"c"}"#,
    ),
];
