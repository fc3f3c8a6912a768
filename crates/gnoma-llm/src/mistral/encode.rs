//! Requests to Mistral.
//!
//! Its rules beyond those of chat completions: a call's id is nine letters or digits; an assistant
//! message has content or calls; a user message may not follow a tool's directly.

use std::borrow::Cow;

use gnoma_core::{Content, Effort, Message, ModelRequest, RawJson, Role};

use super::wire::{
    MistralChunk, MistralContent, MistralModelMessage, MistralRequest, MistralToolMessage,
    ThinkingChunk,
};
use crate::{
    completions::encode::{
        PlainMessage, ResponseFormat, encode_call, from_user, result_images, result_text,
        system_message, tool_choice,
    },
    dialect::MessageCx,
    envelope::{Envelope, push_item},
    ids::fingerprint_id,
    names::NameMap,
};

/// Length of a call's id.
const ID_CHARS: usize = 9;

/// The words that the model is taken to have said between a tool's answer and the user's next words.
const BRIDGE: PlainMessage<'static> = PlainMessage { role: "assistant", content: "Understood." };

pub(super) fn encode_envelope(
    request: &ModelRequest,
    tools: Option<&RawJson>,
    names: &NameMap,
) -> Envelope {
    let choice = tools.and_then(|_| tool_choice(&request.tool_choice, names, "any"));
    let (reasoning_effort, prompt_mode) = effort_fields(&request.model, request.effort);
    Envelope::new(&MistralRequest {
        model: &request.model,
        stream: true,
        max_tokens: request.max_output_tokens,
        temperature: request.temperature,
        reasoning_effort,
        prompt_mode,
        tools,
        tool_choice: choice,
        response_format: request.format.as_ref().map(ResponseFormat::from_answer_format),
        messages: system_message(&request.system),
    })
}

/// `reasoning_effort` and `prompt_mode`. Magistral always reasons and knows only the latter; the
/// large models grade their effort, the others know all or nothing.
fn effort_fields(
    model: &str,
    effort: Option<Effort>,
) -> (Option<&'static str>, Option<&'static str>) {
    let Some(effort) = effort else {
        return (None, None);
    };
    let graded = model.starts_with("mistral-large");
    match effort {
        Effort::None if model.starts_with("magistral") => (None, None),
        _ if model.starts_with("magistral") => (None, Some("reasoning")),
        Effort::None => (Some("none"), None),
        Effort::Low if graded => (Some("low"), None),
        Effort::Medium if graded => (Some("medium"), None),
        Effort::Low | Effort::Medium | Effort::High => (Some("high"), None),
    }
}

pub(super) fn encode_message(message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match message.role() {
        Role::User => {
            if cx.before == Some(Role::Tool) {
                push_item(&mut out, &BRIDGE);
            }
            push_item(&mut out, &from_user(message.content(), true));
        }
        Role::Assistant => match from_model(message, cx) {
            Some(item) => push_item(&mut out, &item),
            None if cx.before == Some(Role::Tool) => push_item(&mut out, &BRIDGE),
            None => (),
        },
        Role::Tool => from_tools(&mut out, message, cx),
    }
    out
}

fn from_model<'a>(message: &'a Message, cx: MessageCx<'a>) -> Option<MistralModelMessage<'a>> {
    let chunks: Vec<_> = message
        .content()
        .iter()
        .filter_map(|block| encode_chunk(block, cx.is_own_message(message)))
        .collect();
    let thinks = |chunk: &MistralChunk<'_>| matches!(chunk, MistralChunk::Thinking { .. });
    let content = if chunks.iter().any(thinks) {
        MistralContent::Chunks(chunks)
    } else {
        MistralContent::Words(message.text_content())
    };
    let tool_calls: Vec<_> = message
        .tool_calls()
        .map(|call| encode_call(call, call_id(call.id.as_str()), cx.names))
        .collect();
    let is_empty = matches!(&content, MistralContent::Words(text) if text.is_empty());
    (!is_empty || !tool_calls.is_empty()).then_some(MistralModelMessage {
        role: "assistant",
        content,
        tool_calls,
    })
}

