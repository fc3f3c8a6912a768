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
    imported::ImportedTranscript,
    wire::{self, count_field, items_field, string_field, text_field},
};
use crate::{error::Result, time};

/// Reads a transcript of Claude Code.
pub(super) fn read_transcript(path: &Path) -> Result<ImportedTranscript> {
    let mut builder = Builder::default();
    each_line(path, |line| {
        let BoundedLine::Text(line) = line else {
            builder.count_skipped("lines that are too long");
            return Ok(());
        };
        match gnoma_core::json::from_bytes::<Value>(&line) {
            Ok(value) => import_line(&mut builder, &value),
            Err(_) => {
                builder.count_skipped("unreadable lines");
                Ok(())
            }
        }
    })?;
    builder.finish()
}

fn import_line(builder: &mut Builder, line: &Value) -> Result<()> {
    let kind = text_field(line, "type").unwrap_or("lines without a type");
    builder.set_time(text_field(line, "timestamp").and_then(time::parse_time));
    builder.set_project_once(string_field(line, "cwd"));
    builder.set_origin_once(string_field(line, "sessionId"));
    let is = |field: &str| line.get(field).and_then(Value::as_bool).unwrap_or(false);
    match kind {
        "user" | "assistant" if is("isSidechain") => {
            builder.count_skipped("messages of sub-agents");
        }
        "user" if is("isMeta") => builder.count_skipped("messages of the program"),
        "user" => return import_user(builder, line),
        "assistant" => return import_assistant(builder, line),
        "summary" => builder.set_title_once(string_field(line, "summary")),
        "ai-title" => builder
            .set_title_once(string_field(line, "aiTitle").or_else(|| string_field(line, "title"))),
        "custom-title" => builder.override_title(string_field(line, "customTitle")),
        other => builder.count_skipped(other),
    }
    Ok(())
}

fn import_user(builder: &mut Builder, line: &Value) -> Result<()> {
    let Some(content) = line.get("message").and_then(|message| message.get("content")) else {
        builder.count_skipped("messages without content");
        return Ok(());
    };
    if line.get("isCompactSummary").and_then(Value::as_bool) == Some(true) {
        return import_summary(builder, content);
    }
    if let Some(said) = content.as_str() {
        return builder.add_user_message(wire::text_content(Some(said)).into_iter().collect());
    }
    let mut said = Vec::new();
    for block in content.as_array().map_or(&[][..], Vec::as_slice) {
        match text_field(block, "type") {
            Some("text") => said.extend(wire::text_content(text_field(block, "text"))),
            Some("image") => match parse_image(block) {
                Some(image) => said.push(Content::Image(image)),
                None => builder.count_skipped("pictures saved elsewhere"),
            },
            Some("tool_result") => builder.add_result(parse_result(block)),
            other => builder.count_skipped(other.unwrap_or("blocks without a type")),
        }
    }
    if said.is_empty() { Ok(()) } else { builder.add_user_message(said) }
}

/// Adds a summary. It stands for all that came before it; here that is still there.
fn import_summary(builder: &mut Builder, content: &Value) -> Result<()> {
    let text = match content.as_str() {
        Some(said) => said.to_owned(),
        None => wire::block_texts(content).join("\n"),
    };
    builder.add_record(Record::Summary { text, up_to: EntryId(0) })
}

fn parse_image(block: &Value) -> Option<gnoma_core::Image> {
    let source = block.get("source")?;
    wire::decode_image(text_field(source, "media_type")?, text_field(source, "data")?)
}

fn parse_result(block: &Value) -> ToolResult {
    let mut parts = Vec::new();
    match block.get("content") {
        Some(Value::String(output)) => parts = wire::result_parts(output),
        Some(Value::Array(pieces)) => {
            for piece in pieces {
                if let Some(output) = text_field(piece, "text") {
                    parts.extend(wire::result_parts(output));
                } else if let Some(image) = parse_image(piece) {
                    parts.push(ResultPart::Image(image));
                }
            }
        }
        _ => {}
    }
    if parts.is_empty() {
        parts = wire::result_parts("");
    }
    ToolResult {
        call_id: CallId::new(text_field(block, "tool_use_id").unwrap_or_default()),
        name: String::new(),
        parts,
        is_error: block.get("is_error").and_then(Value::as_bool).unwrap_or(false),
    }
}

fn import_assistant(builder: &mut Builder, line: &Value) -> Result<()> {
    let Some(message) = line.get("message") else {
        builder.count_skipped("messages without content");
        return Ok(());
    };
    let group = text_field(message, "id").or_else(|| text_field(line, "uuid")).unwrap_or("");
    let origin = wire::model_ref("anthropic", text_field(message, "model"));
    for block in items_field(message, "content") {
        let content = match text_field(block, "type") {
            Some("text") => wire::text_content(text_field(block, "text")),
            Some("thinking") => Some(Content::Thinking(Thinking {
                text: string_field(block, "thinking").unwrap_or_default(),
                signature: string_field(block, "signature"),
                item: None,
            })),
            Some("redacted_thinking") => {
                string_field(block, "data").map(|data| Content::RedactedThinking(Redacted { data }))
            }
            Some("tool_use") => Some(Content::ToolCall(wire::call_of_value(
                text_field(block, "id").unwrap_or_default(),
                text_field(block, "name").unwrap_or("unknown"),
                block.get("input"),
            ))),
            other => {
                builder.count_skipped(other.unwrap_or("blocks without a type"));
                None
            }
        };
        if let Some(content) = content {
            builder.add_model_block(Some(group), origin.as_ref(), content)?;
        }
    }
    builder.set_stop_reason(text_field(message, "stop_reason").map(parse_stop_reason));
    match message.get("usage") {
        Some(usage) => builder.set_usage(wire::token_usage(
            count_field(usage, "input_tokens"),
            count_field(usage, "output_tokens"),
            count_field(usage, "cache_read_input_tokens"),
            count_field(usage, "cache_creation_input_tokens"),
        )),
        None => Ok(()),
    }
}

fn parse_stop_reason(reason: &str) -> StopReason {
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
