//! Which tool a call means that names none of those on offer. Pure.
//!
//! Models know tools by the names of other programs: `Bash`, `read_file`, `functions.bash`. Where exactly one
//! tool on offer can be meant, the call is one of that tool, from the history to the permission.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::ToolSpec;

/// Prefixes that some servers and models put before a tool name.
const PREFIXES: [&str; 8] =
    ["functions", "function", "default_api", "tools", "tool", "mcp", "repo_browser", "container"];
/// Signs between such a word and the name.
const PREFIX_ENDS: [char; 3] = ['.', ':', '/'];
/// The same, where the word may be a part of the name as well.
const DOUBTFUL_END: char = '_';
/// The beginning of marks that some models leave in a name: `bash<|channel|>commentary`.
const MARK: &str = "<|";
/// Names that other programs give to tools, in small letters without signs, and what ours is called.
const OTHER_NAMES: [(&str, &[&str]); 7] = [
    (
        "bash",
        &[
            "shell",
            "sh",
            "runshellcommand",
            "runcommand",
            "executecommand",
            "execcommand",
            "execute",
            "exec",
            "terminal",
            "runterminalcmd",
            "bashtool",
            "localshell",
            "shellcommand",
            "runterminalcommand",
            "executebash",
            "runbash",
            "bashcommand",
            "localshellcall",
        ],
    ),
    (
        "fs.read",
        &[
            "readfile",
            "view",
            "viewfile",
            "openfile",
            "cat",
            "readtool",
            "getfile",
            "fileread",
            "fsreadfile",
        ],
    ),
    (
        "fs.write",
        &[
            "writefile",
            "createfile",
            "create",
            "savefile",
            "newfile",
            "writetool",
            "writetofile",
            "filewrite",
            "fswritefile",
        ],
    ),
    (
        "fs.edit",
        &[
            "editfile",
            "strreplace",
            "replace",
            "searchreplace",
            "replaceinfile",
            "edittool",
            "multiedit",
            "fileedit",
            "fseditfile",
        ],
    ),
    ("fs.ls", &["listdir", "listdirectory", "listfiles", "list", "dir"]),
    (
        "fs.grep",
        &["search", "searchfiles", "searchfilecontent", "ripgrep", "rg", "greptool", "grepsearch"],
    ),
    ("fs.glob", &["findfiles", "filesearch", "find", "globtool", "globsearch"]),
];

/// Returns the name of the only tool of `specs` that `name` can mean; `None` if it is one, or none or several fit.
pub(super) fn meant_tool(name: &str, specs: &HashMap<String, Arc<ToolSpec>>) -> Option<String> {
    if specs.contains_key(name) {
        return None;
    }
    let (bare, is_surely_bare) = bare_name(name);
    let wanted = normalize_name(bare);
    if wanted.is_empty() {
        return None;
    }
    let other = OTHER_NAMES.iter().find(|(_, names)| names.contains(&wanted.as_str()));
    // A part of a name that only may be a prefix is no reason to look further than for the rest of it.
    let other = other.filter(|_| is_surely_bare);
    let all = normalize_name(name);
    let ranks: [&dyn Fn(&str) -> bool; 4] = [
        &|own| normalize_name(own) == all,
        &|own| own == bare || normalize_name(own) == wanted,
        &|own| {
            let last = own.rsplit('.').next().filter(|last| is_surely_bare && *last != own);
            last.is_some_and(|last| normalize_name(last) == wanted)
        },
        &|own| other.is_some_and(|(meant, _)| own == *meant),
    ];
    for fits in ranks {
        let mut found = specs.keys().filter(|own| fits(own));
        if let Some(own) = found.next() {
            return found.next().is_none().then(|| own.clone());
        }
    }
    None
}

/// The name without what stands before and behind it (of `functions.bash:0`, `bash`), and whether it is surely that.
fn bare_name(name: &str) -> (&str, bool) {
    let name = name.trim();
    let name = match name.split_once(MARK) {
        Some(("", after)) => after.rsplit_once("|>").map_or(name, |(_, name)| name),
        Some((before, _)) => before,
        None => name,
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.rsplit_once(':').filter(|(_, end)| is_number(end)).map_or(name, |(it, _)| it);
    let mut after = PREFIXES.iter().filter_map(|prefix| name.strip_prefix(prefix));
    if let Some(rest) = after.clone().find_map(|rest| rest.strip_prefix(PREFIX_ENDS)) {
        return (rest, true);
    }
    after.find_map(|rest| rest.strip_prefix(DOUBTFUL_END)).map_or((name, true), |it| (it, false))
}

fn normalize_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use gnoma_core::{
        RawJson,
        tool::{Access, Tier, ToolKind},
    };

    use super::*;

    fn specs(names: &[&str]) -> HashMap<String, Arc<ToolSpec>> {
        let spec = |name: &&str| {
            let spec = ToolSpec {
                name: (*name).to_owned(),
                description: String::new(),
                parameters: RawJson::empty_object(),
                access: Access::Read,
                touches: [].into(),
                kind: ToolKind::Other,
                tier: Tier::Lean,
            };
            ((*name).to_owned(), Arc::new(spec))
        };
        names.iter().map(spec).collect()
    }

    #[test]
    fn foreign_tool_name_maps_to_the_only_matching_tool() {
        let specs = specs(&["bash", "fs.read", "fs.write", "fs.edit", "fs.ls", "mcp__s__hello"]);
        for (name, meant) in [
            ("Bash", "bash"),
            ("functions.bash", "bash"),
            ("default_api.fs_read", "fs.read"),
            ("Read", "fs.read"),
            ("read_file", "fs.read"),
            ("fs_write", "fs.write"),
            ("FS-Write", "fs.write"),
            ("write", "fs.write"),
            ("str_replace", "fs.edit"),
            ("LS", "fs.ls"),
            ("run_shell_command", "bash"),
            ("mcp__S__Hello", "mcp__s__hello"),
            ("bash<|channel|>commentary", "bash"),
            ("<|constrain|>bash", "bash"),
            ("functions.bash:0", "bash"),
            ("functions_bash", "bash"),
            ("tools/bash", "bash"),
            ("mcp_bash", "bash"),
            ("repo_browser.read_file", "fs.read"),
            ("run_terminal_command", "bash"),
            ("execute_bash", "bash"),
            ("write_to_file", "fs.write"),
            ("file_read", "fs.read"),
            ("fs.read_file", "fs.read"),
            ("exec_command", "bash"),
            ("MultiEdit", "fs.edit"),
            ("create", "fs.write"),
        ] {
            assert_eq!(meant_tool(name, &specs).as_deref(), Some(meant), "{name}");
        }
        for name in ["bash", "fs.read", "delete", "", "functions.", "grep", "hello"] {
            assert_eq!(meant_tool(name, &specs), None, "{name}");
        }
    }

    #[test]
    fn tool_name_prefix_is_not_stripped_if_it_may_be_part_of_the_name() {
        let specs = specs(&["bash", "fs.read", "fs.grep", "fs.ls", "mcp__github__search"]);
        assert_eq!(meant_tool("mcp_github_search", &specs).as_deref(), Some("mcp__github__search"));
        for name in ["mcp_fs_search", "tool_search", "mcp_list", "mcp_read"] {
            assert_eq!(meant_tool(name, &specs), None, "{name}");
        }
    }

    #[test]
    fn ambiguous_foreign_tool_name_matches_no_tool() {
        let specs = specs(&["fs.read", "notes.read", "a_b", "a-b"]);
        for name in ["Read", "ab"] {
            assert_eq!(meant_tool(name, &specs), None, "{name}");
        }
    }
}
