//! Encodes requests to the Responses API.

use std::{borrow::Cow, sync::Arc};

use gnoma_core::{
    AnswerFormat, Content, Effort, Image, Message, ModelRequest, RawJson, ResultPart, Role,
    Thinking, ToolCall, ToolChoice, ToolResult, ToolSpec,
};

use super::{phase, reasoning, wire};
use crate::{
    dialect::MessageCx,
    envelope::{Envelope, push_item},
    format, ids,
    names::NameMap,
    profile::Quirks,
};

/// Longest call id that OpenAI takes.
const MAX_CALL_ID_BYTES: usize = 64;

/// Asks for the encrypted reasoning, the only form in which it survives when nothing is stored. OpenAI
/// refuses it for models that do not reason.
const INCLUDE: &[&str] = &["reasoning.encrypted_content"];

pub(super) fn encode_tools(tools: &[Arc<ToolSpec>], names: &NameMap) -> Option<RawJson> {
    if tools.is_empty() {
        return None;
    }
    let tool = |tool: &'_ Arc<ToolSpec>| {
        RawJson::from_value(&wire::ResponsesTool {
            kind: "function",
            name: names.wire_name(&tool.name),
            description: &tool.description,
            parameters: tool.parameters.as_raw(),
            strict: false,
        })
    };
    let tools: Result<Vec<_>, _> = tools.iter().map(tool).collect();
    RawJson::from_value(&tools.ok()?).ok()
}

pub(super) fn encode_envelope(
    request: &ModelRequest,
    tools: Option<&RawJson>,
    names: &NameMap,
    quirks: &Quirks,
) -> Envelope {
    let family = quirks.family(&request.model);
    let word = request.effort.and_then(|effort| family.effort_word(effort));
    let summary = request.effort.is_some_and(|effort| effort != Effort::None).then_some("auto");
    Envelope::new(&wire::ResponsesRequest {
        model: &request.model,
        instructions: &request.system,
        stream: true,
        store: false,
        include: if family.can_reason() { INCLUDE } else { &[] },
        reasoning: word.map(|effort| wire::Reasoning { effort, summary }),
        text: request.format.as_ref().map(text_setting),
        tools: tools.map(RawJson::as_raw),
        tool_choice: tools.and_then(|_| encode_tool_choice(&request.tool_choice, names)),
        max_output_tokens: request.max_output_tokens,
        temperature: request.temperature.filter(|_| family.accepts_temperature(request.effort)),
        input: [],
    })
}

fn text_setting(form: &AnswerFormat) -> wire::TextSetting<'_> {
    wire::TextSetting {
        format: wire::TextFormat {
            kind: "json_schema",
            name: format::NAME,
            strict: format::is_guaranteed(form),
            schema: form.schema.as_raw(),
        },
    }
}

fn encode_tool_choice<'a>(
    choice: &'a ToolChoice,
    names: &'a NameMap,
) -> Option<wire::ResponsesToolChoice<'a>> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(wire::ResponsesToolChoice::Mode("none")),
        ToolChoice::Required => Some(wire::ResponsesToolChoice::Mode("required")),
        ToolChoice::Tool(name) => Some(wire::ResponsesToolChoice::Function {
            kind: "function",
            name: names.wire_name(name),
        }),
    }
}

pub(super) fn encode_message(message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
    match message.role() {
        Role::User => encode_user(message),
        Role::Assistant => encode_assistant(message, cx),
        Role::Tool => encode_results(message),
    }
}

fn encode_user(message: &Message) -> Vec<u8> {
    let parts = message.content().iter().filter_map(input_part);
    let content = wire::ResponsesContent::Parts(parts.collect());
    let item = wire::InputItem::Message { role: "user", content, phase: None };
    let mut out = Vec::new();
    push_item(&mut out, &item);
    out
}

fn input_part(block: &Content) -> Option<wire::ContentPart<'_>> {
    match block {
        Content::Text(text) => Some(wire::ContentPart::InputText { text: &text.text }),
        Content::Image(image) => Some(input_image(image)),
        Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_)
        | Content::ToolResult(_) => None,
    }
}

