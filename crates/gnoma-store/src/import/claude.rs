//! Claude Code: one JSON object a line. Lines of type `user` and `assistant` contain a message of the Anthropic
//! API; an answer is spread over lines with one message id; results are in user lines. Lines of side chains belong
//! to sub-agents.

use std::path::Path;

use gnoma_core::{
    CallId, Content, Redacted, ResultPart, StopReason, Thinking, ToolResult,
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

/// Reads a transcript of Claude Code.
pub(super) fn read(path: &Path) -> Result<Imported> {
    let mut builder = Builder::default();
    each_line(path, |line| {
        let BoundedLine::Text(line) = line else {
            builder.skip("lines that are too long");
            return Ok(());
        };
        match gnoma_core::json::from_bytes::<Value>(&line) {
            Ok(value) => take(&mut builder, &value),
            Err(_) => {
                builder.skip("unreadable lines");
                Ok(())
            }
        }
    })?;
    builder.finish()
}

fn take(builder: &mut Builder, line: &Value) -> Result<()> {
    let kind = text(line, "type").unwrap_or("lines without a type");
    builder.at(text(line, "timestamp").and_then(time::parse));
    builder.project(owned(line, "cwd"));
    builder.origin(owned(line, "sessionId"));
    let is = |field: &str| line.get(field).and_then(Value::as_bool).unwrap_or(false);
    match kind {
        "user" | "assistant" if is("isSidechain") => builder.skip("messages of sub-agents"),
        "user" if is("isMeta") => builder.skip("messages of the program"),
        "user" => return user(builder, line),
        "assistant" => return assistant(builder, line),
        "summary" => builder.title(owned(line, "summary")),
        "ai-title" => builder.title(owned(line, "aiTitle").or_else(|| owned(line, "title"))),
        "custom-title" => builder.named(owned(line, "customTitle")),
        other => builder.skip(other),
    }
    Ok(())
}

fn user(builder: &mut Builder, line: &Value) -> Result<()> {
    let Some(content) = line.get("message").and_then(|message| message.get("content")) else {
        builder.skip("messages without content");
        return Ok(());
    };
    if line.get("isCompactSummary").and_then(Value::as_bool) == Some(true) {
        return summary(builder, content);
    }
    if let Some(said) = content.as_str() {
        return builder.user(wire::words(Some(said)).into_iter().collect());
    }
    let mut said = Vec::new();
    for block in content.as_array().map_or(&[][..], Vec::as_slice) {
        match text(block, "type") {
            Some("text") => said.extend(wire::words(text(block, "text"))),
            Some("image") => match picture(block) {
                Some(image) => said.push(Content::Image(image)),
                None => builder.skip("pictures saved elsewhere"),
            },
            Some("tool_result") => builder.result(result(block)),
            other => builder.skip(other.unwrap_or("blocks without a type")),
        }
    }
    if said.is_empty() { Ok(()) } else { builder.user(said) }
}

/// Adds a summary. It stands for all that came before it; here that is still there.
fn summary(builder: &mut Builder, content: &Value) -> Result<()> {
    let text = match content.as_str() {
        Some(said) => said.to_owned(),
        None => wire::texts(content).join("\n"),
    };
    builder.note(Record::Summary { text, up_to: EntryId(0) })
}

fn picture(block: &Value) -> Option<gnoma_core::Image> {
    let source = block.get("source")?;
    wire::image(text(source, "media_type")?, text(source, "data")?)
}

fn result(block: &Value) -> ToolResult {
    let mut parts = Vec::new();
    match block.get("content") {
        Some(Value::String(output)) => parts = wire::parts(output),
        Some(Value::Array(pieces)) => {
            for piece in pieces {
                if let Some(output) = text(piece, "text") {
                    parts.extend(wire::parts(output));
                } else if let Some(image) = picture(piece) {
                    parts.push(ResultPart::Image(image));
                }
            }
        }
        _ => {}
    }
    if parts.is_empty() {
        parts = wire::parts("");
    }
    ToolResult {
        call_id: CallId::new(text(block, "tool_use_id").unwrap_or_default()),
        name: String::new(),
        parts,
        is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
    }
}

fn assistant(builder: &mut Builder, line: &Value) -> Result<()> {
    let Some(message) = line.get("message") else {
        builder.skip("messages without content");
        return Ok(());
    };
    let group = text(message, "id").or_else(|| text(line, "uuid")).unwrap_or("");
    let origin = wire::model("anthropic", text(message, "model"));
    for block in items(message, "content") {
        let content = match text(block, "type") {
            Some("text") => wire::words(text(block, "text")),
            Some("thinking") => Some(Content::Thinking(Thinking {
                text: owned(block, "thinking").unwrap_or_default(),
                signature: owned(block, "signature"),
                item: None,
            })),
            Some("redacted_thinking") => {
                owned(block, "data").map(|data| Content::RedactedThinking(Redacted { data }))
            }
            Some("tool_use") => Some(Content::ToolCall(wire::call(
                text(block, "id").unwrap_or_default(),
                text(block, "name").unwrap_or("unknown"),
                block.get("input"),
            ))),
            other => {
                builder.skip(other.unwrap_or("blocks without a type"));
                None
            }
        };
        if let Some(content) = content {
            builder.model(Some(group), origin.as_ref(), content)?;
        }
    }
    builder.stop(text(message, "stop_reason").map(stop));
    match message.get("usage") {
        Some(usage) => builder.used(wire::usage(
            count(usage, "input_tokens"),
            count(usage, "output_tokens"),
            count(usage, "cache_read_input_tokens"),
            count(usage, "cache_creation_input_tokens"),
        )),
        None => Ok(()),
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        _ => StopReason::Other,
    }
}
