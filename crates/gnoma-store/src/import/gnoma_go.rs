//! The Go gnoma: a folder with `metadata.json` and `messages.json`. Results ride in user messages.

use std::path::Path;

use gnoma_core::{CallId, Content, ModelRef, Redacted, Thinking, ToolResult};
use serde_json::Value;

use super::{
    bounded::whole,
    builder::Builder,
    imported::{Imported, refused},
    wire::{self, count, items, owned, text},
};
use crate::{error::Result, time};

/// Reads a session's folder.
pub(super) fn read(folder: &Path) -> Result<Imported> {
    let messages = json(&folder.join("messages.json"))?;
    // A session without its metadata is still a session.
    let facts = json(&folder.join("metadata.json")).unwrap_or(Value::Null);
    let mut builder = Builder::default();
    builder.at(text(&facts, "created_at").and_then(time::parse));
    builder.origin(owned(&facts, "id"));
    builder.origin(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
    builder.project(project_of(folder));
    let origin = text(&facts, "provider").and_then(|name| wire::model(name, text(&facts, "model")));
    let Some(messages) = messages.as_array() else {
        return Err(refused(format_args!("`messages.json` is not a list")));
    };
    for (number, message) in messages.iter().enumerate() {
        take(&mut builder, message, origin.as_ref(), &number.to_string())?;
    }
    builder.at(text(&facts, "updated_at").and_then(time::parse));
    if let Some(usage) = facts.get("usage") {
        builder.used(wire::usage(
            count(usage, "input_tokens"),
            count(usage, "output_tokens"),
            count(usage, "cache_read_tokens"),
            count(usage, "cache_creation_tokens"),
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

fn json(path: &Path) -> Result<Value> {
    gnoma_core::json::from_bytes(&whole(path)?)
        .map_err(|error| refused(format_args!("`{}` is not JSON: {error}", path.display())))
}

fn take(
    builder: &mut Builder,
    message: &Value,
    origin: Option<&ModelRef>,
    group: &str,
) -> Result<()> {
    let role = text(message, "role");
    let mut said = Vec::new();
    for block in items(message, "content") {
        match (role, content(block)) {
            (_, Some(Piece::Result(result))) => builder.result(result),
            (Some("assistant"), Some(Piece::Block(block))) => {
                builder.model(Some(group), origin, block)?;
            }
            (Some("user"), Some(Piece::Block(block))) => said.push(block),
            (Some("system"), _) => builder.skip("system messages"),
            (_, _) => builder.skip(text(block, "type").unwrap_or("blocks without a type")),
        }
    }
    if said.is_empty() { Ok(()) } else { builder.user(said) }
}

enum Piece {
    Block(Content),
    Result(ToolResult),
}

fn content(block: &Value) -> Option<Piece> {
    match text(block, "type")? {
        "text" => wire::words(text(block, "text")).map(Piece::Block),
        "tool_call" => {
            let call = block.get("tool_call")?;
            let (id, name) = (text(call, "id")?, text(call, "name")?);
            Some(Piece::Block(Content::ToolCall(wire::call(id, name, call.get("arguments")))))
        }
        "tool_result" => {
            let result = block.get("tool_result")?;
            Some(Piece::Result(ToolResult {
                call_id: CallId::new(text(result, "tool_call_id")?),
                name: String::new(),
                parts: wire::parts(text(result, "content").unwrap_or_default()),
                is_error: result.get("is_error").and_then(Value::as_bool).unwrap_or(false),
            }))
        }
        "thinking" => thinking(block.get("thinking")?).map(Piece::Block),
        _ => None,
    }
}

fn thinking(thinking: &Value) -> Option<Content> {
    let signature = owned(thinking, "signature");
    if thinking.get("redacted").and_then(Value::as_bool) == Some(true) {
        return signature.map(|data| Content::RedactedThinking(Redacted { data }));
    }
    let text = owned(thinking, "text").unwrap_or_default();
    Some(Content::Thinking(Thinking { text, signature, item: None }))
}
