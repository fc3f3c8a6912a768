//! Ollama's `/api/chat` in its own words.
//!
//! Source: <https://github.com/ollama/ollama/blob/main/docs/api.md> and what servers really send.

use std::borrow::Cow;

use gnoma_core::RawJson;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    arguments::ObjectArguments,
    lenient_values::{Count, SmallList, Text},
};

/// A request. The list of messages comes last, as [`crate::envelope::Envelope`] wants it.
#[derive(Serialize)]
pub(super) struct OllamaRequest<'a> {
    pub(super) model: &'a str,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) think: Option<ThinkSetting>,
    #[serde(skip_serializing_if = "OllamaOptions::is_empty")]
    pub(super) options: OllamaOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawValue>,
    pub(super) messages: Vec<Message<'a>>,
}

/// The setting for thinking: on or off for most models, a level for gpt-oss.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum ThinkSetting {
    Whether(bool),
    Level(&'static str),
}

/// The options with which the model is run.
#[derive(Serialize)]
pub(super) struct OllamaOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) num_ctx: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f32>,
}

impl OllamaOptions {
    fn is_empty(&self) -> bool {
        self.num_ctx.is_none() && self.num_predict.is_none() && self.temperature.is_none()
    }
}

/// One message of a conversation.
#[derive(Default, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) thinking: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<OllamaCall<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) tool_name: Cow<'a, str>,
    /// Servers of 2025 do not know it and read over it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) tool_call_id: &'a str,
}

/// A call in the history.
#[derive(Serialize)]
pub(super) struct OllamaCall<'a> {
    pub(super) id: &'a str,
    pub(super) function: HistoryFunction<'a>,
}

/// The function of an earlier call, with its arguments.
#[derive(Serialize)]
pub(super) struct HistoryFunction<'a> {
    pub(super) name: Cow<'a, str>,
    #[serde(serialize_with = "as_object")]
    pub(super) arguments: &'a RawJson,
}

fn as_object<S: serde::Serializer>(arguments: &&RawJson, serializer: S) -> Result<S::Ok, S::Error> {
    ObjectArguments(arguments).serialize(serializer)
}

/// One line of an answer, or the whole of one that was not streamed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OllamaLine<'a> {
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Option<OllamaMessage<'a>>,
    pub(super) done: Option<bool>,
    #[serde(borrow)]
    pub(super) done_reason: Text<'a>,
    pub(super) prompt_eval_count: Count,
    pub(super) eval_count: Count,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// The part of the model's answer in one line.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OllamaMessage<'a> {
    #[serde(borrow)]
    pub(super) content: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: SmallList<OllamaToolCall<'a>>,
}

/// A call in an answer.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OllamaToolCall<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Option<OllamaFunction<'a>>,
}

/// The function that is called, with its arguments.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OllamaFunction<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}
