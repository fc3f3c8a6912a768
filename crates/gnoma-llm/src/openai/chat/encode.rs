//! Requests to OpenAI's chat completions and to everything compatible.
//!
//! The law for servers we do not know: send nothing that they have not sent themselves. So reasoning
//! goes back in the field it came in, and what OpenAI made optional is left out.

use std::borrow::Cow;

use gnoma_core::{
    Content, Effort, Message, ModelRequest, RawJson, Role, Thinking, ThinkingMode, ToolChoice,
};
use serde_json::value::RawValue;

use super::{
    decode::REASONING,
    wire::{
        ChatModelMessage, ChatToolMessage, EffortSetting, OpenAiRequest, Reasoning, StreamOptions,
        Switch, TemplateArguments,
    },
};
use crate::{
    completions::encode::{
        ResponseFormat, encode_call, from_user, result_images, result_text, system_message,
        tool_choice,
    },
    dialect::MessageCx,
    envelope::{Envelope, push_item},
    ids,
    names::NameMap,
    profile::{EffortField, MaxTokensField, Quirks},
};

pub(super) fn encode_envelope(
    request: &ModelRequest,
    tools: Option<&RawJson>,
    names: &NameMap,
    quirks: &Quirks,
) -> Envelope {
    let limit = |field| {
        let limit = request.max_output_tokens;
        limit.filter(|_| quirks.max_tokens == field)
    };
    let choice = tools.and_then(|_| tool_choice(&request.tool_choice, names, "required"));
    Envelope::new(&OpenAiRequest {
        model: &request.model,
        stream: true,
        stream_options: quirks.stream_usage.then_some(StreamOptions { include_usage: true }),
        max_tokens: limit(MaxTokensField::MaxTokens),
        max_completion_tokens: limit(MaxTokensField::MaxCompletionTokens),
        temperature: request.temperature.filter(|_| accepts_temperature(quirks, request)),
        effort: effort_setting(
            quirks,
            &request.model,
            (request.effort, request.thinking),
            must_call(request),
        ),
        tools,
        tool_choice: choice,
        response_format: request.format.as_ref().map(ResponseFormat::from_answer_format),
        messages: system_message(&request.system),
    })
}

/// Reports whether a temperature may be set: servers with models of their own know what these refuse.
fn accepts_temperature(quirks: &Quirks, request: &ModelRequest) -> bool {
    match quirks.effort {
        EffortField::Words(_) => quirks.family(&request.model).accepts_temperature(request.effort),
        EffortField::None
        | EffortField::Reasoning
        | EffortField::Thinking
        | EffortField::Template => true,
    }
}

fn must_call(request: &ModelRequest) -> bool {
    let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
    forced && !request.tools.is_empty()
}