/// Reasoning that nothing follows is left out: the API wants the item that the reasoning led to.
fn encode_assistant(message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
    let own = cx.is_own_message(message);
    let mut out = Vec::new();
    let mut pending: Vec<reasoning::ReasoningItem<'_>> = Vec::new();
    let mut before: Option<&Thinking> = None;
    for block in message.content() {
        let item = match block {
            Content::Thinking(thinking) => {
                if own {
                    collect_reasoning(&mut pending, before, thinking);
                }
                before = Some(thinking);
                continue;
            }
            Content::Text(text) if !text.text.is_empty() => wire::InputItem::Message {
                role: "assistant",
                content: wire::ResponsesContent::Text(Cow::Borrowed(&text.text)),
                phase: phase::from_signature(text.signature.as_deref()).filter(|_| own),
            },
            Content::ToolCall(call) => function_call(call, cx.names),
            Content::Text(_)
            | Content::Image(_)
            | Content::RedactedThinking(_)
            | Content::ToolResult(_) => continue,
        };
        before = None;
        for reasoning in pending.drain(..).filter(reasoning::ReasoningItem::can_return) {
            push_item(&mut out, &reasoning_item(&reasoning));
        }
        push_item(&mut out, &item);
    }
    out
}

/// Adds a block to the item of the block right before it, if both name the same, else begins another.
fn collect_reasoning<'a>(
    pending: &mut Vec<reasoning::ReasoningItem<'a>>,
    before: Option<&Thinking>,
    block: &'a Thinking,
) {
    let continues = before.is_some_and(|before| before.item.is_some() && before.item == block.item);
    match pending.last_mut() {
        Some(item) if continues => item.add_block(block),
        _ => pending.push(reasoning::ReasoningItem::from_block(block)),
    }
}

fn reasoning_item<'a>(item: &reasoning::ReasoningItem<'a>) -> wire::InputItem<'a> {
    let texts = item.texts.iter();
    let (summary, content) = if item.raw {
        let content = texts.map(|text| wire::ReasoningPart::ReasoningText { text });
        (Vec::new(), content.collect())
    } else {
        let summary = texts.map(|text| wire::ReasoningPart::SummaryText { text });
        (summary.collect(), Vec::new())
    };
    wire::InputItem::Reasoning { id: item.id, summary, content, encrypted_content: item.encrypted }
}

/// Item ids of calls stay at home: nothing is stored under them, and Copilot's are too long to send.
fn function_call<'a>(call: &'a ToolCall, names: &'a NameMap) -> wire::InputItem<'a> {
    wire::InputItem::FunctionCall {
        call_id: call_id(call.id.as_str()),
        name: names.wire_name(&call.name),
        arguments: arguments_text(call),
    }
}

/// The arguments as the model wrote them, broken or not: the wire holds them as text.
fn arguments_text(call: &ToolCall) -> Cow<'_, str> {
    if call.broken
        && let Ok(text) = call.arguments.read::<String>()
    {
        return Cow::Owned(text);
    }
    Cow::Borrowed(call.arguments.get())
}

fn encode_results(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    for result in message.tool_results() {
        let item = wire::InputItem::FunctionCallOutput {
            call_id: call_id(result.call_id.as_str()),
            output: result_output(result),
        };
        push_item(&mut out, &item);
    }
    out
}

/// A list only where there are images: not every server takes one.
fn result_output(result: &ToolResult) -> wire::ResponsesContent<'_> {
    if result.images().next().is_none() {
        return wire::ResponsesContent::Text(Cow::Owned(result.joined_text()));
    }
    wire::ResponsesContent::Parts(result.parts.iter().map(output_part).collect())
}

fn output_part(part: &ResultPart) -> wire::ContentPart<'_> {
    match part {
        ResultPart::Text { text } => wire::ContentPart::InputText { text },
        ResultPart::Image(image) => input_image(image),
    }
}

fn input_image(image: &Image) -> wire::ContentPart<'_> {
    wire::ContentPart::InputImage {
        detail: "auto",
        image_url: format!("data:{};base64,{}", image.mime, image.base64),
    }
}

/// An id the API takes. What another provider called a call may not be one; then a hash stands for it,
/// the same for the call and for its result.
fn call_id(id: &str) -> Cow<'_, str> {
    let legal = !id.is_empty()
        && id.len() <= MAX_CALL_ID_BYTES
        && id.bytes().all(|byte| byte.is_ascii_graphic());
    if legal { Cow::Borrowed(id) } else { Cow::Owned(ids::stand_in(id)) }
}
