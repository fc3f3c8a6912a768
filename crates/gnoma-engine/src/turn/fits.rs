//! Whether a call's arguments can be those of its tool, and texts in them that mean something else. Pure.
//!
//! Only what no tool accepts is found here, before anyone is asked about the call: a missing required argument, or
//! a text or number in place of a list or object, or the reverse. The tool checks the rest.

use gnoma_core::{RawJson, ToolCall, ToolSpec, tool::ToolKind};
use serde_json::{Map, Value};

/// Describes for the model what is wrong with the arguments.
pub(super) fn find_argument_error(spec: &ToolSpec, call: &ToolCall) -> Option<String> {
    let schema: Value = spec.parameters.read().ok()?;
    let arguments: Value = call.arguments.read().ok()?;
    let why = match &arguments {
        Value::Object(arguments) => {
            missing_field(&schema, arguments).or_else(|| mistyped_field(&schema, arguments))
        }
        _ => Some("they are not a JSON object".to_owned()),
    }?;
    Some(format!("the arguments do not fit `{}`: {why}; nothing was done", spec.name))
}

/// The arguments with our names where they have those of other programs, with a number, a truth value, a list
/// or an object where the tool wants one and the model wrote it as a text, and with a line where a shell wants one and
/// the model wrote a list of words; `None` where it did not.
pub(super) fn normalize_arguments(spec: &ToolSpec, call: &ToolCall) -> Option<RawJson> {
    let schema: Value = spec.parameters.read().ok()?;
    let properties = schema.get("properties")?.as_object()?;
    let mut arguments: Map<String, Value> = call.arguments.read().ok()?;
    let mut is_respelt = rename_arguments(&schema, &mut arguments);
    for (name, value) in &mut arguments {
        let property = properties.get(name);
        let kind = property.and_then(|property| property.get("type")).and_then(Value::as_str);
        let is_line = spec.kind == ToolKind::Shell && name == "command" && kind == Some("string");
        let meant = match &*value {
            Value::Array(words) if is_line => join_words(words).map(Value::String),
            value => property.and_then(|property| coerce_text(property, value.as_str()?)),
        };
        if let Some(meant) = meant {
            *value = meant;
            is_respelt = true;
        }
    }
    if spec.kind == ToolKind::Shell {
        is_respelt |= enter_folder(properties, &mut arguments);
        is_respelt |= convert_milliseconds(properties, &mut arguments);
    }
    is_respelt.then(|| RawJson::from_value(&arguments).ok())?
}

/// Lets the command of a shell begin in the folder that the model names in an argument of another program's shell: to
/// leave it out would run the command elsewhere.
fn enter_folder(properties: &Map<String, Value>, arguments: &mut Map<String, Value>) -> bool {
    let is_folder = |name: &&str| !properties.contains_key(*name) && arguments.contains_key(*name);
    let Some(name) = FOLDER_NAMES.into_iter().find(is_folder) else { return false };
    let (Some(folder), Some(command)) = (text_of(arguments, name), text_of(arguments, "command"))
    else {
        return false;
    };
    if !matches!(folder.as_str(), "" | "." | "./") {
        // What begins with a dash would be an option. One line, because titles of calls show only the first.
        let place = if folder.starts_with('-') { "./" } else { "" };
        let line = format!("cd {} || exit; {command}", quote_word(&format!("{place}{folder}")));
        arguments.insert("command".to_owned(), Value::String(line));
    }
    arguments.shift_remove(name);
    true
}

/// Turns the time limit of another program's shell, in milliseconds, into ours, in seconds.
fn convert_milliseconds(
    properties: &Map<String, Value>,
    arguments: &mut Map<String, Value>,
) -> bool {
    let is_meant = properties.contains_key(TIMEOUT) && !arguments.contains_key(TIMEOUT);
    let limit = arguments.get(TIMEOUT_MS).and_then(Value::as_u64).filter(|_| is_meant);
    let Some(limit) = limit else { return false };
    arguments.shift_remove(TIMEOUT_MS);
    let seconds = limit.div_ceil(1_000).min(MAX_TIMEOUT_S);
    arguments.insert(TIMEOUT.to_owned(), seconds.into());
    true
}

