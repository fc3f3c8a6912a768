//! The Go gnoma: a folder with `metadata.json` and `messages.json`. Results ride in user messages.

use std::path::Path;

use gnoma_core::{CallId, Content, ModelRef, Redacted, Thinking, ToolResult};
use serde_json::Value;

use super::{
    bounded::read_file,
    builder::Builder,
    imported::{ImportedTranscript, import_error},
    wire::{self, count_field, items_field, string_field, text_field},
};
use crate::{error::Result, time};

/// Reads a session's folder.
pub(super) fn read_folder(folder: &Path) -> Result<ImportedTranscript> {
    let messages = read_json(&folder.join("messages.json"))?;
    // A session without its metadata is still a session.
    let facts = read_json(&folder.join("metadata.json")).unwrap_or(Value::Null);
    let mut builder = Builder::default();
    builder.set_time(text_field(&facts, "created_at").and_then(time::parse_time));
    builder.set_origin_once(string_field(&facts, "id"));
    builder.set_origin_once(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
    builder.set_project_once(project_of(folder));
    let origin = text_field(&facts, "provider")
        .and_then(|name| wire::model_ref(name, text_field(&facts, "model")));
    let Some(messages) = messages.as_array() else {
        return Err(import_error(format_args!("`messages.json` is not a list")));
    };
    for (number, message) in messages.iter().enumerate() {
        import_message(&mut builder, message, origin.as_ref(), &number.to_string())?;
    }
    builder.set_time(text_field(&facts, "updated_at").and_then(time::parse_time));
    if let Some(usage) = facts.get("usage") {
        builder.set_usage(wire::token_usage(
            count_field(usage, "input_tokens"),
            count_field(usage, "output_tokens"),
            count_field(usage, "cache_read_tokens"),
            count_field(usage, "cache_creation_tokens"),
        ))?;
    }
    builder.finish()
}

/// The folder that `.gnoma/sessions/<id>` is in.
fn project_of(folder: &Path) -> Option<String> {
    let sessions = folder.parent()?;
    let is_usual = folder.is_absolute() && sessions.ends_with(".gnoma/sessions");
    let project = sessions.ancestors().nth(2).filter(|_| is_usual)?;
    Some(project.display().to_string())
}

fn read_json(path: &Path) -> Result<Value> {
    gnoma_core::json::from_bytes(&read_file(path)?)
        .map_err(|error| import_error(format_args!("`{}` is not JSON: {error}", path.display())))
}

fn import_message(
    builder: &mut Builder,
    message: &Value,
    origin: Option<&ModelRef>,
    group: &str,
) -> Result<()> {
    let role = text_field(message, "role");
    let mut said = Vec::new();
    for block in items_field(message, "content") {
        match (role, parse_block(block)) {
            (_, Some(Piece::Result(result))) => builder.add_result(result),
            (Some("assistant"), Some(Piece::Block(block))) => {
                builder.add_model_block(Some(group), origin, block)?;
            }
            (Some("user"), Some(Piece::Block(block))) => said.push(block),
            (Some("system"), _) => builder.count_skipped("system messages"),
            (_, _) => {
                builder.count_skipped(text_field(block, "type").unwrap_or("blocks without a type"));
            }
        }
    }
    if said.is_empty() { Ok(()) } else { builder.add_user_message(said) }
}

enum Piece {
    Block(Content),
    Result(ToolResult),
}

fn parse_block(block: &Value) -> Option<Piece> {
    match text_field(block, "type")? {
        "text" => wire::text_content(text_field(block, "text")).map(Piece::Block),
        "tool_call" => {
            let call = block.get("tool_call")?;
            let (id, name) = (text_field(call, "id")?, text_field(call, "name")?);
            Some(Piece::Block(Content::ToolCall(wire::call_of_value(
                id,
                name,
                call.get("arguments"),
            ))))
        }
        "tool_result" => {
            let result = block.get("tool_result")?;
            Some(Piece::Result(ToolResult {
                call_id: CallId::new(text_field(result, "tool_call_id")?),
                name: String::new(),
                parts: wire::result_parts(text_field(result, "content").unwrap_or_default()),
                is_error: result.get("is_error").and_then(Value::as_bool).unwrap_or(false),
            }))
        }
        "thinking" => parse_thinking(block.get("thinking")?).map(Piece::Block),
        _ => None,
    }
}

fn parse_thinking(thinking: &Value) -> Option<Content> {
    let signature = string_field(thinking, "signature");
    if thinking.get("redacted").and_then(Value::as_bool) == Some(true) {
        return signature.map(|data| Content::RedactedThinking(Redacted { data }));
    }
    let text = string_field(thinking, "text").unwrap_or_default();
    Some(Content::Thinking(Thinking { text, signature, item: None }))
}