fn effort_setting(
    quirks: &Quirks,
    model: &str,
    (effort, thinking): (Option<Effort>, Option<ThinkingMode>),
    must_call: bool,
) -> EffortSetting {
    let mut wish = EffortSetting::default();
    // A model that thinks by default must be told not to.
    let stays = must_call && quirks.effort == EffortField::Thinking;
    let effort = if stays { Some(Effort::None) } else { effort };
    let Some(effort) = effort else { return wish };
    let thinks = effort != Effort::None;
    match quirks.effort {
        EffortField::None => (),
        EffortField::Words(_) => wish.reasoning_effort = quirks.family(model).effort_word(effort),
        EffortField::Reasoning => {
            wish.reasoning = Some(match thinking {
                Some(ThinkingMode::Tokens(tokens)) => {
                    Reasoning { effort: None, max_tokens: Some(tokens) }
                }
                _ => Reasoning { effort: Some(effort_word(effort)), max_tokens: None },
            });
        }
        EffortField::Thinking => {
            let r#type = if thinks { "enabled" } else { "disabled" };
            wish.thinking = Some(Switch { r#type });
            wish.reasoning_effort = (effort == Effort::Low).then_some("low");
        }
        EffortField::Template => {
            let word = thinks.then_some(effort_word(effort));
            wish.reasoning_effort = word;
            wish.chat_template_kwargs =
                Some(TemplateArguments { enable_thinking: thinks, reasoning_effort: word });
        }
    }
    wish
}

fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "none",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

pub(super) fn encode_message(message: &Message, cx: MessageCx<'_>, quirks: &Quirks) -> Vec<u8> {
    let mut out = Vec::new();
    match message.role() {
        Role::User => push_item(&mut out, &from_user(message.content(), quirks.images)),
        Role::Assistant => {
            if let Some(item) = from_model(message, cx, quirks) {
                push_item(&mut out, &item);
            }
        }
        Role::Tool => from_tools(&mut out, message, cx, quirks),
    }
    out
}

/// The model's message, or `None` when nothing of it may be sent.
fn from_model<'a>(
    message: &'a Message,
    cx: MessageCx<'a>,
    quirks: &Quirks,
) -> Option<ChatModelMessage<'a>> {
    let own = cx.is_own_message(message);
    let thoughts = |marked: bool| {
        let marked = move |thinking: &&Thinking| {
            own && marked == (thinking.item.as_deref() == Some(REASONING))
        };
        let texts = thinking_blocks(message).filter(marked);
        non_empty(texts.map(|thinking| thinking.text.as_str()).collect())
    };
    let content = non_empty(message.text_content());
    let tool_calls: Vec<_> = message
        .tool_calls()
        .map(|call| {
            let id = call_id(call.id.as_str(), quirks.max_call_id);
            let signature = call.signature.as_deref().filter(|_| own);
            encode_call(call, id, cx.names).with_signature(signature)
        })
        .collect();
    // Whoever made them: DeepSeek refuses a conversation with calls that nothing was thought of.
    let must_think = quirks.effort == EffortField::Thinking && !tool_calls.is_empty();
    (content.is_some() || !tool_calls.is_empty()).then(|| ChatModelMessage {
        role: "assistant",
        content,
        reasoning_content: thoughts(false).or_else(|| must_think.then(String::new)),
        reasoning: thoughts(true),
        reasoning_details: parse_details(message).filter(|_| own),
        tool_calls,
    })
}