fn encode_chunk(block: &Content, own: bool) -> Option<MistralChunk<'_>> {
    match block {
        Content::Text(text) if !text.text.is_empty() => {
            Some(MistralChunk::Text { text: &text.text })
        }
        Content::Thinking(thinking) if own && !thinking.text.is_empty() => {
            Some(MistralChunk::Thinking {
                thinking: [ThinkingChunk { r#type: "text", text: &thinking.text }],
            })
        }
        Content::Text(_)
        | Content::Thinking(_)
        | Content::Image(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => None,
    }
}

/// The answers to the calls, then what pictures they hold, which a tool's message cannot.
fn from_tools(out: &mut Vec<u8>, message: &Message, cx: MessageCx<'_>) {
    for result in message.tool_results() {
        let item = MistralToolMessage {
            role: "tool",
            tool_call_id: call_id(result.call_id.as_str()),
            name: cx.names.wire_name(&result.name),
            content: result_text(result, true),
        };
        push_item(out, &item);
    }
    if let Some(images) = result_images(message.tool_results(), cx.names) {
        push_item(out, &BRIDGE);
        push_item(out, &images);
    }
}

/// The id as it is, or one made of it: a call and its result get the same.
fn call_id(id: &str) -> Cow<'_, str> {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(id);
    }
    let mut rest = fingerprint_id(id);
    let digit = |_| {
        let digit = rest % DIGITS.len() as u64;
        rest /= DIGITS.len() as u64;
        char::from(DIGITS[digit as usize])
    };
    Cow::Owned((0..ID_CHARS).map(digit).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{
        CallId, Image, ModelRef, ResultPart, StopReason, Thinking, ToolCall, ToolResult,
    };
    use serde_json::{Value, json};

    use super::*;

    fn target() -> ModelRef {
        ModelRef { provider: "mistral".into(), model: "m".into() }
    }

    fn encoded(message: &Message, before: Option<Role>) -> Value {
        let (names, target) = (NameMap::default(), target());
        let cx = MessageCx { names: &names, target: &target, before, breakpoint: false };
        let items = super::encode_message(message, cx);
        serde_json::from_str(&format!("[{}]", String::from_utf8(items).unwrap())).unwrap()
    }

    fn call(id: &str) -> ToolCall {
        ToolCall::new(CallId::new(id), "fs.read", RawJson::empty_object())
    }

    fn said(content: Vec<Content>, origin: ModelRef) -> Message {
        Message::assistant(content, Some(origin), Some(StopReason::EndTurn)).unwrap()
    }

    fn thinking(text: &str) -> Content {
        Content::Thinking(Thinking { text: text.into(), ..Thinking::default() })
    }

    #[test]
    fn mistral_thinking_is_sent_back_only_to_its_own_model() {
        let content = vec![thinking("hm"), Content::from_text("4")];
        assert_eq!(
            encoded(&said(content.clone(), target()), None),
            json!([{"role": "assistant", "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "4"},
            ]}])
        );
        let mut other = target();
        other.model = "n".into();
        assert_eq!(
            encoded(&said(content, other.clone()), None),
            json!([{"role": "assistant", "content": "4"}])
        );
        let nothing_left = said(vec![thinking("hm")], other);
        assert_eq!(encoded(&nothing_left, None), json!([]));
        let after_tool = encoded(&nothing_left, Some(Role::Tool));
        assert_eq!(after_tool[0]["role"], "assistant");
    }

    #[test]
    fn mistral_inserts_an_assistant_message_between_tool_and_user() {
        let roles = |before| {
            let items = encoded(&Message::user_text("go on"), before);
            let role = |item: &Value| item["role"].as_str().unwrap().to_owned();
            items.as_array().unwrap().iter().map(role).collect::<Vec<_>>()
        };
        assert_eq!(roles(Some(Role::Tool)), ["assistant", "user"]);
        assert_eq!(roles(Some(Role::Assistant)), ["user"]);
    }

    #[test]
    fn mistral_tool_result_images_follow_after_an_assistant_message() {
        let mut result = ToolResult::from_text(&call("abcdefghi"), "a picture", false);
        let picture = Image::from_bytes("image/png", b"png");
        result.parts.push(ResultPart::Image(picture));
        let items = encoded(&Message::results(vec![result]).unwrap(), Some(Role::Assistant));
        assert_eq!(
            items[0],
            json!({"role": "tool", "tool_call_id": "abcdefghi", "name": "fs_read", "content": "a picture"})
        );
        assert_eq!(items[1]["role"], "assistant");
        assert_eq!(items[2]["content"][1]["type"], "image_url");
    }

    #[test]
    fn mistral_tool_call_ids_have_nine_characters_and_match_results() {
        assert_eq!(call_id("aB3dE6gH9"), "aB3dE6gH9");
        for id in ["", "call_0", "toolu_01ABCDEFGHIJ", "abc-ef_hi", "änderung"] {
            let legal = call_id(id);
            assert!(legal.len() == ID_CHARS && legal.bytes().all(|b| b.is_ascii_alphanumeric()));
            assert_eq!(legal, call_id(id));
        }
        assert_ne!(call_id("call_0"), call_id("call_1"));
        let call = call("call_0");
        let asked = encoded(&said(vec![Content::ToolCall(call.clone())], target()), None);
        let results = Message::results(vec![ToolResult::from_text(&call, "x", false)]).unwrap();
        let answered = encoded(&results, Some(Role::Assistant));
        assert_eq!(asked[0]["tool_calls"][0]["id"], answered[0]["tool_call_id"]);
        assert_eq!(asked[0]["content"], "");
    }

    #[test]
    fn mistral_reasoning_effort_is_mapped_per_model() {
        let high = Some(Effort::High);
        assert_eq!(effort_fields("mistral-small-latest", None), (None, None));
        assert_eq!(effort_fields("mistral-small-latest", Some(Effort::Low)), (Some("high"), None));
        assert_eq!(effort_fields("mistral-large-latest", Some(Effort::Low)), (Some("low"), None));
        assert_eq!(effort_fields("mistral-small-latest", Some(Effort::None)), (Some("none"), None));
        assert_eq!(effort_fields("magistral-small-latest", high), (None, Some("reasoning")));
    }

    #[test]
    fn mistral_request_omits_unset_options() {
        let request = ModelRequest {
            model: "m".into(),
            system: "be brief".into(),
            messages: vec![Arc::new(Message::user_text("hi"))],
            tools: Arc::new([]),
            tool_choice: gnoma_core::ToolChoice::Required,
            max_output_tokens: None,
            temperature: Some(0.7),
            effort: None,
            context_window: None,
            format: None,
            thinking: None,
        };
        let profile = crate::Profile::new("mistral", crate::Protocol::Mistral, "");
        let body = crate::internals::encode_request(profile, &request);
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            json!({"model": "m", "stream": true, "temperature": 0.7, "messages": [
                {"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"},
            ]})
        );
    }
}
