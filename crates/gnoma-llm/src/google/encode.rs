//! Encodes requests to Gemini.

use std::{borrow::Cow, sync::Arc};

use gnoma_core::{
    CallId, Content, Image, Message, ModelRequest, RawJson, Role, ToolCall, ToolChoice, ToolResult,
    ToolSpec,
};

use super::{
    model,
    wire::{
        CallResponse, CallingConfig, Function, FunctionOutcome, GenerationConfig, GoogleCall,
        GooglePart, GoogleRequest, GoogleTurn, InlineData, SystemInstruction, ToolConfig, Tools,
    },
};
use crate::{
    arguments::ObjectArguments,
    dialect::MessageCx,
    envelope::{Envelope, push_item},
    names::NameMap,
};

/// Stands in for the signature of a call that another model made. Gemini 3 refuses calls without one;
/// Google's guide names this string for histories that come from elsewhere.
const STAND_IN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Without it a schema is refused.
const JSON: &str = "application/json";

/// Most digits in an id of ours.
const OUR_DIGITS: usize = 2;

pub(super) fn encode_tools(tools: &[Arc<ToolSpec>], names: &NameMap) -> Option<RawJson> {
    if tools.is_empty() {
        return None;
    }
    let function = |tool: &'_ Arc<ToolSpec>| -> Option<RawJson> {
        RawJson::from_value(&Function {
            name: names.wire_name(&tool.name),
            description: &tool.description,
            parameters_json_schema: tool.parameters.as_raw(),
        })
        .ok()
    };
    let function_declarations = tools.iter().filter_map(function).collect();
    RawJson::from_value(&[Tools { function_declarations }]).ok()
}

/// The request without its messages; the model stands in the path.
pub(super) fn encode_envelope(
    request: &ModelRequest,
    tools: Option<&RawJson>,
    names: &NameMap,
) -> Envelope {
    Envelope::new(&GoogleRequest {
        system_instruction: plain_text_part(&request.system)
            .map(|part| SystemInstruction { parts: [part] }),
        tools: tools.map(RawJson::as_raw),
        tool_config: tools.and_then(|_| tool_config(&request.tool_choice, names)),
        generation_config: GenerationConfig {
            max_output_tokens: request.max_output_tokens,
            temperature: request.temperature,
            response_mime_type: request.format.as_ref().map(|_| JSON),
            response_json_schema: request.format.as_ref().map(|format| format.schema.as_raw()),
            thinking_config: request.effort.and_then(|effort| {
                model::thinking_config(&request.model, effort, request.thinking)
            }),
        },
        contents: [],
    })
}

fn tool_config<'a>(choice: &'a ToolChoice, names: &'a NameMap) -> Option<ToolConfig<'a>> {
    let (mode, allowed) = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Tool(name) => ("ANY", Some([names.wire_name(name)])),
    };
    Some(ToolConfig {
        function_calling_config: CallingConfig { mode, allowed_function_names: allowed },
    })
}

/// One message; nothing when no part of it may be sent.
pub(super) fn encode_message(message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
    let (role, parts) = match message.role() {
        Role::User => ("user", encode_parts(message, cx)),
        Role::Assistant => ("model", encode_parts(message, cx)),
        Role::Tool => ("user", result_parts(message, cx)),
    };
    let mut out = Vec::new();
    if !parts.is_empty() {
        push_item(&mut out, &GoogleTurn { role, parts });
    }
    out
}

/// The parts of a user's or a model's message. Thoughts and signatures go back to the model they came
/// from and to nobody else.
fn encode_parts<'a>(message: &'a Message, cx: MessageCx<'a>) -> Vec<GooglePart<'a>> {
    let own = cx.is_own_message(message);
    let mut stand_in =
        (!own && model::is_third_generation(&cx.target.model)).then_some(STAND_IN_SIGNATURE);
    // White space that a model writes before a call says nothing.
    let is_blank =
        |text: &str| message.role() == Role::Assistant && text.chars().all(char::is_whitespace);
    let part = |content: &'a Content| match content {
        Content::Text(text) => {
            let signature = text.signature.as_deref().filter(|_| own);
            let is_said = signature.is_some() || !is_blank(&text.text);
            text_part(&text.text, false, signature).filter(|_| is_said)
        }
        Content::Image(image) => Some(self::image_part(image)),
        Content::Thinking(thinking) if own => {
            text_part(&thinking.text, true, thinking.signature.as_deref())
        }
        Content::ToolCall(call) => {
            // Of parallel calls only the first is signed.
            let signature = call.signature.as_deref().filter(|_| own);
            Some(self::call_part(call, signature.or_else(|| stand_in.take()), cx.names))
        }
        Content::Thinking(_) | Content::RedactedThinking(_) | Content::ToolResult(_) => None,
    };
    message.content().iter().filter_map(part).collect()
}

