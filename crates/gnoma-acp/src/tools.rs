//! What an editor shows of a call: what it does in a few words, of which kind it is, and which files it is
//! about. For show only: what a call may do is judged elsewhere.

use std::path::{Component, Path, PathBuf};

use gnoma_core::{ToolCall, json_value::json, names::escape_path, text_truncation};
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
pub(crate) fn tool_kind(tool: &str) -> &'static str {
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
pub(crate) fn call_title(call: &ToolCall) -> String {
    let arguments = parse_arguments(call);
    let whole = TELLING.iter().find_map(|name| arguments.get(*name)?.as_str()).unwrap_or_default();
    let path = || escape_path(Path::new(whole.trim_end()));
    let detail = whole.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let title = match call.name.as_str() {
        "bash" if !detail.is_empty() => detail.to_owned(),
        "fs.read" => format!("Read {}", path()),
        "fs.write" => format!("Write {}", path()),
        "fs.edit" => format!("Edit {}", path()),
        "fs.ls" => format!("List {}", if detail.is_empty() { "." } else { detail }),
        "fs.glob" => format!("Find {}", text_argument(&arguments, "pattern")),
        "fs.grep" => format!("Search for {}", text_argument(&arguments, "pattern")),
        "ask" => format!("Ask: {detail}"),
        "elf.spawn" => describe_tasks(&arguments),
        "plan" => "Plan".to_owned(),
        name => format!("{name} {detail}"),
    };
    text_truncation::head_chars(title.trim(), MAX_TITLE_CHARS).to_owned()
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

/// Returns a line that says what sub-agents are to do.
fn describe_tasks(arguments: &Value) -> String {
    let tasks = arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice);
    let tasks = tasks.unwrap_or_default();
    let first = tasks.first().map(|task| text_argument(task, "task")).unwrap_or_default();
    let first = first.lines().next().unwrap_or_default();
    match tasks.len() {
        0 | 1 => format!("Elf: {first}"),
        count => format!("{count} elfs: {first}, …"),
    }
}

/// Lists what each sub-agent is to do, as content of the call.
fn task_list(arguments: &Value) -> Value {
    let tasks = arguments.get("tasks").and_then(Value::as_array).map(Vec::as_slice);
    let line = |task: &Value| {
        let who = ["name", "agent"]
            .map(|of| text_argument(task, of))
            .into_iter()
            .find(|it| !it.is_empty());
        let who = who.map(|who| format!("{who}: ")).unwrap_or_default();
        format!("{who}{}\n", text_argument(task, "task").trim())
    };
    let text: String = tasks.unwrap_or_default().iter().map(line).collect();
    json!({ "type": "content", "content": { "type": "text", "text": fence_text(&text) } })
}

fn text_argument<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The arguments, where they are JSON and not too large.
pub(crate) fn input_within_limit(call: &ToolCall) -> Option<Value> {
    (call.arguments.get().len() <= MAX_INPUT_BYTES).then(|| parse_arguments(call))
}

fn parse_arguments(call: &ToolCall) -> Value {
    call.arguments.read().unwrap_or_default()
}

/// The file or folder that a call names.
pub(crate) fn call_path(call: &ToolCall, cwd: &str) -> Option<String> {
    let arguments = parse_arguments(call);
    let path = arguments.get("path")?.as_str().filter(|path| !path.is_empty())?;
    Some(normalize_path(cwd, path))
}

/// Returns the places where the call is at work, for editors that follow.
pub(crate) fn call_locations(call: &ToolCall, cwd: &str) -> Vec<Value> {
    let Some(path) = call_path(call, cwd) else { return Vec::new() };
    // Lines are counted from one, and `offset` is how many are skipped.
    let line =
        parse_arguments(call).get("offset").and_then(Value::as_u64).map(|skipped| skipped + 1);
    let line = line.filter(|_| call.name == "fs.read");
    vec![match line {
        Some(line) => json!({ "path": path, "line": line }),
        None => json!({ "path": path }),
    }]
}

/// Returns the changes that a call is about to make, as far as its arguments tell them: for a file that is written
/// whole, the earlier content is not known.
pub(crate) fn preview_changes(call: &ToolCall, cwd: &str) -> Vec<Value> {
    if call.arguments.get().len() > MAX_INPUT_BYTES {
        return Vec::new();
    }
    if call.name == "elf.spawn" {
        return vec![task_list(&parse_arguments(call))];
    }
    let Some(path) = call_path(call, cwd) else { return Vec::new() };
    let change = |old: Option<&str>, new: &str| json!({ "type": "diff", "path": path, "oldText": old, "newText": new });
    let arguments = parse_arguments(call);
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
pub(crate) fn normalize_path(cwd: &str, path: &str) -> String {
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
pub(crate) fn fence_text(text: &str) -> String {
    let shown = text_truncation::word_prefix(text, MAX_SHOWN_BYTES);
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
    fn tool_call_title_is_one_line() {
        for (name, arguments, expected) in [
            ("bash", r#"{"command":"\n  cargo test\n  ls"}"#, "cargo test"),
            ("fs.edit", r#"{"path":"src/a.rs"}"#, "Edit src/a.rs"),
            ("fs.grep", r#"{"pattern":"fn x","path":"src"}"#, "Search for fn x"),
            ("fs.ls", "{}", "List ."),
            ("mcp.files.find", r#"{"query":"x"}"#, "mcp.files.find x"),
            ("bash", "[]", "bash"),
            ("elf.spawn", r#"{"tasks":[{"task":"read"},{"task":"write"}]}"#, "2 elfs: read, …"),
        ] {
            assert_eq!(call_title(&call(name, arguments)), expected);
        }
        assert!(
            call_title(&call("bash", &format!(r#"{{"command":"{}"}}"#, "x".repeat(900)))).len()
                <= 120
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
    fn edit_arguments_preview_a_diff() {
        let edit =
            r#"{"path":"a","edits":[{"old_string":"x","new_string":"y"},{"old_string":"z"}]}"#;
        let change = |old: Option<&str>, new: &str| {
            vec![json!({ "type": "diff", "path": "/p/a", "oldText": old, "newText": new })]
        };
        assert_eq!(preview_changes(&call("fs.edit", edit), "/p"), change(Some("x"), "y"));
        let write = call("fs.write", r#"{"path":"a","content":"hi"}"#);
        assert_eq!(preview_changes(&write, "/p"), change(None, "hi"));
        assert!(preview_changes(&call("bash", r#"{"command":"ls","path":"a"}"#), "/p").is_empty());
    }

    #[test]
    fn tool_call_locations_are_absolute_paths() {
        let read = call("fs.read", r#"{"path":"./src/../a.rs","offset":9}"#);
        assert_eq!(call_locations(&read, "/p"), [json!({ "path": "/p/a.rs", "line": 10_u64 })]);
        let write = call("fs.write", r#"{"path":"/x/y"}"#);
        assert_eq!(call_locations(&write, "/p"), [json!({ "path": "/x/y" })]);
        assert_eq!(normalize_path("/p", "../../.."), "/");
    }
}