fn thinking_blocks(message: &Message) -> impl Iterator<Item = &Thinking> {
    message.content().iter().filter_map(|block| match block {
        Content::Thinking(thinking) => Some(thinking),
        Content::Text(_)
        | Content::Image(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => None,
    })
}

/// The details that the decoder kept as a signature. Another protocol's signature under the same
/// provider and model is no list and stays at home.
fn parse_details(message: &Message) -> Option<&RawValue> {
    let kept = thinking_blocks(message).find_map(|thinking| thinking.signature.as_deref())?;
    serde_json::from_str(kept).ok().filter(|raw: &&RawValue| raw.get().starts_with('['))
}

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The answers to the calls, then what pictures they hold, which a tool's message cannot.
fn from_tools(out: &mut Vec<u8>, message: &Message, cx: MessageCx<'_>, quirks: &Quirks) {
    for result in message.tool_results() {
        let item = ChatToolMessage {
            role: "tool",
            tool_call_id: call_id(result.call_id.as_str(), quirks.max_call_id),
            content: result_text(result, quirks.images),
        };
        push_item(out, &item);
    }
    if let Some(images) = result_images(message.tool_results(), cx.names).filter(|_| quirks.images)
    {
        push_item(out, &images);
    }
}

/// The id as it is (some models read meaning into theirs), or a short one made of it: a call and its
/// result get the same.
fn call_id(id: &str, longest: usize) -> Cow<'_, str> {
    if id.len() <= longest { Cow::Borrowed(id) } else { Cow::Owned(ids::stand_in(id)) }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, Image, ModelRef, ResultPart, StopReason, ToolCall, ToolResult};
    use serde_json::{Value, json};

    use super::*;

    fn target() -> ModelRef {
        ModelRef { provider: "p".into(), model: "m".into() }
    }

    fn encoded(message: &Message) -> Value {
        let (names, target) = (NameMap::default(), target());
        let cx = MessageCx { names: &names, target: &target, before: None, breakpoint: false };
        let items = super::encode_message(message, cx, &Quirks::COMPATIBLE);
        serde_json::from_str(&format!("[{}]", String::from_utf8(items).unwrap())).unwrap()
    }

    fn said(content: Vec<Content>, origin: Option<ModelRef>) -> Message {
        Message::assistant(content, origin, Some(StopReason::ToolUse)).unwrap()
    }

    fn thought(text: &str, item: Option<&str>, signature: Option<&str>) -> Content {
        Content::Thinking(Thinking {
            text: text.into(),
            signature: signature.map(str::to_owned),
            item: item.map(str::to_owned),
        })
    }

    fn call() -> ToolCall {
        let mut call = ToolCall::new(CallId::new("c1"), "fs.read", RawJson::empty_object());
        call.signature = Some("google".into());
        call
    }

    #[test]
    fn reasoning_is_sent_back_in_the_field_it_came_in() {
        let plain = said(vec![thought("hm", None, None), Content::from_text("4")], Some(target()));
        assert_eq!(
            encoded(&plain),
            json!([{"role": "assistant", "content": "4", "reasoning_content": "hm"}])
        );
        let details = r#"[{"type":"reasoning.encrypted","data":"zz"}]"#;
        let marked = thought("hm", Some(REASONING), Some(details));
        let marked = said(vec![marked, Content::from_text("4")], Some(target()));
        assert_eq!(
            encoded(&marked),
            json!([{"role": "assistant", "content": "4", "reasoning": "hm",
                "reasoning_details": [{"type": "reasoning.encrypted", "data": "zz"}]}])
        );
    }

    #[test]
    fn reasoning_and_signatures_of_other_models_are_not_sent() {
        let content = vec![thought("hm", None, Some("[1]")), Content::ToolCall(call())];
        let item = encoded(&said(content, None));
        let function = json!({"name": "fs_read", "arguments": "{}"});
        assert_eq!(
            item,
            json!([{"role": "assistant", "tool_calls": [
                {"id": "c1", "type": "function", "function": function}]}])
        );
        assert_eq!(encoded(&said(vec![thought("hm", None, None)], None)), json!([]));
    }

    #[test]
    fn non_list_reasoning_signature_is_not_sent() {
        let content = vec![thought("", None, Some("sig==")), Content::from_text("4")];
        let item = encoded(&said(content, Some(target())));
        assert_eq!(item, json!([{"role": "assistant", "content": "4"}]));
    }

    #[test]
    fn google_thought_signature_is_sent_back_with_its_tool_call() {
        let item = encoded(&said(vec![Content::ToolCall(call())], Some(target())));
        let extra = json!({"google": {"thought_signature": "google"}});
        assert_eq!(item[0]["tool_calls"][0]["extra_content"], extra);
    }

    #[test]
    fn tool_result_images_follow_after_all_tool_messages() {
        let mut shows = ToolResult::from_text(&call(), "see", false);
        let picture = Image::from_bytes("image/png", b"png");
        shows.parts.push(ResultPart::Image(picture));
        let mut tells = ToolResult::from_text(&call(), "no", true);
        tells.call_id = CallId::new("c2");
        let items = encoded(&Message::results(vec![shows, tells]).unwrap());
        assert_eq!(items[0], json!({"role": "tool", "tool_call_id": "c1", "content": "see"}));
        assert_eq!(items[1]["tool_call_id"], "c2");
        assert_eq!(items[2]["role"], "user");
        assert_eq!(items.as_array().unwrap().len(), 3);
    }

    #[test]
    fn long_tool_call_ids_are_shortened() {
        assert_eq!(call_id("functions.read:0", 40), "functions.read:0");
        let long = "x".repeat(41);
        assert!(call_id(&long, 40).len() <= 40);
        assert_eq!(call_id(&long, 40), call_id(&long, 40));
        assert_eq!(call_id(&long, 256), long);
    }

    #[test]
    fn reasoning_effort_is_encoded_in_the_field_of_the_server() {
        let told = |field, effort, must_call| {
            let quirks = Quirks { effort: field, ..Quirks::COMPATIBLE };
            serde_json::to_value(effort_setting(&quirks, "gpt-5", (effort, None), must_call))
                .unwrap()
        };
        let said = |field, effort| told(field, Some(effort), false);
        assert_eq!(said(EffortField::None, Effort::High), json!({}));
        let words = EffortField::Words(crate::families::OPENAI);
        assert_eq!(said(words, Effort::None), json!({"reasoning_effort": "minimal"}));
        assert_eq!(
            said(EffortField::Reasoning, Effort::None),
            json!({"reasoning": {"effort": "none"}})
        );
        assert_eq!(
            said(EffortField::Template, Effort::Medium),
            json!({"reasoning_effort": "medium",
                "chat_template_kwargs": {"enable_thinking": true, "reasoning_effort": "medium"}})
        );
        assert_eq!(told(EffortField::Template, None, true), json!({}));
        let off = json!({"thinking": {"type": "disabled"}});
        assert_eq!(said(EffortField::Thinking, Effort::None), off);
        assert_eq!(told(EffortField::Thinking, Some(Effort::High), true), off);
        assert_eq!(told(EffortField::Thinking, None, true), off);
        let little = json!({"thinking": {"type": "enabled"}, "reasoning_effort": "low"});
        assert_eq!(said(EffortField::Thinking, Effort::Low), little);
    }

    #[test]
    fn deepseek_gets_no_images_and_reasoning_content_with_every_tool_call() {
        let deepseek = crate::Profile::find_known("deepseek").unwrap().quirks;
        let (names, target) = (NameMap::default(), target());
        let cx = MessageCx { names: &names, target: &target, before: None, breakpoint: false };
        let encoded = |message: &Message| -> Value {
            serde_json::from_slice(&super::encode_message(message, cx, &deepseek)).unwrap()
        };
        let picture = || Image::from_bytes("image/png", b"png");
        let shown =
            Message::user(vec![Content::from_text("see"), Content::Image(picture())]).unwrap();
        let words = encoded(&shown)["content"].as_str().unwrap().to_owned();
        assert!(words.starts_with("see\n\n(a picture"), "{words}");
        let mut result = ToolResult::from_text(&call(), "", false);
        result.parts = vec![ResultPart::Image(picture())];
        let answered = encoded(&Message::results(vec![result]).unwrap());
        assert!(answered["content"].as_str().unwrap().starts_with("(a picture"), "{answered}");
        let foreign = encoded(&said(vec![Content::ToolCall(call())], None));
        assert_eq!(foreign["reasoning_content"], "");
    }

    #[test]
    fn max_output_tokens_field_name_depends_on_the_server() {
        let request = ModelRequest {
            model: "m".into(),
            system: "".into(),
            messages: vec![Message::user_text("hi").into()],
            tools: [].into(),
            tool_choice: ToolChoice::Auto,
            max_output_tokens: Some(9),
            temperature: None,
            effort: None,
            context_window: None,
            format: None,
            thinking: None,
        };
        let body = |name| {
            let profile = crate::Profile::new(name, crate::Protocol::OpenAi, "");
            let body = crate::internals::encode_request(profile, &request);
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        assert_eq!(
            body("mine"),
            json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
                "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
        );
        assert_eq!(body("azure")["max_completion_tokens"], 9);
        assert_eq!(body("azure").get("max_tokens"), None);
    }
}
