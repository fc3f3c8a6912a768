//! The words for tools that people read.

use std::{borrow::Cow, path::Path};

use serde_json::{Map, Value};

use crate::{message::ToolCall, names::escape_path};

/// The word for a tool that people read in place of its name: `Read` for `fs.read`. A tool of an MCP server is named
/// `server: tool`; any other name stays as it is.
#[must_use]
pub fn tool_label(name: &str) -> Cow<'_, str> {
    let label = match name {
        "bash" => "Bash",
        "fs.read" => "Read",
        "fs.write" => "Write",
        "fs.edit" => "Edit",
        "fs.ls" => "List",
        "fs.glob" => "Find",
        "fs.grep" => "Search",
        "elf.spawn" => "Start elfs",
        "plan" => "Plan",
        "ask" => "Ask",
        "skill" => "Skill",
        other => {
            return match split_mcp_name(other) {
                Some((server, tool)) => Cow::Owned(format!("{server}: {tool}")),
                None => Cow::Borrowed(other),
            };
        }
    };
    Cow::Borrowed(label)
}

/// Returns the MCP server and its tool that a name of a tool such as `mcp__github__search` is made of.
#[must_use]
pub fn split_mcp_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}

/// The question whether a call may run, with the verb for what it does: `Write a.txt?`.
#[must_use]
pub fn approval_question(call: &ToolCall) -> String {
    let arguments = call.arguments.read::<Map<String, Value>>().unwrap_or_default();
    let path = arguments.get("path").and_then(Value::as_str).filter(|path| !path.is_empty());
    let path = path.map(|path| escape_path(Path::new(path)));
    let (verb, without_path) = match call.name.as_str() {
        "bash" => return "Run this command?".to_owned(),
        // One that asks is named; those that are started have tasks.
        "elf.spawn" if arguments.contains_key("name") => return "Let the elf do this?".to_owned(),
        "elf.spawn" => return "Start elfs?".to_owned(),
        "fs.read" => ("Read", "Read a file?"),
        "fs.write" => ("Write", "Write a file?"),
        "fs.edit" => ("Edit", "Edit a file?"),
        "fs.ls" => ("List", "List a folder?"),
        "fs.grep" => ("Search", "Search the project?"),
        "fs.glob" => ("Find files in", "Find files?"),
        name => return format!("Run {}?", tool_label(name)),
    };
    path.map_or_else(|| without_path.to_owned(), |path| format!("{verb} {path}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_question_names_the_tool_action() {
        let question = |name: &str, arguments: &str| {
            let arguments = crate::RawJson::parse(arguments).unwrap();
            approval_question(&ToolCall::new(crate::CallId::new("c"), name, arguments))
        };
        assert_eq!(question("fs.write", r#"{"path":"a.txt"}"#), "Write a.txt?");
        assert_eq!(question("fs.glob", r#"{"pattern":"*"}"#), "Find files?");
        assert_eq!(question("bash", "{}"), "Run this command?");
        assert_eq!(question("mcp__s__do", "{}"), "Run s: do?");
        assert_eq!(question("elf.spawn", r#"{"name":"review"}"#), "Let the elf do this?");
        assert_eq!(question("elf.spawn", r#"{"tasks":["look"]}"#), "Start elfs?");
    }

    #[test]
    fn tool_label_is_a_readable_name() {
        for (name, label) in [
            ("fs.read", "Read"),
            ("fs.grep", "Search"),
            ("bash", "Bash"),
            ("mcp__files__list_all", "files: list_all"),
            ("mcp__files", "mcp__files"),
            ("frobnicate", "frobnicate"),
        ] {
            assert_eq!(tool_label(name), label);
        }
    }
}
