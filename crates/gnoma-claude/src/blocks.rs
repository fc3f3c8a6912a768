//! Message content as the content blocks of the Claude wire. Pure.

use gnoma_core::{
    Content, Usage,
    json_value::json,
    message::{Image, ResultPart, ToolResult},
};
use gnoma_extend::claude::{their_input, their_name};
use serde_json::Value;

use super::error::DriverError;

/// A block of a message; `None` for what only its provider can read.
pub(super) fn block_to_json(content: &Content) -> Option<Value> {
    Some(match content {
        Content::Text(text) if text.text.is_empty() => return None,
        Content::Text(text) => json!({"type": "text", "text": text.text}),
        Content::Image(image) => json!({"type": "image", "source": image_source_json(image)}),
        Content::Thinking(thinking) => json!({"type": "thinking", "thinking": thinking.text,
            "signature": thinking.signature.clone().unwrap_or_default()}),
        Content::RedactedThinking(_) => return None,
        Content::ToolCall(call) => {
            let input = call.arguments.read().unwrap_or_default();
            let input = match their_input(&call.name, input) {
                input @ Value::Object(_) => input,
                // It was no JSON: an object is expected all the same.
                other => json!({ "input": other }),
            };
            json!({"type": "tool_use", "id": call.id, "name": their_name(&call.name),
                "input": input})
        }
        Content::ToolResult(result) => tool_result(result),
    })
}

/// The result of a call.
pub(super) fn tool_result(result: &ToolResult) -> Value {
    json!({"type": "tool_result", "tool_use_id": result.call_id, "content": result_content_json(result),
        "is_error": result.is_error})
}

fn result_content_json(result: &ToolResult) -> Value {
    let is_plain = result.images().next().is_none() && !result.name.starts_with("mcp__");
    if is_plain {
        return Value::String(result.joined_text());
    }
    let part = |part: &ResultPart| match part {
        ResultPart::Text { text } => json!({"type": "text", "text": text}),
        ResultPart::Image(image) => json!({"type": "image", "source": image_source_json(image)}),
    };
    result.parts.iter().map(part).collect()
}

fn image_source_json(Image { mime, base64 }: &Image) -> Value {
    json!({"type": "base64", "media_type": mime, "data": base64})
}

/// Returns the content of a message from the program.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse_message_content(message: &Value) -> Result<Vec<Content>, DriverError> {
    let content = message.pointer("/message/content");
    let content = content.ok_or(DriverError::InvalidMessage("the message has no content"))?;
    let blocks = match content {
        Value::String(text) => vec![Content::from_text(text.as_str())],
        Value::Array(blocks) => blocks.iter().map(parse_block).collect::<Result<_, _>>()?,
        _ => {
            let why = "the content of the message is neither a text nor a list";
            return Err(DriverError::InvalidMessage(why));
        }
    };
    let is_something = |content: &Content| match content {
        Content::Text(text) => !gnoma_core::names::is_blank(&text.text),
        _ => true,
    };
    let blocks: Vec<_> = blocks.into_iter().filter(is_something).collect();
    if blocks.is_empty() {
        return Err(DriverError::InvalidMessage("the message is empty"));
    }
    Ok(blocks)
}

fn parse_block(block: &Value) -> Result<Content, DriverError> {
    let text = |path: &str| block.pointer(path).and_then(Value::as_str);
    match text("/type") {
        Some("text") => Ok(Content::from_text(text("/text").unwrap_or_default())),
        Some("image") => match (text("/source/media_type"), text("/source/data")) {
            (Some(mime), Some(data)) => {
                Ok(Content::Image(Image { mime: mime.to_owned(), base64: data.into() }))
            }
            _ => {
                Err(DriverError::InvalidMessage("an image must come as base64 with its media type"))
            }
        },
        Some(other) => Err(DriverError::UnknownBlock { kind: other.to_owned() }),
        None => Err(DriverError::InvalidMessage("a block of the message has no type")),
    }
}

/// Formats token counts as the usage object of the wire.
pub(super) fn usage_to_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
    })
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson, ToolCall};

    use super::*;

    #[test]
    fn tool_calls_are_written_with_claude_tool_names() {
        let arguments = RawJson::from_value(&json!({"path": "a"})).unwrap();
        let call = ToolCall::new(CallId::new("c"), "fs.read", arguments);
        let told = block_to_json(&Content::ToolCall(call)).unwrap();
        let wanted =
            json!({"type": "tool_use", "id": "c", "name": "Read", "input": {"file_path": "a"}});
        assert_eq!(told, wanted);
        let broken = ToolCall::new(CallId::new("c"), "bash", RawJson::from_value(&"ls").unwrap());
        assert!(block_to_json(&Content::ToolCall(broken)).unwrap()["input"].is_object());
    }

    #[test]
    fn user_message_content_parses_to_text_and_images() {
        let says =
            |content: Value| parse_message_content(&json!({"message": {"content": content}}));
        assert_eq!(says(json!("hi")).unwrap(), [Content::from_text("hi")]);
        let image = json!({"type": "image", "source":
            {"type": "base64", "media_type": "image/png", "data": "AA=="}});
        assert_eq!(says(json!([{"type": "text", "text": "x"}, image])).unwrap().len(), 2);
        for wrong in [json!(""), json!([]), json!(3), json!([{"type": "tool_result"}]), json!([7])]
        {
            assert!(says(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(parse_message_content(&json!({})).is_err());
    }
}
