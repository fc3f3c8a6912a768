//! Encodes requests to Anthropic, with `cache_control` for prompt caching.

use std::{borrow::Cow, sync::Arc};

use gnoma_core::{
    CallId, Content, Image, Message, ModelRef, ModelRequest, RawJson, ResultPart, Role, StopReason,
    ToolChoice, ToolResult, ToolSpec,
};

use super::{
    effort::{plan_thinking, takes_unsigned},
    wire::{
        self, AnthropicBlock, AnthropicRequest, AnthropicTool, AnthropicTurn, CacheControl, Source,
    },
};
use crate::{
    arguments::ObjectArguments,
    dialect::MessageCx,
    envelope::{Envelope, push_item},
    ids,
    names::NameMap,
};

/// The tools, the last of which ends a part of the prompt that is worth caching.
pub(super) fn encode_tools(tools: &[Arc<ToolSpec>], names: &NameMap) -> Option<RawJson> {
    let last = tools.len().checked_sub(1)?;
    let wire = |(nth, tool): (usize, &'_ Arc<ToolSpec>)| {
        RawJson::from_value(&AnthropicTool {
            name: names.wire_name(&tool.name),
            description: &tool.description,
            input_schema: tool.parameters.as_raw(),
            cache_control: (nth == last).then_some(CacheControl::Ephemeral),
        })
        .ok()
    };
    let list: Vec<RawJson> = tools.iter().enumerate().filter_map(wire).collect();
    RawJson::from_value(&list).ok()
}

/// The request to `asked` without its messages.
pub(super) fn encode_envelope(
    request: &ModelRequest,
    asked: &ModelRef,
    tools: Option<&RawJson>,
    names: &NameMap,
) -> Envelope {
    let plan = plan_thinking(request, asked);
    let format = request.format.as_ref();
    let format = format
        .map(|format| wire::AnswerSchema { kind: "json_schema", schema: format.schema.as_raw() });
    let says_something = plan.output_config.is_some() || format.is_some();
    Envelope::new(&AnthropicRequest {
        model: &request.model,
        max_tokens: plan.max_tokens,
        stream: true,
        temperature: plan.temperature,
        thinking: plan.thinking,
        output_config: says_something
            .then_some(wire::OutputSetting { config: plan.output_config, format }),
        system: (!is_blank(&request.system)).then(|| {
            [AnthropicBlock::Text {
                text: &request.system,
                cache_control: Some(CacheControl::Ephemeral),
            }]
        }),
        tools: tools.map(RawJson::as_raw),
        tool_choice: tools.and_then(|_| tool_choice(&request.tool_choice, names)),
        messages: [],
    })
}

fn tool_choice<'a>(choice: &'a ToolChoice, names: &'a NameMap) -> Option<wire::ToolChoice<'a>> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(wire::ToolChoice::None),
        ToolChoice::Required => Some(wire::ToolChoice::Any),
        ToolChoice::Tool(name) => Some(wire::ToolChoice::Tool { name: names.wire_name(name) }),
    }
}

/// One message; nothing when no block of it may be sent.
pub(super) fn encode_message(message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
    let mut content: Vec<AnthropicBlock<'_>> = message
        .content()
        .iter()
        .filter_map(|block| self::encode_block(block, cx.is_own_message(message), cx))
        .collect();
    // The API finds the result of a call only where nothing but calls follows it. Others let their models
    // say something behind.
    gnoma_core::sort::by_key(&mut content, |block| matches!(block, AnthropicBlock::ToolUse { .. }));
    if may_be_last(message) {
        trim_end(&mut content);
    }
    if cx.breakpoint {
        mark_cache_end(&mut content);
    }
    let mut out = Vec::new();
    if !content.is_empty() {
        let role = match message.role() {
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        };
        push_item(&mut out, &AnthropicTurn { role, content });
    }
    out
}

