//! The table of Claude Code's tools and arguments, and gnoma's tools in their place.

use gnoma_core::{RawJson, ToolSpec};
use serde_json::{Map, Value, json};

/// A tool that both have.
pub(super) struct ToolShape {
    /// The name of the tool in gnoma.
    pub(super) ours: &'static str,
    /// The name of the tool in Claude Code.
    pub(super) theirs: &'static str,
    /// Arguments that are called otherwise: ours, theirs.
    pub(super) keys: &'static [(&'static str, &'static str)],
    /// Numbers that count otherwise, by our name of the argument.
    pub(super) numbers: &'static [(&'static str, NumberConversion)],
}

/// The difference between a number in gnoma and in Claude Code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberConversion {
    /// Ours are seconds, theirs milliseconds.
    Seconds,
    /// Ours are lines to skip, theirs the number of the first line.
    Skipped,
}

impl NumberConversion {
    pub(super) fn to_theirs(self, number: i64) -> i64 {
        match self {
            Self::Seconds => number.saturating_mul(1000),
            Self::Skipped => number.saturating_add(1),
        }
    }

    pub(super) fn to_ours(self, number: i64) -> i64 {
        match self {
            Self::Seconds => number.max(0).saturating_add(999) / 1000,
            Self::Skipped => number.saturating_sub(1).max(0),
        }
    }

    fn describe_unit(self) -> &'static str {
        match self {
            Self::Seconds => "milliseconds",
            Self::Skipped => "number of the first line, from 1",
        }
    }
}

/// The name of the tool that asks a person.
const ASK: &str = "ask";
const ASK_THEIRS: &str = "AskUserQuestion";

const SHAPES: [ToolShape; 11] = [
    tool_shape(
        "bash",
        "Bash",
        &[("background", "run_in_background")],
        &[("timeout", NumberConversion::Seconds)],
    ),
    tool_shape(
        "fs.read",
        "Read",
        &[("path", "file_path")],
        &[("offset", NumberConversion::Skipped)],
    ),
    tool_shape("fs.write", "Write", &[("path", "file_path")], &[]),
    tool_shape("fs.edit", "Edit", &[("path", "file_path")], &[]),
    tool_shape("fs.grep", "Grep", &[("max_results", "head_limit")], &[]),
    tool_shape("fs.glob", "Glob", &[], &[]),
    tool_shape("fs.ls", "LS", &[], &[]),
    tool_shape("agent", "Agent", &[], &[]),
    tool_shape("skill", "Skill", &[("name", "skill"), ("arguments", "args")], &[]),
    tool_shape("web", "WebFetch", &[], &[]),
    tool_shape(ASK, ASK_THEIRS, &[], &[]),
];

const fn tool_shape(
    ours: &'static str,
    theirs: &'static str,
    keys: &'static [(&'static str, &'static str)],
    numbers: &'static [(&'static str, NumberConversion)],
) -> ToolShape {
    ToolShape { ours, theirs, keys, numbers }
}

/// The shape of a tool of ours.
pub(super) fn of_ours(name: &str) -> Option<&'static ToolShape> {
    SHAPES.iter().find(|shape| shape.ours == name)
}

impl ToolShape {
    /// Reports whether the arguments of the tool are built in another way altogether.
    pub(super) fn is_built_otherwise(&self) -> bool {
        self.ours == ASK
    }

    /// Reports whether the arguments of the tool are the same in both programs.
    pub(super) fn is_same(&self) -> bool {
        self.keys.is_empty() && self.numbers.is_empty() && !self.is_built_otherwise()
    }
}

/// Returns the name that Claude Code uses for a tool of gnoma; a tool that it does not have keeps its name.
#[must_use]
pub fn their_name(ours: &str) -> &str {
    of_ours(ours).map_or(ours, |shape| shape.theirs)
}

/// Returns the name that gnoma uses for a tool of Claude Code.
#[must_use]
pub fn our_name(theirs: &str) -> &str {
    match theirs {
        "Task" => "agent",
        "MultiEdit" => "fs.edit",
        _ => SHAPES.iter().find(|shape| shape.theirs == theirs).map_or(theirs, |shape| shape.ours),
    }
}

/// Arguments of a call of the tool that we call `ours`, as they write them.
#[must_use]
pub fn their_input(ours: &str, input: Value) -> Value {
    match (of_ours(ours), input) {
        (Some(shape), Value::Object(fields)) if shape.is_built_otherwise() => asked_theirs(&fields),
        (Some(shape), Value::Object(fields)) => {
            let field = |(name, value): (String, Value)| {
                let value = convert_number(shape, &name, value, NumberConversion::to_theirs);
                let key = shape.keys.iter().find(|(ours, _)| *ours == name);
                (key.map_or(name, |(_, theirs)| (*theirs).to_owned()), value)
            };
            fields.into_iter().map(field).collect()
        }
        (_, input) => input,
    }
}

/// Arguments of a call as they write them, as our tool of that name takes them.
#[must_use]
pub fn our_input(ours: &str, input: Value) -> Value {
    match (of_ours(ours), input) {
        (Some(shape), Value::Object(fields)) if shape.is_built_otherwise() => asked_ours(fields),
        (Some(shape), Value::Object(fields)) => {
            let field = |(name, value): (String, Value)| {
                let key = shape.keys.iter().find(|(_, theirs)| *theirs == name);
                let name = key.map_or(name, |(ours, _)| (*ours).to_owned());
                let value = convert_number(shape, &name, value, NumberConversion::to_ours);
                (name, value)
            };
            fields.into_iter().map(field).collect()
        }
        (_, input) => input,
    }
}