fn plain_text_part(text: &str) -> Option<GooglePart<'_>> {
    text_part(text, false, None)
}

/// A text, unless there is nothing in it: an empty one is refused, but may carry a signature.
fn text_part<'a>(
    text: &'a str,
    thought: bool,
    signature: Option<&'a str>,
) -> Option<GooglePart<'a>> {
    (!text.is_empty() || signature.is_some()).then_some(GooglePart::Text {
        text: Cow::Borrowed(text),
        thought,
        thought_signature: signature,
    })
}

fn image_part(image: &Image) -> GooglePart<'_> {
    GooglePart::Image { inline_data: InlineData { mime_type: &image.mime, data: &image.base64 } }
}

fn call_part<'a>(
    call: &'a ToolCall,
    signature: Option<&'a str>,
    names: &'a NameMap,
) -> GooglePart<'a> {
    GooglePart::Call {
        function_call: GoogleCall {
            id: their_id(&call.id),
            name: names.wire_name(&call.name),
            args: ObjectArguments(&call.arguments),
        },
        thought_signature: signature,
    }
}

/// All results of a message. Pictures stand inside of them where the model takes that, else behind
/// them all, under the name of the tool.
fn result_parts<'a>(message: &'a Message, cx: MessageCx<'a>) -> Vec<GooglePart<'a>> {
    let inside = model::is_third_generation(&cx.target.model);
    let response = |result: &'a ToolResult| GooglePart::Response {
        function_response: CallResponse {
            id: their_id(&result.call_id),
            name: cx.names.wire_name(&result.name),
            response: function_outcome(result),
            parts: result.images().filter(|_| inside).map(image_part).collect(),
        },
    };
    let mut parts: Vec<GooglePart<'a>> = message.tool_results().map(response).collect();
    if inside {
        return parts;
    }
    for result in message.tool_results() {
        let mut images = result.images().map(image_part).peekable();
        if images.peek().is_some() {
            let title = format!("From {}:", cx.names.wire_name(&result.name));
            parts.push(GooglePart::Text {
                text: Cow::Owned(title),
                thought: false,
                thought_signature: None,
            });
        }
        parts.extend(images);
    }
    parts
}

fn function_outcome(result: &ToolResult) -> FunctionOutcome {
    let text = result.joined_text();
    if result.is_error { FunctionOutcome::Error(text) } else { FunctionOutcome::Output(text) }
}