/// A block as it is sent. Thinking goes back to the model that signed it and to nobody else, and a
/// text of white space is refused by the API.
fn encode_block<'a>(
    content: &'a Content,
    own: bool,
    cx: MessageCx<'a>,
) -> Option<AnthropicBlock<'a>> {
    match content {
        Content::Text(text) => self::text_block(&text.text),
        Content::Image(image) => Some(self::image_block(image)),
        Content::Thinking(thinking) => {
            let unsigned = takes_unsigned(&cx.target.model).then_some("");
            let signature = thinking.signature.as_deref().or(unsigned).filter(|_| own)?;
            Some(AnthropicBlock::Thinking { thinking: &thinking.text, signature })
        }
        Content::RedactedThinking(redacted) => {
            own.then_some(AnthropicBlock::RedactedThinking { data: &redacted.data })
        }
        Content::ToolCall(call) => Some(AnthropicBlock::ToolUse {
            id: legal_id(&call.id),
            name: cx.names.wire_name(&call.name),
            input: ObjectArguments(&call.arguments),
        }),
        Content::ToolResult(result) => Some(tool_result(result)),
    }
}

fn text_block(text: &str) -> Option<AnthropicBlock<'_>> {
    (!is_blank(text)).then_some(AnthropicBlock::Text { text, cache_control: None })
}

fn image_block(image: &Image) -> AnthropicBlock<'_> {
    AnthropicBlock::Image {
        source: Source::Base64 { media_type: &image.mime, data: &image.base64 },
        cache_control: None,
    }
}

fn tool_result(result: &ToolResult) -> AnthropicBlock<'_> {
    AnthropicBlock::ToolResult {
        tool_use_id: legal_id(&result.call_id),
        content: result.parts.iter().filter_map(result_part).collect(),
        is_error: result.is_error,
        cache_control: None,
    }
}