fn convert_number(
    shape: &ToolShape,
    ours: &str,
    value: Value,
    to: fn(NumberConversion, i64) -> i64,
) -> Value {
    let counting = shape.numbers.iter().find(|(name, _)| *name == ours);
    match (counting, value.as_i64()) {
        (Some((_, counting)), Some(number)) => to(*counting, number).into(),
        _ => value,
    }
}

/// Our one question, as their list of such.
fn asked_theirs(fields: &Map<String, Value>) -> Value {
    let choices = fields.get("choices").and_then(Value::as_array);
    let option = |label: &Value| json!({"label": label, "description": ""});
    let options: Vec<_> = choices.into_iter().flatten().map(option).collect();
    let question = fields.get("question").cloned().unwrap_or_default();
    json!({"questions": [{
        "question": question, "header": "Question", "options": options, "multiSelect": false,
    }]})
}

/// The first of their questions, as ours; what is ours already stays.
fn asked_ours(mut fields: Map<String, Value>) -> Value {
    let Some(first) = fields.get("questions").and_then(|all| all.get(0)) else {
        return Value::Object(fields);
    };
    let options = first.get("options").and_then(Value::as_array);
    let label = |option: &Value| option.get("label").cloned();
    let choices: Vec<Value> = options.into_iter().flatten().filter_map(label).collect();
    let question = first.get("question").cloned().unwrap_or_default();
    fields.remove("questions");
    json!({"question": question, "choices": choices})
}

/// A tool as they describe it to a model; what it touches and who may call it stays.
#[must_use]
pub fn their_spec(spec: &ToolSpec) -> ToolSpec {
    let Some(shape) = of_ours(&spec.name) else { return spec.clone() };
    let mut schema: Value = spec.parameters.read().unwrap_or_default();
    if shape.is_built_otherwise() {
        schema = ask_schema();
    } else {
        rename_schema(shape, &mut schema);
    }
    let parameters = RawJson::from_value(&schema).unwrap_or_else(|_| spec.parameters.clone());
    ToolSpec { name: shape.theirs.to_owned(), parameters, ..spec.clone() }
}

fn rename_schema(shape: &ToolShape, schema: &mut Value) {
    for (ours, counting) in shape.numbers {
        let about = schema.pointer_mut(&format!("/properties/{ours}"));
        if let Some(Value::Object(about)) = about {
            about.insert("description".to_owned(), counting.describe_unit().into());
        }
    }
    let theirs = |name: &str| {
        let key = shape.keys.iter().find(|(ours, _)| *ours == name);
        key.map_or_else(|| name.to_owned(), |(_, theirs)| (*theirs).to_owned())
    };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let all = std::mem::take(properties);
        *properties = all.into_iter().map(|(name, about)| (theirs(&name), about)).collect();
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        for name in required {
            *name = name.as_str().map_or(Value::Null, |name| theirs(name).into());
        }
    }
}

fn ask_schema() -> Value {
    let option = json!({"type": "object", "required": ["label"], "properties":
        {"label": {"type": "string"}, "description": {"type": "string"}}});
    let question = json!({"type": "object", "required": ["question", "options"], "properties":
        {"question": {"type": "string"}, "header": {"type": "string"},
         "options": {"type": "array", "items": option}, "multiSelect": {"type": "boolean"}}});
    json!({"type": "object", "required": ["questions"],
        "properties": {"questions": {"type": "array", "items": question, "maxItems": 1}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_arguments_round_trip_to_claude_code_format() {
        let samples = [
            (
                "bash",
                json!({"command": "ls", "timeout": 3, "background": true}),
                json!({"command": "ls", "timeout": 3000, "run_in_background": true}),
            ),
            (
                "fs.read",
                json!({"path": "a", "offset": 0, "limit": 5}),
                json!({"file_path": "a", "offset": 1, "limit": 5}),
            ),
            (
                "fs.edit",
                json!({"path": "a", "old_string": "x", "new_string": "y"}),
                json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            ),
            (
                "fs.grep",
                json!({"pattern": "x", "max_results": 9}),
                json!({"pattern": "x", "head_limit": 9}),
            ),
            ("mcp__a__b", json!({"path": "a"}), json!({"path": "a"})),
        ];
        for (name, ours, theirs) in samples {
            assert_eq!(their_input(name, ours.clone()), theirs, "{name}");
            assert_eq!(our_input(name, theirs), ours, "{name}");
        }
        assert_eq!(our_input("bash", json!({"timeout": 1})), json!({"timeout": 1}));
        assert_eq!(our_input("fs.read", json!("no object")), json!("no object"));
    }

    #[test]
    fn old_and_new_claude_code_tool_names_are_recognized() {
        for (theirs, ours) in [("Task", "agent"), ("Agent", "agent"), ("MultiEdit", "fs.edit")] {
            assert_eq!(our_name(theirs), ours);
        }
        assert_eq!(our_name("mcp__x__y"), "mcp__x__y");
        for shape in &SHAPES {
            assert_eq!(our_name(their_name(shape.ours)), shape.ours);
        }
    }

    #[test]
    fn ask_arguments_convert_to_claude_code_ask_user_question() {
        let ours = json!({"question": "Which?", "choices": ["a", "b"]});
        let theirs = their_input("ask", ours.clone());
        assert_eq!(theirs["questions"][0]["options"][1]["label"], "b");
        assert_eq!(our_input("ask", theirs), ours);
    }
}
