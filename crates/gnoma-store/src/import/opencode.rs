//! opencode: the output of `opencode export`, one object with the session, its messages and their parts; or the
//! storage of older versions, a file for the session, one for each message and one for each of its parts, linked by
//! ids that sort by time. A tool's part contains call and result.

use std::{borrow::Cow, path::Path};

use gnoma_core::{CallId, Content, ModelRef, Thinking, ToolResult, Usage};
use serde_json::Value;

use super::{
    bounded::{Budget, is_plain_name, json_files, whole},
    builder::Builder,
    imported::{Imported, refused},
    wire::{self, count, items, owned, text},
};
use crate::error::Result;

/// The first bytes of a database file.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Reads an export, or the session of `storage/session/<project>/<id>.json`.
pub(super) fn read(path: &Path) -> Result<Imported> {
    let bytes = whole(path)?;
    if bytes.starts_with(DATABASE) {
        return Err(refused(format_args!(
            "`{}` holds many sessions: write one to a file with `opencode export ID` and import \
             that",
            path.display()
        )));
    }
    let session = parse(path, &bytes)?;
    match session.get("messages").and_then(Value::as_array) {
        Some(messages) => exported(&session, messages),
        None => stored(path, &session),
    }
}

fn exported(session: &Value, messages: &[Value]) -> Result<Imported> {
    let mut reader = OpenCodeReader::new(session.get("info").unwrap_or(session));
    for message in messages {
        let parts = items(message, "parts").iter().map(|part| Some(Cow::Borrowed(part)));
        reader.message(message.get("info").unwrap_or(message), parts)?;
    }
    reader.builder.finish()
}

fn stored(path: &Path, session: &Value) -> Result<Imported> {
    let id = plain(text(session, "id"))?;
    let Some(storage) = path.ancestors().nth(3) else {
        return Err(refused(format_args!("`{}` is not in a storage folder", path.display())));
    };
    let mut reader = OpenCodeReader::new(session);
    let mut budget = Budget::new();
    for file in json_files(&storage.join("message").join(id))? {
        let Ok(message) = json(&mut budget, &file) else {
            reader.builder.skip("unreadable messages");
            continue;
        };
        let folder = storage.join("part").join(plain(text(&message, "id"))?);
        let files = json_files(&folder)?;
        let parts = files.iter().map(|file| json(&mut budget, file).ok().map(Cow::Owned));
        reader.message(&message, parts)?;
    }
    reader.builder.finish()
}

fn json(budget: &mut Budget, path: &Path) -> Result<Value> {
    let bytes = whole(path)?;
    budget.spend(bytes.len())?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Value> {
    gnoma_core::json::from_bytes(bytes)
        .map_err(|error| refused(format_args!("`{}` is not JSON: {error}", path.display())))
}

fn plain(id: Option<&str>) -> Result<&str> {
    id.filter(|id| is_plain_name(id))
        .ok_or_else(|| refused(format_args!("an id in it is missing or not a plain name")))
}

struct OpenCodeReader {
    builder: Builder,
    /// Answers begun so far; each step of a message is one.
    steps: u64,
}

impl OpenCodeReader {
    fn new(session: &Value) -> Self {
        let mut builder = Builder::default();
        builder.title(owned(session, "title"));
        builder.project(owned(session, "directory"));
        builder.origin(owned(session, "id"));
        Self { builder, steps: 0 }
    }

    /// Takes a message; a part that cannot be read is `None`.
    fn message<'v>(
        &mut self,
        message: &Value,
        parts: impl Iterator<Item = Option<Cow<'v, Value>>>,
    ) -> Result<()> {
        let created = message.get("time").and_then(|time| time.get("created"));
        self.builder.at(created.and_then(Value::as_i64));
        let origin = text(message, "providerID")
            .and_then(|provider| wire::model(provider, text(message, "modelID")));
        let is_user = text(message, "role") == Some("user");
        let mut said = Vec::new();
        self.steps += 1;
        for part in parts {
            let Some(part) = part else {
                self.builder.skip("unreadable parts");
                continue;
            };
            if is_user {
                said.extend(self.said(&part));
            } else {
                self.written(&part, origin.as_ref())?;
            }
        }
        if said.is_empty() { Ok(()) } else { self.builder.user(said) }
    }

    fn said(&mut self, part: &Value) -> Option<Content> {
        let content = match text(part, "type") {
            Some("text") => wire::words(text(part, "text")),
            Some("file") => text(part, "url").and_then(wire::data_url).map(Content::Image),
            _ => None,
        };
        if content.is_none() {
            self.builder.skip(text(part, "type").unwrap_or("parts without a type"));
        }
        content
    }

    fn written(&mut self, part: &Value, origin: Option<&ModelRef>) -> Result<()> {
        let group = self.steps.to_string();
        let block = match text(part, "type") {
            Some("step-start") => {
                self.steps += 1;
                return Ok(());
            }
            Some("step-finish") => {
                return part
                    .get("tokens")
                    .map_or(Ok(()), |tokens| self.builder.used(usage(tokens)));
            }
            Some("tool") => return self.tool(part, origin),
            Some("text") => wire::words(text(part, "text")),
            Some("reasoning") => {
                let text = owned(part, "text").filter(|text| !text.is_empty());
                text.map(|text| Content::Thinking(Thinking { text, ..Thinking::default() }))
            }
            other => {
                self.builder.skip(other.unwrap_or("parts without a type"));
                None
            }
        };
        match block {
            Some(block) => self.builder.model(Some(&group), origin, block),
            None => Ok(()),
        }
    }

    fn tool(&mut self, part: &Value, origin: Option<&ModelRef>) -> Result<()> {
        let id = text(part, "callID").or_else(|| text(part, "id")).unwrap_or_default();
        let name = text(part, "tool").unwrap_or("unknown");
        let state = part.get("state").unwrap_or(&Value::Null);
        let call = wire::call(id, name, state.get("input"));
        let group = self.steps.to_string();
        self.builder.model(Some(&group), origin, Content::ToolCall(call))?;
        let output = match text(state, "status") {
            Some("completed") => text(state, "output").map(|output| (output, false)),
            Some("error") => text(state, "error").map(|error| (error, true)),
            _ => None,
        };
        if let Some((output, is_error)) = output {
            self.builder.result(ToolResult {
                call_id: CallId::new(id),
                name: String::new(),
                parts: wire::parts(output),
                is_error,
            });
        }
        Ok(())
    }
}

fn usage(tokens: &Value) -> Usage {
    let cache = tokens.get("cache").unwrap_or(&Value::Null);
    Usage {
        input: count(tokens, "input"),
        output: count(tokens, "output"),
        cache_read: count(cache, "read"),
        cache_write: count(cache, "write"),
        reasoning: count(tokens, "reasoning"),
    }
}
