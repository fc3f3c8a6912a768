//! Encodes requests to Ollama.

use std::borrow::Cow;

use gnoma_core::{Content, Effort, Message, ModelRequest, RawJson, Role, ToolChoice, ToolResult};

use super::wire;
use crate::{
    completions::encode::result_text,
    dialect::MessageCx,
    envelope::{Envelope, push_item},
    names::NameMap,
};

/// Ollama knows no tool choice: without leave to call, no tools are offered; it cannot be made to call.
pub(super) fn encode_envelope(request: &ModelRequest, tools: Option<&RawJson>) -> Envelope {
    let offered = tools.filter(|_| request.tool_choice != ToolChoice::None);
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(wire::Message {
            role: "system",
            content: Cow::Borrowed(&request.system),
            ..wire::Message::default()
        });
    }
    Envelope::new(&wire::OllamaRequest {
        model: &request.model,
        stream: true,
        think: request.effort.map(|effort| think_parameter(&request.model, effort)),
        options: wire::OllamaOptions {
            num_ctx: request.context_window,
            num_predict: request.max_output_tokens,
            temperature: request.temperature,
        },
        format: request.format.as_ref().map(|format| format.schema.as_raw()),
        tools: offered.map(RawJson::as_raw),
        messages,
    })
}

/// gpt-oss always thinks and takes a level; to other models a level is an error.
fn think_parameter(model: &str, effort: Effort) -> wire::ThinkSetting {
    if !model.contains("gpt-oss") {
        return wire::ThinkSetting::Whether(effort != Effort::None);
    }
    wire::ThinkSetting::Level(match effort {
        Effort::None | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    })
}

pub(super) fn encode_message(message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match message.role() {
        Role::User => push_item(&mut out, &user_message(message)),
        Role::Assistant => {
            if let Some(message) = assistant_message(message, cx) {
                push_item(&mut out, &message);
            }
        }
        Role::Tool => push_results(message, cx.names, &mut out),
    }
    out
}

fn user_message(message: &Message) -> wire::Message<'_> {
    let mut out = wire::Message { role: "user", ..wire::Message::default() };
    for block in message.content() {
        match block {
            Content::Text(text) => append_text(&mut out.content, &text.text, "\n\n"),
            Content::Image(image) => out.images.push(&image.base64),
            Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolCall(_)
            | Content::ToolResult(_) => (),
        }
    }
    out
}

/// Thinking goes back to the model that thought it: gpt-oss needs it between a call and its result.
fn assistant_message<'a>(message: &'a Message, cx: MessageCx<'a>) -> Option<wire::Message<'a>> {
    let own = cx.is_own_message(message);
    let mut out = wire::Message { role: "assistant", ..wire::Message::default() };
    for block in message.content() {
        match block {
            Content::Text(text) => append_text(&mut out.content, &text.text, ""),
            Content::Thinking(thinking) if own => {
                append_text(&mut out.thinking, &thinking.text, "");
            }
            Content::ToolCall(call) => out.tool_calls.push(wire::OllamaCall {
                id: call.id.as_str(),
                function: wire::HistoryFunction {
                    name: cx.names.wire_name(&call.name),
                    arguments: &call.arguments,
                },
            }),
            Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::Image(_)
            | Content::ToolResult(_) => (),
        }
    }
    let says_something = !out.content.is_empty() || !out.tool_calls.is_empty();
    says_something.then_some(out)
}

/// Results hold text only: their images follow in a message of the user, which models are trained on.
fn push_results(message: &Message, names: &NameMap, out: &mut Vec<u8>) {
    for result in message.tool_results() {
        let item = wire::Message {
            role: "tool",
            content: result_text(result, true),
            tool_name: names.wire_name(&result.name),
            tool_call_id: result.call_id.as_str(),
            ..wire::Message::default()
        };
        push_item(out, &item);
    }
    for result in message.tool_results() {
        if let Some(item) = picture_message(result, names) {
            push_item(out, &item);
        }
    }
}

fn picture_message<'a>(result: &'a ToolResult, names: &NameMap) -> Option<wire::Message<'a>> {
    let images: Vec<&str> = result.images().map(|image| &*image.base64).collect();
    if images.is_empty() {
        return None;
    }
    let (name, id) = (names.wire_name(&result.name), &result.call_id);
    Some(wire::Message {
        role: "user",
        content: Cow::Owned(format!("Images from the result of {name} ({id}):")),
        images,
        ..wire::Message::default()
    })
}

/// Appends without copying the first piece.
fn append_text<'a>(all: &mut Cow<'a, str>, more: &'a str, joint: &str) {
    if all.is_empty() {
        *all = Cow::Borrowed(more);
    } else if !more.is_empty() {
        let all = all.to_mut();
        all.push_str(joint);
        all.push_str(more);
    }
}
