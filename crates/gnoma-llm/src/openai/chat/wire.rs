//! The words of OpenAI's chat completions, <https://platform.openai.com/docs/api-reference/chat>, and
//! what compatible servers have added to them. The skeleton stands in [`crate::completions`].

use std::borrow::Cow;

use gnoma_core::RawJson;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::completions::{
    content_text::ContentText,
    encode::{ChatToolChoice, FunctionCall, PlainMessage, ResponseFormat},
    wire::{CallPiece, ContentPart, Raw},
};
use crate::lenient_values::{Count, SmallList, Text};

/// A delta of a stream, or the message of a whole answer.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: ContentText<'a, ContentPart<'a>>,
    /// Reasoning as DeepSeek names it, and most after it.
    #[serde(borrow, default)]
    pub(super) reasoning_content: Text<'a>,
    /// Reasoning as OpenRouter, Groq and others name it.
    #[serde(borrow, default)]
    pub(super) reasoning: Text<'a>,
    /// Reasoning with its opaque parts (OpenRouter): [`Detail`]s.
    #[serde(borrow)]
    pub(super) reasoning_details: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: SmallList<CallPiece<'a>>,
    /// The call of old models, which could make only one.
    #[serde(borrow)]
    pub(super) function_call: Raw<'a>,
}

/// A piece of reasoning:
/// <https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks>.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Detail<'a> {
    #[serde(borrow)]
    pub(super) r#type: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) summary: Text<'a>,
    #[serde(borrow)]
    pub(super) data: Text<'a>,
    #[serde(borrow)]
    pub(super) signature: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) format: Text<'a>,
    pub(super) index: Count,
}

/// A whole piece of reasoning, put together from its deltas and kept to be sent back.
#[derive(Debug, Default, Serialize)]
pub(super) struct WholeDetail {
    pub(super) r#type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) summary: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) data: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) signature: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<u64>,
}

/// A request to OpenAI's chat completions.
#[derive(Debug, Serialize)]
pub(super) struct OpenAiRequest<'a> {
    pub(super) model: &'a str,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f32>,
    #[serde(flatten)]
    pub(super) effort: EffortSetting,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ChatToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<ResponseFormat<'a>>,
    pub(super) messages: Vec<PlainMessage<'a>>,
}

/// The information that a stream should bring besides words.
#[derive(Debug, Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

/// The effort of thinking, in one of the forms that servers know.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct EffortSetting {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thinking: Option<Switch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chat_template_kwargs: Option<TemplateArguments>,
}

/// The effort in OpenRouter's form.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
}

/// The switch for thinking in DeepSeek's form.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Switch {
    pub(super) r#type: &'static str,
}

/// The arguments for the chat template: Qwen and others look at the first, gpt-oss at the second.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct TemplateArguments {
    pub(super) enable_thinking: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_effort: Option<&'static str>,
}

/// A message by the model.
#[derive(Debug, Serialize)]
pub(super) struct ChatModelMessage<'a> {
    pub(super) role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<FunctionCall<'a>>,
}

/// The answer of a tool.
#[derive(Debug, Serialize)]
pub(super) struct ChatToolMessage<'a> {
    pub(super) role: &'static str,
    pub(super) tool_call_id: Cow<'a, str>,
    pub(super) content: Cow<'a, str>,
}