fn text_of(arguments: &Map<String, Value>, name: &str) -> Option<String> {
    arguments.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Names that other programs give to arguments, and what ours are called.
const OTHER_NAMES: [(&str, &[&str]); 7] = [
    (
        "path",
        &["file_path", "filepath", "filePath", "filename", "file", "absolute_path", "target_file"],
    ),
    ("command", &["cmd", "script", "shell_command"]),
    ("content", &["contents", "file_text", "text"]),
    ("old_string", &["old_str", "old_text", "oldString"]),
    ("new_string", &["new_str", "new_text", "newString"]),
    ("pattern", &["query", "regex", "search"]),
    (BACKGROUND, &["run_in_background", "is_background", "isBackground"]),
];
/// The only argument that is renamed without being required: a server that is not in the background never ends.
const BACKGROUND: &str = "background";
/// Names that other programs give to the folder in which a command runs. Ours runs where the session is.
const FOLDER_NAMES: [&str; 6] =
    ["workdir", "cwd", "working_directory", "workingDirectory", "directory", "dir_path"];

/// The time limit of a command in our shell, in seconds.
const TIMEOUT: &str = "timeout";
/// The time limit of a command in other programs' shells, in milliseconds.
const TIMEOUT_MS: &str = "timeout_ms";
/// The longest time limit of a command, in seconds.
const MAX_TIMEOUT_S: u64 = 60 * 60;

/// Gives arguments that the tool does not know the names of those that they can only mean.
fn rename_arguments(schema: &Value, arguments: &mut Map<String, Value>) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let (Some(properties), Some(required)) = (properties, required) else { return false };
    let mut is_renamed = false;
    for wanted in required.iter().filter_map(Value::as_str).chain([BACKGROUND]) {
        let others =
            OTHER_NAMES.iter().find(|(name, _)| *name == wanted).map(|(_, others)| *others);
        let is_meant = |name: &&String| {
            others.is_some_and(|others| others.contains(&name.as_str()))
                && properties.contains_key(wanted)
                && !properties.contains_key(*name)
        };
        let mut meant = arguments.keys().filter(is_meant);
        let (Some(name), None) = (meant.next().cloned(), meant.next()) else { continue };
        if !arguments.contains_key(wanted)
            && let Some(value) = arguments.shift_remove(&name)
        {
            arguments.insert(wanted.to_owned(), value);
            is_renamed = true;
        }
    }
    is_renamed
}

/// Returns the value that a text means if the schema wants a value other than text.
fn coerce_text(property: &Value, text: &str) -> Option<Value> {
    let wanted = property.get("type")?.as_str()?;
    let text = text.trim();
    match wanted {
        "boolean" if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        "boolean" if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        "integer" | "number" => gnoma_core::json::from_str(text).ok().filter(Value::is_number),
        "array" => gnoma_core::json::from_str(text).ok().filter(Value::is_array),
        "object" => gnoma_core::json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

/// Returns the line of a shell that a list of words means: the words of one program, or a shell with a line, as in
/// `["bash", "-lc", "ls | wc"]`.
fn join_words(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        [] => None,
        ["bash" | "sh" | "zsh" | "/bin/bash" | "/bin/sh", "-c" | "-lc", line] => {
            Some((*line).to_owned())
        }
        // One element is a line that stands in a list.
        [line] => Some((*line).to_owned()),
        words => Some(words.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" ")),
    }
}

fn quote_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@%+,-".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn missing_field(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let mut absent = required.filter(|name| !arguments.contains_key(*name));
    absent.next().map(|name| format!("missing field `{name}`"))
}

