//! Types of the Anthropic Messages API, as far as gnoma uses it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::{
    arguments::ObjectArguments,
    lenient_values::{Count, Text},
};

// What is sent.

#[derive(Serialize)]
pub(super) struct AnthropicRequest<'a> {
    pub model: &'a str,
    pub max_tokens: u32,
    pub stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_config: Option<OutputSetting<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<[AnthropicBlock<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice<'a>>,
    pub messages: [(); 0],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ThinkingConfig {
    Enabled {
        budget_tokens: u32,
    },
    /// The newest models hide their reasoning unless a summary is asked for.
    Adaptive {
        display: &'static str,
    },
    Disabled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct OutputConfig {
    pub effort: &'static str,
}

/// [`OutputConfig`] with the form of the answer.
#[derive(Serialize)]
pub(super) struct OutputSetting<'a> {
    #[serde(flatten)]
    pub config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerSchema<'a>>,
}

#[derive(Serialize)]
pub(super) struct AnswerSchema<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub schema: &'a RawValue,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToolChoice<'a> {
    None,
    Any,
    Tool { name: Cow<'a, str> },
}

#[derive(Serialize)]
pub(super) struct AnthropicTool<'a> {
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'a str,
    pub input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
pub(super) struct AnthropicTurn<'a> {
    pub role: &'static str,
    pub content: Vec<AnthropicBlock<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AnthropicBlock<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: ObjectArguments<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Self>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum CacheControl {
    Ephemeral,
}

// What is read. One shape for every record: most of its fields are missing from any one of them. What
// a delta has none of is boxed, because deltas are many and a record is moved several times.

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Record<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    pub index: Count,
    #[serde(borrow)]
    pub delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub content_block: Option<Box<ReadBlock<'a>>>,
    #[serde(borrow)]
    pub message: Option<Box<WholeAnswer<'a>>>,
    pub usage: Option<Box<Tokens>>,
    pub error: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub thinking: Text<'a>,
    #[serde(borrow)]
    pub signature: Text<'a>,
    #[serde(borrow)]
    pub partial_json: Text<'a>,
    #[serde(borrow)]
    pub stop_reason: Text<'a>,
}

/// A whole answer; at the start of a stream, one without content.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct WholeAnswer<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub model: Text<'a>,
    #[serde(borrow)]
    pub content: Option<Vec<ReadBlock<'a>>>,
    #[serde(borrow)]
    pub stop_reason: Text<'a>,
    pub usage: Option<Tokens>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ReadBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub thinking: Text<'a>,
    #[serde(borrow)]
    pub signature: Text<'a>,
    #[serde(borrow)]
    pub data: Text<'a>,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub input: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub input_tokens: Count,
    pub output_tokens: Count,
    pub cache_read_input_tokens: Count,
    pub cache_creation_input_tokens: Count,
    pub output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub thinking_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelList<'a> {
    #[serde(borrow)]
    pub data: Vec<AnthropicModel<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AnthropicModel<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    pub max_input_tokens: Count,
}

impl AnthropicModel<'_> {
    pub(super) fn context_window(&self) -> Option<u32> {
        self.max_input_tokens.0?.try_into().ok()
    }
}
