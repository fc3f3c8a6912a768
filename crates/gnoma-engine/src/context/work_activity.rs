//! What was done in a conversation, as its calls and results show: files, commands, plan. Pure.

use std::collections::{BTreeMap, HashMap};

use gnoma_core::{
    Message, ToolCall, ToolResult, ToolSpec,
    message::{CallId, Content},
    plan::{self, PlanStep},
    text_truncation,
    tool::{Access, TouchedResource},
};
use serde_json::Value;

/// Most bytes of the text about a change, a command or its outcome.
const MAX_TOLD_BYTES: usize = 100;
/// Most questions of the model that are named.
const MAX_QUESTIONS: usize = 4;
/// Larger results are not read again to compare them.
const MAX_READ_BYTES: usize = 48 << 10;
/// Parts of a line about a file.
const BETWEEN: &str = " | ";

/// The actions on one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileActivity {
    pub(super) reads: u64,
    pub(super) changes: u64,
    added: u64,
    removed: u64,
    /// A line of the last change.
    last: String,
    /// Of what was read of it last.
    pub(super) hash: String,
    /// The sequence number of the last action on the file.
    at: u64,
}

/// The last call that read a file, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastRead {
    pub(crate) call: ToolCall,
    pub(crate) hash: String,
}

/// The actions of a conversation: files, commands, skills and plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkActivity {
    pub(super) files: BTreeMap<String, FileActivity>,
    /// Commands and how they ended, in the order in which they ran last.
    pub(super) commands: Vec<(String, String)>,
    /// Skills that were loaded.
    pub(super) skills: Vec<String>,
    pub(super) plan: Vec<PlanStep>,
    /// The questions that the model asked last.
    pub(super) questions: Vec<String>,
    /// The last calls that read a file.
    pub(crate) reads: BTreeMap<String, LastRead>,
    count: u64,
}