fn mistyped_field(schema: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    arguments.iter().find_map(|(name, value)| {
        let wanted = properties.get(name)?.get("type")?.as_str()?;
        let fits = match wanted {
            "array" => value.is_array() || value.is_null(),
            "object" => value.is_object() || value.is_null(),
            "string" | "integer" | "number" | "boolean" => !value.is_array() && !value.is_object(),
            _ => true,
        };
        // Some write a list or an object as a text, which tools read.
        let is_text = value.is_string() && matches!(wanted, "array" | "object");
        (!fits && !is_text).then(|| format!("`{name}` must be of type {wanted}"))
    })
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        CallId,
        tool::{Access, Tier},
    };

    use super::*;

    fn spec() -> ToolSpec {
        let schema = r#"{"type":"object","required":["path"],"properties":{"path":{"type":"string"},
            "lines":{"type":"array"},"limit":{"type":"integer"},"any":{"type":["string","null"]},
            "all":{"type":"boolean"},"more":{"type":"object"}}}"#;
        ToolSpec {
            name: "fs.read".to_owned(),
            description: String::new(),
            parameters: RawJson::parse(schema).unwrap(),
            access: Access::Read,
            touches: [].into(),
            kind: ToolKind::Other,
            tier: Tier::Lean,
        }
    }

    #[test]
    fn string_arguments_are_coerced_to_the_types_of_the_tool_schema() {
        for (written, meant) in [
            (
                r#"{"path":"7","limit":" 20 ","all":"True","any":"1"}"#,
                r#"{"path":"7","limit":20,"all":true,"any":"1"}"#,
            ),
            (
                r#"{"path":"true","lines":"[1, {\"a\": 2}]","more":"{\"x\":\"\\u0061\"}"}"#,
                r#"{"path":"true","lines":[1,{"a":2}],"more":{"x":"a"}}"#,
            ),
            (r#"{"path":"7","limit":"many","all":"1","lines":"7","unknown":"7"}"#, ""),
            (r#"{"path":"7","limit":3}"#, ""),
            (r#"{"file_path":"a","limit":3}"#, r#"{"limit":3,"path":"a"}"#),
            (r#"{"file_path":"a","file":"b"}"#, ""),
            (r#"{"path":"a","file":"b"}"#, ""),
            (r#"["7", "20"]"#, ""),
        ] {
            let arguments = RawJson::parse(written).unwrap();
            let call = ToolCall::new(CallId::new("c"), "fs.read", arguments);
            let found = normalize_arguments(&spec(), &call);
            assert_eq!(found.as_ref().map_or("", RawJson::get), meant, "{written}");
        }
    }

    #[test]
    fn shell_arguments_of_other_programs_are_translated_only_for_a_shell() {
        let schema = r#"{"type":"object","required":["command"],"properties":{"command":{"type":"string"},
            "background":{"type":"boolean"},"timeout":{"type":"integer"}}}"#;
        let parameters = RawJson::parse(schema).unwrap();
        let shell = ToolSpec { kind: ToolKind::Shell, parameters, ..spec() };
        for (written, meant) in [
            (r#"{"command":["bash","-lc","ls | wc"]}"#, r#"{"command":"ls | wc"}"#),
            (r#"{"cmd":["ls -la"]}"#, r#"{"command":"ls -la"}"#),
            (r#"{"command":["rm","a b","it's",""]}"#, r#"{"command":"rm 'a b' 'it'\\''s' ''"}"#),
            (r#"{"command":["echo","$HOME;ls"]}"#, r#"{"command":"echo '$HOME;ls'"}"#),
            (r#"{"command":[]}"#, ""),
            (r#"{"command":["a",1]}"#, ""),
            (
                r#"{"command":["make"],"workdir":"a b","timeout_ms":9}"#,
                r#"{"command":"cd 'a b' || exit; make","timeout":1}"#,
            ),
            (r#"{"command":"ls","cwd":"-x"}"#, r#"{"command":"cd ./-x || exit; ls"}"#),
            (r#"{"command":"ls","timeout_ms":120000}"#, r#"{"command":"ls","timeout":120}"#),
            (r#"{"command":"ls","timeout":2,"timeout_ms":9}"#, ""),
            (r#"{"command":"make","cwd":"."}"#, r#"{"command":"make"}"#),
            (r#"{"command":"make","workdir":7}"#, ""),
        ] {
            let call = ToolCall::new(CallId::new("c"), "bash", RawJson::parse(written).unwrap());
            let found = normalize_arguments(&shell, &call);
            assert_eq!(found.as_ref().map_or("", RawJson::get), meant, "{written}");
            let other = ToolSpec { kind: ToolKind::Other, ..shell.clone() };
            let found = normalize_arguments(&other, &call);
            assert!(!found.is_some_and(|found| found.get().contains(":\"")), "{written}");
        }
        let server = r#"{"command":"serve","run_in_background":"true"}"#;
        let call = ToolCall::new(CallId::new("c"), "bash", RawJson::parse(server).unwrap());
        let found = normalize_arguments(&shell, &call).unwrap();
        assert_eq!(found.get(), r#"{"command":"serve","background":true}"#);
    }

    #[test]
    fn argument_error_names_only_values_the_tool_schema_rejects() {
        let spec = spec();
        for (arguments, why) in [
            (r#"{"path":"a"}"#, ""),
            (r#"{"path":"a","limit":"3","lines":"[1]","any":7,"more":{}}"#, ""),
            (r#"{"path":"a","lines":null}"#, ""),
            ("{}", "missing field `path`"),
            (r#"{"path":["a"]}"#, "`path` must be of type string"),
            (r#"{"path":"a","lines":3}"#, "`lines` must be of type array"),
            (r#"{"path":"a","limit":{}}"#, "`limit` must be of type integer"),
        ] {
            let arguments = RawJson::parse(arguments).unwrap();
            let call = ToolCall::new(CallId::new("c"), "fs.read", arguments);
            let found = find_argument_error(&spec, &call).unwrap_or_default();
            assert!(found.contains(why) && found.is_empty() == why.is_empty(), "{found} {why}");
        }
    }
}