fn result_part(part: &ResultPart) -> Option<AnthropicBlock<'_>> {
    match part {
        ResultPart::Text { text } => self::text_block(text),
        ResultPart::Image(image) => Some(self::image_block(image)),
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Reports whether a request may end with this message: an answer to be continued. Any other answer is followed by
/// a user's message or a result.
fn may_be_last(message: &Message) -> bool {
    message.role() == Role::Assistant
        && match message.stop_reason() {
            None | Some(StopReason::MaxTokens | StopReason::Pause) => true,
            Some(
                StopReason::EndTurn
                | StopReason::ToolUse
                | StopReason::StopSequence
                | StopReason::Refusal
                | StopReason::ContentFilter
                | StopReason::Other,
            ) => false,
        }
}

/// White space at the end of the last message is refused.
fn trim_end(content: &mut [AnthropicBlock<'_>]) {
    if let Some(AnthropicBlock::Text { text, .. }) = content.last_mut() {
        *text = text.trim_end();
    }
}

/// Ends the cached part of the prompt at the last block that may carry the mark.
fn mark_cache_end(content: &mut [AnthropicBlock<'_>]) {
    for block in content.iter_mut().rev() {
        match block {
            AnthropicBlock::Text { cache_control, .. }
            | AnthropicBlock::Image { cache_control, .. }
            | AnthropicBlock::ToolResult { cache_control, .. } => {
                *cache_control = Some(CacheControl::Ephemeral);
                return;
            }
            AnthropicBlock::Thinking { .. }
            | AnthropicBlock::RedactedThinking { .. }
            | AnthropicBlock::ToolUse { .. } => (),
        }
    }
}

/// The id as it is where the API takes it (`^[a-zA-Z0-9_-]+$`), else one made from it. A function of
/// the id alone, so that call and result agree.
fn legal_id(id: &CallId) -> Cow<'_, str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.as_str().is_empty() && id.as_str().bytes().all(fits) {
        return Cow::Borrowed(id.as_str());
    }
    Cow::Owned(ids::stand_in(id.as_str()))
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Redacted, Thinking, ToolCall};
    use serde_json::{Value, json};

    use super::*;

    fn claude() -> ModelRef {
        ModelRef { provider: "anthropic".into(), model: "claude".into() }
    }

    fn sent_with(message: &Message, breakpoint: bool) -> Option<Value> {
        let (names, target) = (NameMap::default(), claude());
        let cx = MessageCx { names: &names, target: &target, before: None, breakpoint };
        let bytes = super::encode_message(message, cx);
        (!bytes.is_empty()).then(|| serde_json::from_slice(&bytes).unwrap())
    }

    fn sent(message: &Message) -> Option<Value> {
        sent_with(message, false)
    }

    fn call(id: &str) -> ToolCall {
        let arguments = RawJson::parse(r#"{"path":"a"}"#).unwrap();
        ToolCall::new(CallId::new(id), "fs.read", arguments)
    }

    fn thought() -> Vec<Content> {
        let thinking = |signature: Option<&str>| {
            Content::Thinking(Thinking {
                text: String::new(),
                signature: signature.map(str::to_owned),
                item: None,
            })
        };
        vec![
            thinking(Some("Sg==")),
            Content::RedactedThinking(Redacted { data: "r1".into() }),
            thinking(None),
        ]
    }

    #[test]
    fn anthropic_thinking_is_sent_back_only_to_its_own_model() {
        let mut content = thought();
        content.push(Content::ToolCall(call("t1")));
        let tool_use = json!({"type":"tool_use","id":"t1","name":"fs_read","input":{"path":"a"}});
        let own = Message::assistant(content.clone(), Some(claude()), None).unwrap();
        assert_eq!(
            sent(&own).unwrap()["content"],
            json!([
                {"type":"thinking","thinking":"","signature":"Sg=="},
                {"type":"redacted_thinking","data":"r1"},
                tool_use,
            ])
        );
        let foreign = Message::assistant(content, None, None).unwrap();
        assert_eq!(sent(&foreign).unwrap()["content"], json!([tool_use]));
        let nothing_else = Message::assistant(thought(), None, None).unwrap();
        assert_eq!(sent(&nothing_else), None);
    }

    #[test]
    fn unsigned_thinking_is_sent_back_to_models_without_signatures() {
        let thinking = Content::Thinking(Thinking { text: "hm".into(), ..Thinking::default() });
        let sent = |model: &str| {
            let target = ModelRef { provider: "anthropic".into(), model: model.into() };
            let content = vec![thinking.clone(), Content::from_text("4")];
            let message = Message::assistant(content, Some(target.clone()), None).unwrap();
            let names = NameMap::default();
            let cx = MessageCx { names: &names, target: &target, before: None, breakpoint: false };
            serde_json::from_slice::<Value>(&super::encode_message(&message, cx)).unwrap()["content"]
                .as_array()
                .unwrap()
                .len()
        };
        assert_eq!((sent("kimi-k3"), sent("claude-opus-5")), (2, 1));
    }

    #[test]
    fn anthropic_tool_results_encode_is_error_and_images() {
        let mut seen = ToolResult::from_text(&call("t1"), " ", false);
        let image = Image::from_bytes("image/png", b"png");
        seen.parts.push(ResultPart::Image(image));
        let failed = ToolResult::from_text(&call("t 2"), "no such file", true);
        let made = legal_id(&failed.call_id).into_owned();
        let results = Message::results(vec![seen, failed]).unwrap();
        let source = json!({"type":"base64","media_type":"image/png","data":"cG5n"});
        assert_eq!(
            sent_with(&results, true).unwrap(),
            json!({"role":"user","content":[
                {"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","source":source}]},
                {"type":"tool_result","tool_use_id":made,
                 "content":[{"type":"text","text":"no such file"}],
                 "is_error":true,"cache_control":{"type":"ephemeral"}},
            ]})
        );
    }

    #[test]
    fn anthropic_invalid_tool_call_id_is_replaced_consistently() {
        for id in ["", "call 1", "call:é"] {
            let id = CallId::new(id);
            let legal = legal_id(&id);
            assert!(legal.starts_with("call_") && legal.is_ascii(), "{legal}");
            assert_eq!(legal, legal_id(&id));
        }
        let theirs = CallId::new("toolu_01-A");
        assert_eq!(legal_id(&theirs), "toolu_01-A");
    }

    #[test]
    fn anthropic_blank_text_blocks_are_omitted() {
        let blank =
            Message::user(vec![Content::from_text(" \n"), Content::from_text("hi")]).unwrap();
        assert_eq!(sent(&blank).unwrap()["content"], json!([{"type":"text","text":"hi"}]));
        assert_eq!(sent(&Message::user_text("")), None);
    }

    #[test]
    fn anthropic_prefilled_answer_has_no_trailing_white_space() {
        for (stop, text) in [
            (Some(StopReason::EndTurn), "done \n"),
            (Some(StopReason::MaxTokens), "done"),
            (None, "done"),
        ] {
            let content = vec![Content::from_text("done \n")];
            let message = Message::assistant(content, Some(claude()), stop).unwrap();
            assert_eq!(sent(&message).unwrap()["content"][0]["text"], text);
        }
    }
}
