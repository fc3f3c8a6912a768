//! Tool calls of another program's agent: updates are put together into one call, described in words.

use gnoma_core::text_truncation;
use serde_json::Value;

use super::clean::clean_text;

/// Longest title, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Most text of a call that is kept, in bytes; so much of each side of a change, too.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Most files that a call names.
const MAX_PATHS: usize = 64;
/// Longest path or address that is taken, in bytes.
const MAX_PLACE_BYTES: usize = 4 << 10;

/// A call of an agent's tools, as far as it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentCall {
    /// The purpose of the call, in a line.
    pub title: String,
    /// The protocol's kind, such as `edit` or `execute`.
    pub kind: String,
    /// The command that it runs, where it is one.
    pub command: Option<String>,
    /// The address that it asks, where there is one.
    pub url: Option<String>,
    /// The files that it is about.
    pub paths: Vec<String>,
    /// The change of a file: the path, what was there and what comes.
    pub change: Option<(String, String, String)>,
    /// The output that the call wrote.
    pub text: String,
    /// `true` if the call failed.
    pub failed: bool,
}

impl AgentCall {
    /// Takes what an update says of the call. Whether it has ended with it.
    pub(super) fn apply_update(&mut self, told: &Value) -> bool {
        if let Some(title) = text_field(told, "title") {
            let line = clean_text(title).split_whitespace().collect::<Vec<_>>().join(" ");
            text_truncation::head_chars(&line, MAX_TITLE_CHARS).clone_into(&mut self.title);
        }
        if let Some(kind) = text_field(told, "kind") {
            self.kind = clean_text(text_truncation::head_chars(kind, MAX_TITLE_CHARS));
        }
        for location in list_field(told, "locations") {
            self.add_path(text_field(location, "path"));
        }
        if let Some(content) = told.get("content").and_then(Value::as_array) {
            self.text.clear();
            content.iter().for_each(|block| self.take_content(block));
        }
        if let Some(input) = told.get("rawInput") {
            self.take_input(input);
        }
        match text_field(told, "status") {
            Some("failed") => self.failed = true,
            Some("completed") => (),
            _ => return false,
        }
        true
    }

    fn take_content(&mut self, block: &Value) {
        match text_field(block, "type") {
            Some("diff") => {
                let side =
                    |name| truncate_text(&clean_text(text_field(block, name).unwrap_or_default()));
                if let Some(path) = text_field(block, "path") {
                    self.add_path(Some(path));
                    self.change =
                        Some((truncate_text(&clean_text(path)), side("oldText"), side("newText")));
                }
            }
            Some("content") => {
                let words = block.get("content").and_then(|inner| text_field(inner, "text"));
                self.text.push_str(&clean_text(words.unwrap_or_default()));
                self.text = truncate_text(&self.text);
            }
            _ => (),
        }
    }

    /// The arguments, which each agent names as it likes.
    fn take_input(&mut self, input: &Value) {
        let command = ["command", "cmd"].iter().find_map(|name| input.get(*name));
        if let Some(command) = command.and_then(command_line) {
            self.command = Some(command);
        }
        let url = text_field(input, "url").filter(|url| url.len() <= MAX_PLACE_BYTES);
        self.url = url.map(clean_text).or(self.url.take());
        for name in ["path", "file_path", "filePath", "filepath", "abs_path"] {
            self.add_path(text_field(input, name));
        }
    }

    fn add_path(&mut self, path: Option<&str>) {
        let Some(path) = path.filter(|path| path.len() <= MAX_PLACE_BYTES) else { return };
        let path = clean_text(path);
        if !self.paths.contains(&path) && self.paths.len() < MAX_PATHS {
            self.paths.push(path);
        }
    }
}

/// A command as one line for a shell. Some agents give the words of a program, mostly of a shell.
fn command_line(command: &Value) -> Option<String> {
    let line = match command {
        Value::String(line) => line.clone(),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match words?.as_slice() {
                [shell, "-c" | "-lc", script] if shell.ends_with("sh") => (*script).to_owned(),
                words => words.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" "),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    // What was cut is another command.
    (line.len() <= MAX_TEXT_BYTES && !line.trim().is_empty()).then(|| clean_text(&line))
}

fn quote_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn truncate_text(text: &str) -> String {
    text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default().to_owned()
}

pub(super) fn text_field<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

pub(super) fn list_field<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shell_commands_are_parsed_from_each_agents_input() {
        let cases = [
            (json!({ "command": "npm test" }), Some("npm test")),
            (json!({ "command": ["bash", "-lc", "a && b"] }), Some("a && b")),
            (json!({ "cmd": ["git", "commit", "-m", "it's"] }), Some(r"git commit -m 'it'\''s'")),
            (json!({ "command": [1] }), None),
            (json!({ "command": " " }), None),
        ];
        for (input, line) in cases {
            let mut call = AgentCall::default();
            call.apply_update(&json!({ "rawInput": input }));
            assert_eq!(call.command.as_deref(), line);
        }
    }

    #[test]
    fn tool_call_is_assembled_from_its_updates() {
        let mut call = AgentCall::default();
        assert!(
            !call.apply_update(&json!({ "title": "Write\n a", "kind": "edit", "status": "pending",
            "locations": [{ "path": "/w/a" }] }))
        );
        let diff = json!({ "type": "diff", "path": "/w/a", "oldText": null, "newText": "x\u{1b}" });
        let said = json!({ "type": "content", "content": { "type": "text", "text": "done" } });
        assert!(call.apply_update(&json!({ "status": "failed", "content": [diff, said] })));
        assert_eq!((&*call.title, &*call.text, call.failed), ("Write a", "done", true));
        assert_eq!(call.change, Some(("/w/a".into(), String::new(), "x".into())));
        assert_eq!(call.paths, ["/w/a"]);
    }
}
