//! Mistral's own words: <https://docs.mistral.ai/api/endpoint/chat>. What it shares with OpenAI's
//! chat completions stands in [`crate::completions`].

use std::borrow::Cow;

use gnoma_core::RawJson;
use serde::{Deserialize, Serialize};

use crate::completions::{
    content_text::ContentText,
    encode::{ChatToolChoice, FunctionCall, PlainMessage, ResponseFormat},
    wire::{CallPiece, ContentPart},
};
use crate::lenient_values::SmallList;

/// A delta of a stream, or the message of a whole answer.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    /// Text, or chunks when the model thinks; both forms occur in one stream.
    #[serde(borrow, default)]
    pub(super) content: ContentText<'a, ContentPart<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_calls: SmallList<CallPiece<'a>>,
}

/// A request to Mistral's chat completions.
#[derive(Debug, Serialize)]
pub(super) struct MistralRequest<'a> {
    pub(super) model: &'a str,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ChatToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<ResponseFormat<'a>>,
    pub(super) messages: Vec<PlainMessage<'a>>,
}

/// A message by the model.
#[derive(Debug, Serialize)]
pub(super) struct MistralModelMessage<'a> {
    pub(super) role: &'static str,
    pub(super) content: MistralContent<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<FunctionCall<'a>>,
}

/// Words, or words and thoughts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum MistralContent<'a> {
    Words(String),
    Chunks(Vec<MistralChunk<'a>>),
}

/// A piece of what a model said.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum MistralChunk<'a> {
    Text { text: &'a str },
    Thinking { thinking: [ThinkingChunk<'a>; 1] },
}

/// The text of a thinking chunk.
#[derive(Debug, Serialize)]
pub(super) struct ThinkingChunk<'a> {
    pub(super) r#type: &'static str,
    pub(super) text: &'a str,
}

/// The answer of a tool.
#[derive(Debug, Serialize)]
pub(super) struct MistralToolMessage<'a> {
    pub(super) role: &'static str,
    pub(super) tool_call_id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) content: Cow<'a, str>,
}
