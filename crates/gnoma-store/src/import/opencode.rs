//! opencode: the output of `opencode export`, one object with the session, its messages and their parts; or the
//! storage of older versions, a file for the session, one for each message and one for each of its parts, linked by
//! ids that sort by time. A tool's part contains call and result.

use std::{borrow::Cow, path::Path};

use gnoma_core::{CallId, Content, ModelRef, Thinking, ToolResult, Usage};
use serde_json::Value;

use super::{
    bounded::{Budget, is_plain_name, json_files, read_file},
    builder::Builder,
    imported::{ImportedTranscript, import_error},
    wire::{self, count_field, items_field, string_field, text_field},
};
use crate::error::Result;

/// The first bytes of a database file.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Reads an export, or the session of `storage/session/<project>/<id>.json`.
pub(super) fn read_session(path: &Path) -> Result<ImportedTranscript> {
    let bytes = read_file(path)?;
    if bytes.starts_with(DATABASE) {
        return Err(import_error(format_args!(
            "`{}` holds many sessions: write one to a file with `opencode export ID` and import \
             that",
            path.display()
        )));
    }
    let session = parse_json(path, &bytes)?;
    match session.get("messages").and_then(Value::as_array) {
        Some(messages) => import_export(&session, messages),
        None => import_storage(path, &session),
    }
}

fn import_export(session: &Value, messages: &[Value]) -> Result<ImportedTranscript> {
    let mut reader = OpenCodeReader::new(session.get("info").unwrap_or(session));
    for message in messages {
        let parts = items_field(message, "parts").iter().map(|part| Some(Cow::Borrowed(part)));
        reader.import_message(message.get("info").unwrap_or(message), parts)?;
    }
    reader.builder.finish()
}

fn import_storage(path: &Path, session: &Value) -> Result<ImportedTranscript> {
    let id = check_plain_id(text_field(session, "id"))?;
    let Some(storage) = path.ancestors().nth(3) else {
        return Err(import_error(format_args!("`{}` is not in a storage folder", path.display())));
    };
    let mut reader = OpenCodeReader::new(session);
    let mut budget = Budget::new();
    for file in json_files(&storage.join("message").join(id))? {
        let Ok(message) = read_json(&mut budget, &file) else {
            reader.builder.count_skipped("unreadable messages");
            continue;
        };
        let folder = storage.join("part").join(check_plain_id(text_field(&message, "id"))?);
        let files = json_files(&folder)?;
        let parts = files.iter().map(|file| read_json(&mut budget, file).ok().map(Cow::Owned));
        reader.import_message(&message, parts)?;
    }
    reader.builder.finish()
}

fn read_json(budget: &mut Budget, path: &Path) -> Result<Value> {
    let bytes = read_file(path)?;
    budget.spend(bytes.len())?;
    parse_json(path, &bytes)
}

fn parse_json(path: &Path, bytes: &[u8]) -> Result<Value> {
    gnoma_core::json::from_bytes(bytes)
        .map_err(|error| import_error(format_args!("`{}` is not JSON: {error}", path.display())))
}

fn check_plain_id(id: Option<&str>) -> Result<&str> {
    id.filter(|id| is_plain_name(id))
        .ok_or_else(|| import_error(format_args!("an id in it is missing or not a plain name")))
}

struct OpenCodeReader {
    builder: Builder,
    /// Answers begun so far; each step of a message is one.
    steps: u64,
}

impl OpenCodeReader {
    fn new(session: &Value) -> Self {
        let mut builder = Builder::default();
        builder.set_title_once(string_field(session, "title"));
        builder.set_project_once(string_field(session, "directory"));
        builder.set_origin_once(string_field(session, "id"));
        Self { builder, steps: 0 }
    }

    /// Takes a message; a part that cannot be read is `None`.
    fn import_message<'v>(
        &mut self,
        message: &Value,
        parts: impl Iterator<Item = Option<Cow<'v, Value>>>,
    ) -> Result<()> {
        let created = message.get("time").and_then(|time| time.get("created"));
        self.builder.set_time(created.and_then(Value::as_i64));
        let origin = text_field(message, "providerID")
            .and_then(|provider| wire::model_ref(provider, text_field(message, "modelID")));
        let is_user = text_field(message, "role") == Some("user");
        let mut said = Vec::new();
        self.steps += 1;
        for part in parts {
            let Some(part) = part else {
                self.builder.count_skipped("unreadable parts");
                continue;
            };
            if is_user {
                said.extend(self.parse_user_part(&part));
            } else {
                self.import_model_part(&part, origin.as_ref())?;
            }
        }
        if said.is_empty() { Ok(()) } else { self.builder.add_user_message(said) }
    }

    fn parse_user_part(&mut self, part: &Value) -> Option<Content> {
        let content = match text_field(part, "type") {
            Some("text") => wire::text_content(text_field(part, "text")),
            Some("file") => text_field(part, "url").and_then(wire::data_url).map(Content::Image),
            _ => None,
        };
        if content.is_none() {
            self.builder.count_skipped(text_field(part, "type").unwrap_or("parts without a type"));
        }
        content
    }

    fn import_model_part(&mut self, part: &Value, origin: Option<&ModelRef>) -> Result<()> {
        let group = self.steps.to_string();
        let block = match text_field(part, "type") {
            Some("step-start") => {
                self.steps += 1;
                return Ok(());
            }
            Some("step-finish") => {
                return part
                    .get("tokens")
                    .map_or(Ok(()), |tokens| self.builder.set_usage(parse_usage(tokens)));
            }
            Some("tool") => return self.import_tool_call(part, origin),
            Some("text") => wire::text_content(text_field(part, "text")),
            Some("reasoning") => {
                let text = string_field(part, "text").filter(|text| !text.is_empty());
                text.map(|text| Content::Thinking(Thinking { text, ..Thinking::default() }))
            }
            other => {
                self.builder.count_skipped(other.unwrap_or("parts without a type"));
                None
            }
        };
        match block {
            Some(block) => self.builder.add_model_block(Some(&group), origin, block),
            None => Ok(()),
        }
    }

    fn import_tool_call(&mut self, part: &Value, origin: Option<&ModelRef>) -> Result<()> {
        let id = text_field(part, "callID").or_else(|| text_field(part, "id")).unwrap_or_default();
        let name = text_field(part, "tool").unwrap_or("unknown");
        let state = part.get("state").unwrap_or(&Value::Null);
        let call = wire::call_of_value(id, name, state.get("input"));
        let group = self.steps.to_string();
        self.builder.add_model_block(Some(&group), origin, Content::ToolCall(call))?;
        let output = match text_field(state, "status") {
            Some("completed") => {
                // A command that failed is complete as well.
                let code = state.get("metadata").and_then(|about| about.get("exit")?.as_i64());
                text_field(state, "output").map(|output| (output, code.is_some_and(|it| it != 0)))
            }
            Some("error") => text_field(state, "error").map(|error| (error, true)),
            _ => None,
        };
        if let Some((output, is_error)) = output {
            self.builder.add_result(ToolResult {
                call_id: CallId::new(id),
                name: String::new(),
                parts: wire::result_parts(output),
                is_error,
            });
        }
        Ok(())
    }
}

fn parse_usage(tokens: &Value) -> Usage {
    let cache = tokens.get("cache").unwrap_or(&Value::Null);
    Usage {
        input: count_field(tokens, "input"),
        output: count_field(tokens, "output"),
        cache_read: count_field(cache, "read"),
        cache_write: count_field(cache, "write"),
        reasoning: count_field(tokens, "reasoning"),
    }
}
