//! The words for tools that people read.

use std::borrow::Cow;

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
        "elf.spawn" => "Start",
        "plan" => "Plan",
        "ask" => "Ask",
        "skill" => "Skill",
        other => {
            let of_server = other.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
            return match of_server {
                Some((server, tool)) => Cow::Owned(format!("{server}: {tool}")),
                None => Cow::Borrowed(other),
            };
        }
    };
    Cow::Borrowed(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_named_in_words() {
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
