//! What an editor shows of a call: what it does in a few words, of which kind it is, and which files it is
//! about. For show only: what a call may do is judged elsewhere.

use std::path::{Component, Path, PathBuf};

use gnoma_core::{ToolCall, cut, json_value::json, names::escape_path};
use serde_json::Value;

/// Longest title, in characters.
const MAX_TITLE_CHARS: usize = 120;
/// Larger arguments are not sent along.
const MAX_INPUT_BYTES: usize = 256 << 10;
/// Bytes of a text that are shown.
const MAX_SHOWN_BYTES: usize = 64 << 10;
/// Arguments that say most of a call, the most telling first.
const TELLING: [&str; 9] =
    ["command", "path", "pattern", "question", "url", "query", "name", "action", "id"];

/// The protocol's kind of a tool.
pub(crate) fn kind(tool: &str) -> &'static str {
    match tool {
        "fs.read" | "read_result" | "skill" => "read",
        "fs.ls" | "fs.glob" | "fs.grep" => "search",
        "fs.edit" | "fs.write" => "edit",
        "bash" | "job" => "execute",
        "elf.spawn" | "elf" | "plan" => "think",
        _ if tool.starts_with("web") => "fetch",
        _ => "other",
    }
}

/// The call in one line.
pub(crate) fn title(call: &ToolCall) -> String {
    let arguments = arguments(call);
    let whole = TELLING.iter().find_map(|name| arguments.get(*name)?.as_str()).unwrap_or_default();
    let path = || escape_path(Path::new(whole.trim_end()));
    let detail = whole.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let title = match call.name.as_str() {
        "bash" if !detail.is_empty() => detail.to_owned(),
        "fs.read" => format!("Read {}", path()),
        "fs.write" => format!("Write {}", path()),
        "fs.edit" => format!("Edit {}", path()),
        "fs.ls" => format!("List {}", if detail.is_empty() { "." } else { detail }),
        "fs.glob" => format!("Find {}", argument(&arguments, "pattern")),
        "fs.grep" => format!("Search for {}", argument(&arguments, "pattern")),
        "ask" => format!("Ask: {detail}"),
        "elf.spawn" => tasks(&arguments),
        "plan" => "Plan".to_owned(),
        name => format!("{name} {detail}"),
    };
    cut::head_chars(title.trim(), MAX_TITLE_CHARS).to_owned()
}

/// A title in which files that were mentioned have their names, not their paths: `@/work/src/a.rs` is `@a.rs`, and
/// `[@a.rs](/work/src/a.rs)`, too.
pub(crate) fn without_paths(title: &str) -> String {
    let word = |word: &str| {
        if let Some((name, _)) = word.strip_prefix("[@").and_then(|rest| rest.split_once("](")) {
            let end = if word.ends_with(')') { "" } else { word.rsplit(')').next().unwrap_or("") };
            return format!("@{name}{end}");
        }
        match word.strip_prefix("@/").and_then(|path| path.trim_end_matches('/').rsplit('/').next())
        {
            Some(name) => format!("@{name}"),
            None => word.to_owned(),
        }
    };
    title.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What sub-agents are to do.
fn tasks(arguments: &Value) -> String {
    let tasks = arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice);
    let tasks = tasks.unwrap_or_default();
    let first = tasks.first().map(|task| argument(task, "task")).unwrap_or_default();
    let first = first.lines().next().unwrap_or_default();
    match tasks.len() {
        0 | 1 => format!("Elf: {first}"),
        count => format!("{count} elfs: {first}, …"),
    }
}

/// What each sub-agent is to do, as content of the call.
fn task_list(arguments: &Value) -> Value {
    let tasks = arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice);
    let line = |task: &Value| {
        let who =
            ["name", "agent"].map(|of| argument(task, of)).into_iter().find(|it| !it.is_empty());
        let who = who.map(|who| format!("{who}: ")).unwrap_or_default();
        format!("{who}{}\n", argument(task, "task").trim())
    };
    let text: String = tasks.unwrap_or_default().iter().map(line).collect();
    json!({ "type": "content", "content": { "type": "text", "text": fenced(&text) } })
}

fn argument<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The arguments, where they are JSON and not too large.
pub(crate) fn input(call: &ToolCall) -> Option<Value> {
    (call.arguments.get().len() <= MAX_INPUT_BYTES).then(|| arguments(call))
}

fn arguments(call: &ToolCall) -> Value {
    call.arguments.read().unwrap_or_default()
}

/// The file or folder that a call names.
pub(crate) fn path(call: &ToolCall, cwd: &str) -> Option<String> {
    let arguments = arguments(call);
    let path = arguments.get("path")?.as_str().filter(|path| !path.is_empty())?;
    Some(absolute(cwd, path))
}

