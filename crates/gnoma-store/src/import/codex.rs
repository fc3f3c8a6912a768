//! Codex: lines of `{timestamp, type, payload}`. `response_item` lines are what the model saw and
//! are read; `event_msg` lines mirror them for the screen and only their token counts are. Older
//! files have the items without the envelope.

use std::path::Path;

use gnoma_core::{
    CallId, Content, ModelRef, ResultPart, Thinking, ToolResult, Usage,
    store::{EntryId, Record},
};
use serde_json::Value;

use super::{
    bounded::{BoundedLine, each_line},
    builder::Builder,
    imported::Imported,
    wire::{self, count, items, owned, text},
};
use crate::{error::Result, time};

/// The beginnings of what Codex says to the model in the person's name.
const SCAFFOLDING: [&str; 5] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "# AGENTS.md instructions",
];

/// Reads a rollout of Codex.
pub(super) fn read(path: &Path) -> Result<Imported> {
    let mut reader = CodexReader { builder: Builder::default(), model: None };
    each_line(path, |line| {
        let BoundedLine::Text(line) = line else {
            reader.builder.skip("lines that are too long");
            return Ok(());
        };
        match gnoma_core::json::from_bytes::<Value>(&line) {
            Ok(value) => reader.take(&value),
            Err(_) => {
                reader.builder.skip("unreadable lines");
                Ok(())
            }
        }
    })?;
    reader.builder.finish()
}

struct CodexReader {
    builder: Builder,
    model: Option<ModelRef>,
}

impl CodexReader {
    fn take(&mut self, line: &Value) -> Result<()> {
        self.builder.at(text(line, "timestamp").and_then(time::parse));
        let Some(payload) = line.get("payload") else { return self.item(line) };
        match text(line, "type") {
            Some("response_item") => self.item(payload),
            Some("session_meta") => {
                self.builder.project(owned(payload, "cwd"));
                self.builder.origin(owned(payload, "id"));
                Ok(())
            }
            Some("turn_context") => {
                self.model = wire::model("openai", text(payload, "model")).or(self.model.take());
                Ok(())
            }
            Some("event_msg") => self.event(payload),
            // It stands for all that came before it; here that is still there.
            Some("compacted") => {
                let text = owned(payload, "message").unwrap_or_default();
                self.builder.note(Record::Summary { text, up_to: EntryId(0) })
            }
            other => {
                self.builder.skip(other.unwrap_or("lines without a type"));
                Ok(())
            }
        }
    }

    fn event(&mut self, payload: &Value) -> Result<()> {
        let last = payload.get("info").and_then(|info| info.get("last_token_usage"));
        match (text(payload, "type"), last) {
            (Some("token_count"), Some(usage)) => {
                let cached = count(usage, "cached_input_tokens");
                self.builder.used(Usage {
                    input: count(usage, "input_tokens").saturating_sub(cached),
                    output: count(usage, "output_tokens"),
                    cache_read: cached,
                    cache_write: 0,
                    reasoning: count(usage, "reasoning_output_tokens"),
                })
            }
            // All others say again what the items say.
            _ => Ok(()),
        }
    }

    fn item(&mut self, item: &Value) -> Result<()> {
        let id = text(item, "call_id").or_else(|| text(item, "id")).unwrap_or_default();
        let name = text(item, "name").unwrap_or("unknown");
        match text(item, "type") {
            Some("message") => self.message(item),
            Some("reasoning") => self.reasoning(item),
            Some("function_call") => {
                let arguments = text(item, "arguments").unwrap_or("{}");
                self.call(wire::call_of_text(id, name, arguments))
            }
            Some("custom_tool_call") => self.call(wire::call(id, name, item.get("input"))),
            Some("local_shell_call") => {
                self.call(wire::call(id, "local_shell", item.get("action")))
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                self.builder.result(output(id, item.get("output")));
                Ok(())
            }
            other => {
                self.builder.skip(other.unwrap_or("lines without a type"));
                Ok(())
            }
        }
    }

    fn call(&mut self, call: gnoma_core::ToolCall) -> Result<()> {
        self.builder.model(None, self.model.as_ref(), Content::ToolCall(call))
    }

    fn message(&mut self, item: &Value) -> Result<()> {
        let mut said = Vec::new();
        for block in items(item, "content") {
            let picture = text(block, "image_url").and_then(wire::data_url);
            match picture {
                Some(image) => said.push(Content::Image(image)),
                None => said.extend(wire::words(text(block, "text"))),
            }
        }
        match text(item, "role") {
            Some("user") if said.iter().all(is_scaffolding) => {
                self.builder.skip("messages of the program");
                Ok(())
            }
            Some("user") => self.builder.user(said),
            Some("assistant") => said
                .into_iter()
                .filter(|block| matches!(block, Content::Text(_)))
                .try_for_each(|block| self.builder.model(None, self.model.as_ref(), block)),
            _ => {
                self.builder.skip("instructions");
                Ok(())
            }
        }
    }

    /// The summary is kept; the encrypted rest is of use to one account only.
    fn reasoning(&mut self, item: &Value) -> Result<()> {
        if item.get("encrypted_content").is_some_and(|value| !value.is_null()) {
            self.builder.skip("encrypted reasoning");
        }
        let pieces: Vec<_> =
            items(item, "summary").iter().filter_map(|piece| text(piece, "text")).collect();
        if pieces.is_empty() {
            return Ok(());
        }
        let thinking = Thinking { text: pieces.join("\n"), ..Thinking::default() };
        self.builder.model(None, self.model.as_ref(), Content::Thinking(thinking))
    }
}

fn is_scaffolding(block: &Content) -> bool {
    let Content::Text(said) = block else { return false };
    SCAFFOLDING.iter().any(|start| said.text.trim_start().starts_with(start))
}

/// The output is a text, an object with a text, or a list of blocks.
fn output(id: &str, output: Option<&Value>) -> ToolResult {
    let success = output.and_then(|value| value.get("success")).and_then(Value::as_bool);
    let content = output.map(|value| value.get("content").unwrap_or(value));
    let mut parts = match content {
        Some(Value::String(said)) => wire::parts(said),
        Some(Value::Array(blocks)) => blocks.iter().flat_map(output_part).collect(),
        _ => Vec::new(),
    };
    if parts.is_empty() {
        parts = wire::parts("");
    }
    ToolResult {
        call_id: CallId::new(id),
        name: String::new(),
        parts,
        is_error: success == Some(false),
    }
}

fn output_part(block: &Value) -> Vec<ResultPart> {
    match text(block, "image_url").and_then(wire::data_url) {
        Some(image) => vec![ResultPart::Image(image)],
        None => text(block, "text").map(wire::parts).unwrap_or_default(),
    }
}