impl WorkActivity {
    /// Takes in the messages of a conversation.
    pub(crate) fn add_messages<'a>(
        &mut self,
        messages: impl Iterator<Item = &'a Message>,
        specs: &HashMap<String, std::sync::Arc<ToolSpec>>,
    ) {
        let mut open: HashMap<CallId, ToolCall> = HashMap::new();
        for message in messages {
            for content in message.content() {
                match content {
                    Content::ToolCall(call) => {
                        open.insert(call.id.clone(), call.clone());
                    }
                    Content::ToolResult(result) => {
                        if let Some(call) = open.remove(&result.call_id) {
                            let spec = specs.get(&call.name).map(AsRef::as_ref);
                            self.record_call(&call, spec, result);
                        }
                    }
                    Content::Text(text) if message.origin().is_some() || is_answer(message) => {
                        self.questions = extract_questions(&text.text);
                    }
                    Content::Text(_)
                    | Content::Image(_)
                    | Content::Thinking(_)
                    | Content::RedactedThinking(_) => (),
                }
            }
        }
    }

    fn record_call(&mut self, call: &ToolCall, spec: Option<&ToolSpec>, result: &ToolResult) {
        let Ok(Value::Object(arguments)) = gnoma_core::json::from_str(call.arguments.get()) else {
            return;
        };
        self.count += 1;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        for touches in spec.map(|spec| &*spec.touches).unwrap_or_default() {
            match touches {
                TouchedResource::Command(name) => {
                    if let Some(command) = text(name) {
                        self.record_command(command, result);
                    }
                }
                TouchedResource::Path(name) => {
                    if let (Some(path), false) = (text(name), result.is_error) {
                        let is_edit = spec.is_some_and(|spec| spec.access == Access::Edit);
                        self.record_file(path, is_edit.then_some(&arguments), call, result);
                    }
                }
                TouchedResource::Url(_) | TouchedResource::Action(..) => (),
            }
        }
        match call.name.as_str() {
            "skill" if !result.is_error => {
                let name = text("name").map(to_line).filter(|it| !self.skills.contains(it));
                self.skills.extend(name);
            }
            "plan" if !result.is_error => {
                self.plan = plan::parse_plan(&call.arguments).unwrap_or_default();
            }
            _ => (),
        }
    }

    fn record_command(&mut self, command: &str, result: &ToolResult) {
        let command = to_line(command);
        let text = result.joined_text();
        let last = text.lines().rev().find(|it| !it.trim().is_empty()).unwrap_or_default();
        let how = if result.is_error { "failed" } else { "ok" };
        self.commands.retain(|(known, _)| *known != command);
        self.commands.push((command, format!("{how}: {}", to_line(last))));
    }

    fn record_file(
        &mut self,
        path: &str,
        edit: Option<&serde_json::Map<String, Value>>,
        call: &ToolCall,
        result: &ToolResult,
    ) {
        let path = to_line(path);
        let file = self.files.entry(path.clone()).or_default();
        file.at = self.count;
        let Some(arguments) = edit else {
            file.reads += 1;
            let text = result.joined_text();
            file.hash = hash_text(&text);
            if text.len() <= MAX_READ_BYTES && !text.contains("are left out here and kept as `") {
                let read = LastRead { call: call.clone(), hash: file.hash.clone() };
                self.reads.insert(path, read);
            }
            return;
        };
        file.changes += 1;
        let lines = |names: &[&str]| {
            let texts =
                names.iter().filter_map(|name| arguments.get(*name).and_then(Value::as_str));
            texts.map(|text| text.lines().count() as u64).sum::<u64>()
        };
        file.added += lines(&["new_string", "content", "new", "text"]);
        file.removed += lines(&["old_string", "old"]);
        let new = ["new_string", "content", "new", "text"];
        let new = new.iter().find_map(|name| arguments.get(*name).and_then(Value::as_str));
        let first = new.and_then(|new| new.lines().find(|it| !it.trim().is_empty()));
        file.last = to_line(first.unwrap_or_default().trim());
    }

    /// The lines about files, those touched last at the end.
    pub(super) fn file_lines(&self, most: usize) -> Vec<String> {
        let mut files: Vec<(&String, &FileActivity)> = self.files.iter().collect();
        gnoma_core::sort::by_key(&mut files, |(_, file)| file.at);
        files.drain(..files.len().saturating_sub(most));
        let shown = |(path, file): (&String, &FileActivity)| {
            let mut parts = vec![path.clone()];
            if !file.hash.is_empty() {
                parts.push(format!("hash {}", file.hash));
            }
            if file.reads > 0 {
                parts.push(format!("read {}×", file.reads));
            }
            if file.changes > 0 {
                let FileActivity { changes, added, removed, last, .. } = file;
                parts.push(format!("changed {changes}× +{added} -{removed}"));
                parts.push(format!("last: {last}"));
            }
            parts.join(BETWEEN)
        };
        files.into_iter().map(shown).collect()
    }

    /// Takes in a line about a file, as [`Self::file_lines`] gives it.
    pub(super) fn read_file_line(&mut self, text: &str) {
        self.count += 1;
        let mut parts = text.split(BETWEEN);
        let Some(path) = parts.next() else { return };
        let mut file = FileActivity { at: self.count, ..FileActivity::default() };
        let number = |text: &str| text.trim_matches(['×', '+', '-']).parse().unwrap_or(0);
        for part in parts {
            let (head, rest) = part.split_once(' ').unwrap_or((part, ""));
            match head {
                "hash" => rest.clone_into(&mut file.hash),
                "read" => file.reads = number(rest),
                "changed" => {
                    let mut numbers = rest.split(' ').map(number);
                    file.changes = numbers.next().unwrap_or(0);
                    file.added = numbers.next().unwrap_or(0);
                    file.removed = numbers.next().unwrap_or(0);
                }
                "last:" => rest.clone_into(&mut file.last),
                _ => (),
            }
        }
        self.files.insert(path.to_owned(), file);
    }
}

fn is_answer(message: &Message) -> bool {
    message.role() == gnoma_core::Role::Assistant
}

/// Returns the questions that an answer asks.
fn extract_questions(text: &str) -> Vec<String> {
    let sentences = text.split_inclusive(['?', '\n', '.', '!']).map(str::trim);
    let asked = sentences.filter(|it| it.ends_with('?') && it.len() > 3).map(to_line);
    asked.take(MAX_QUESTIONS).collect()
}

/// The beginning of a text on one line, without what separates parts.
fn to_line(text: &str) -> String {
    let text: String = text
        .chars()
        .take(4 * MAX_TOLD_BYTES)
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect();
    let text = text.replace(BETWEEN, " ¦ ");
    let head = text_truncation::word_prefix(text.trim(), MAX_TOLD_BYTES);
    if head.len() < text.trim().len() { format!("{head}…") } else { head.to_owned() }
}

/// Tells whether a text is another one: FNV-1a, for no more than that.
pub(crate) fn hash_text(text: &str) -> String {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{:08x}", (sum ^ (sum >> 32)) & 0xffff_ffff)
}