/// Where the call is at work, for editors that follow.
pub(crate) fn locations(call: &ToolCall, cwd: &str) -> Vec<Value> {
    let Some(path) = path(call, cwd) else { return Vec::new() };
    // Lines are counted from one, and `offset` is how many are skipped.
    let line = arguments(call).get("offset").and_then(Value::as_u64).map(|skipped| skipped + 1);
    let line = line.filter(|_| call.name == "fs.read");
    vec![match line {
        Some(line) => json!({ "path": path, "line": line }),
        None => json!({ "path": path }),
    }]
}

/// What a call is about to change, as far as its arguments say it: of a file that is written whole it is not
/// known what was there before.
pub(crate) fn changes(call: &ToolCall, cwd: &str) -> Vec<Value> {
    if call.arguments.get().len() > MAX_INPUT_BYTES {
        return Vec::new();
    }
    if call.name == "elf.spawn" {
        return vec![task_list(&arguments(call))];
    }
    let Some(path) = path(call, cwd) else { return Vec::new() };
    let change = |old: Option<&str>, new: &str| json!({ "type": "diff", "path": path, "oldText": old, "newText": new });
    let arguments = arguments(call);
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    match call.name.as_str() {
        "fs.write" => {
            text(&arguments, "content").map(|new| change(None, &new)).into_iter().collect()
        }
        "fs.edit" => {
            let several = arguments.get("edits").and_then(Value::as_array);
            let edits = several.map_or_else(|| vec![&arguments], |edits| edits.iter().collect());
            let edit = |edit: &Value| {
                Some(change(Some(&text(edit, "old_string")?), &text(edit, "new_string")?))
            };
            edits.into_iter().filter_map(edit).collect()
        }
        _ => Vec::new(),
    }
}

/// The path as it is seen from the root, without `.` and `..`. Links are not looked at.
pub(crate) fn absolute(cwd: &str, path: &str) -> String {
    let mut whole = PathBuf::new();
    for part in Path::new(cwd).join(path).components() {
        match part {
            Component::CurDir => (),
            Component::ParentDir => {
                whole.pop();
            }
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => whole.push(part),
        }
    }
    whole.display().to_string()
}

/// Text that is shown as it is where Markdown is read.
pub(crate) fn fenced(text: &str) -> String {
    let shown = cut::head(text, MAX_SHOWN_BYTES);
    let mut fence = "```".to_owned();
    while shown.contains(&fence) {
        fence.push('`');
    }
    let more = if shown.len() < text.len() { "\n…" } else { "" };
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{shown}{end}{fence}{more}")
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson};

    use super::*;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall::new(CallId::new("c"), name, RawJson::parse(arguments).unwrap())
    }

    #[test]
    fn a_call_is_told_in_a_line() {
        for (name, arguments, expected) in [
            ("bash", r#"{"command":"\n  cargo test\n  ls"}"#, "cargo test"),
            ("fs.edit", r#"{"path":"src/a.rs"}"#, "Edit src/a.rs"),
            ("fs.grep", r#"{"pattern":"fn x","path":"src"}"#, "Search for fn x"),
            ("fs.ls", "{}", "List ."),
            ("mcp.files.find", r#"{"query":"x"}"#, "mcp.files.find x"),
            ("bash", "[]", "bash"),
            ("elf.spawn", r#"{"tasks":[{"task":"read"},{"task":"write"}]}"#, "2 elfs: read, …"),
        ] {
            assert_eq!(title(&call(name, arguments)), expected);
        }
        assert!(
            title(&call("bash", &format!(r#"{{"command":"{}"}}"#, "x".repeat(900)))).len() <= 120
        );
    }

    #[test]
    fn title_of_a_session_names_files_without_their_paths() {
        for (title, expected) in [
            ("fix @/home/me/p/src/a.rs please", "fix @a.rs please"),
            ("see [@a.rs](/home/me/p/src/a.rs), it fails", "see @a.rs, it fails"),
            ("look at @/home/me/p/", "look at @p"),
            ("ask @ada about a/b", "ask @ada about a/b"),
            ("", ""),
        ] {
            assert_eq!(without_paths(title), expected);
        }
    }

    #[test]
    fn arguments_say_what_will_change() {
        let edit =
            r#"{"path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":"z"}]}"#;
        let change = |old: Option<&str>, new: &str| {
            vec![json!({ "type": "diff", "path": "/p/a", "oldText": old, "newText": new })]
        };
        assert_eq!(changes(&call("fs.edit", edit), "/p"), change(Some("x"), "y"));
        let write = call("fs.write", r#"{"path":"a","content":"hi"}"#);
        assert_eq!(changes(&write, "/p"), change(None, "hi"));
        assert!(changes(&call("bash", r#"{"command":"ls","path":"a"}"#), "/p").is_empty());
    }

    #[test]
    fn places_are_absolute() {
        let read = call("fs.read", r#"{"path":"./src/../a.rs","offset":9}"#);
        assert_eq!(locations(&read, "/p"), [json!({ "path": "/p/a.rs", "line": 10_u64 })]);
        let write = call("fs.write", r#"{"path":"/x/y"}"#);
        assert_eq!(locations(&write, "/p"), [json!({ "path": "/x/y" })]);
        assert_eq!(absolute("/p", "../../.."), "/");
    }
}