/// The id, unless gnoma made it: Gemini often sends none and pairs by order, and what it did not send
/// it need not see. Ours are `call_` and the number of a block, perhaps with another number; this looks
/// at nothing but the id, so that call and result agree.
fn their_id(id: &CallId) -> Option<&str> {
    let is_number = |word: &str| {
        (1..=OUR_DIGITS).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    let ours =
        id.as_str().strip_prefix("call_").is_some_and(|numbers| numbers.split('_').all(is_number));
    (!ours).then_some(id.as_str())
}

#[cfg(test)]
mod tests {
    use gnoma_core::{ModelRef, ResultPart, Text, Thinking};
    use serde_json::{Value, json};

    use super::*;

    fn gemini(model: &str) -> ModelRef {
        ModelRef { provider: "google".into(), model: model.into() }
    }

    fn sent(message: &Message, model: &str) -> Option<Value> {
        let (names, target) = (NameMap::default(), gemini(model));
        let cx = MessageCx { names: &names, target: &target, before: None, breakpoint: false };
        let bytes = super::encode_message(message, cx);
        (!bytes.is_empty()).then(|| serde_json::from_slice(&bytes).unwrap())
    }

    fn called(id: &str, signature: Option<&str>) -> ToolCall {
        let arguments = RawJson::parse(r#"{"path":"a"}"#).unwrap();
        let mut call = ToolCall::new(CallId::new(id), "fs.read", arguments);
        call.signature = signature.map(str::to_owned);
        call
    }

    fn answer() -> Vec<Content> {
        vec![
            Content::Thinking(Thinking { text: "hm".into(), signature: None, item: None }),
            Content::Text(Text { text: String::new(), signature: Some("s1".into()) }),
            Content::ToolCall(called("call_2", Some("s2"))),
            Content::ToolCall(called("x9", None)),
        ]
    }

    #[test]
    fn google_own_answer_is_sent_back_with_thought_signatures() {
        let model = "gemini-3-flash";
        let own = Message::assistant(answer(), Some(gemini(model)), None).unwrap();
        assert_eq!(
            sent(&own, model).unwrap(),
            json!({"role":"model","parts":[
                {"text":"hm","thought":true},
                {"text":"","thoughtSignature":"s1"},
                {"functionCall":{"name":"fs_read","args":{"path":"a"}},"thoughtSignature":"s2"},
                {"functionCall":{"id":"x9","name":"fs_read","args":{"path":"a"}}},
            ]})
        );
    }

    #[test]
    fn google_white_space_text_before_a_call_is_not_sent_back() {
        let call = Content::ToolCall(called("x9", None));
        let answer = vec![Content::from_text("\n\n"), call];
        let own = Message::assistant(answer, Some(gemini("gemini-2.5-pro")), None).unwrap();
        let parts = &sent(&own, "gemini-2.5-pro").unwrap()["parts"];
        assert_eq!(parts.as_array().unwrap().len(), 1, "{parts}");
        let asked = Message::user_text(" ");
        assert_eq!(sent(&asked, "gemini-2.5-pro").unwrap()["parts"][0]["text"], " ");
    }

    #[test]
    fn google_answer_of_another_model_is_sent_without_thought_signatures() {
        let foreign = Message::assistant(answer(), Some(gemini("gemini-2.5-pro")), None).unwrap();
        for (model, signature) in
            [("gemini-3-flash", json!(STAND_IN_SIGNATURE)), ("gemini-2.5-flash", Value::Null)]
        {
            let parts = &sent(&foreign, model).unwrap()["parts"];
            assert_eq!(parts.as_array().unwrap().len(), 2, "{model}");
            assert_eq!(parts[0]["thoughtSignature"], signature, "{model}");
            assert_eq!(parts[1]["thoughtSignature"], Value::Null, "{model}");
        }
        let thoughts = answer().into_iter().take(2).collect();
        let thoughts = Message::assistant(thoughts, None, None).unwrap();
        assert_eq!(sent(&thoughts, "gemini-3-flash"), None);
    }

    #[test]
    fn google_tool_result_images_are_placed_by_model_generation() {
        let mut seen = ToolResult::from_text(&called("call_0", None), "ok", false);
        let image = Image::from_bytes("image/png", b"png");
        seen.parts.push(ResultPart::Image(image));
        let failed = ToolResult::from_text(&called("x9", None), "no", true);
        let results = Message::results(vec![seen, failed]).unwrap();
        let picture = json!({"inlineData":{"mimeType":"image/png","data":"cG5n"}});
        let second = json!({"functionResponse":
            {"id":"x9","name":"fs_read","response":{"error":"no"}}});
        assert_eq!(
            sent(&results, "gemini-3-flash").unwrap()["parts"],
            json!([
                {"functionResponse":{"name":"fs_read","response":{"output":"ok"},"parts":[picture]}},
                second,
            ])
        );
        assert_eq!(
            sent(&results, "gemini-2.5-flash").unwrap()["parts"],
            json!([
                {"functionResponse":{"name":"fs_read","response":{"output":"ok"}}},
                second,
                {"text":"From fs_read:"},
                picture,
            ])
        );
    }

    #[test]
    fn google_generated_call_ids_are_not_sent() {
        for (id, goes) in [
            ("call_0", false),
            ("call_12_1", false),
            ("call_320", true),
            ("call_", true),
            ("toolu_1", true),
        ] {
            assert_eq!(their_id(&CallId::new(id)).is_some(), goes, "{id}");
        }
    }
}
