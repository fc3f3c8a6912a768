//! The Responses API in its own words: what is sent, and what of an answer is read.
//!
//! Source: <https://platform.openai.com/docs/api-reference/responses> and what servers really send.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::lenient_values::{Count, Text};

/// A request. The list of input items comes last, as [`crate::envelope::Envelope`] wants it.
#[derive(Serialize)]
pub(super) struct ResponsesRequest<'a> {
    pub(super) model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) instructions: &'a str,
    pub(super) stream: bool,
    pub(super) store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) include: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<TextSetting<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<ResponsesToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f32>,
    pub(super) input: [(); 0],
}

/// The settings for reasoning in a request.
#[derive(Serialize)]
pub(super) struct Reasoning {
    pub(super) effort: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<&'static str>,
}

/// The settings for the text of the answer.
#[derive(Serialize)]
pub(super) struct TextSetting<'a> {
    pub(super) format: TextFormat<'a>,
}

/// The form that it must have.
#[derive(Serialize)]
pub(super) struct TextFormat<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
    pub(super) strict: bool,
    pub(super) schema: &'a RawValue,
}

/// The setting for whether tools are called.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResponsesToolChoice<'a> {
    Mode(&'static str),
    Function {
        #[serde(rename = "type")]
        kind: &'static str,
        name: Cow<'a, str>,
    },
}

/// A tool on offer.
#[derive(Serialize)]
pub(super) struct ResponsesTool<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) name: Cow<'a, str>,
    pub(super) description: &'a str,
    pub(super) parameters: &'a RawValue,
    /// Strict schemas must list every property as required; ours need not.
    pub(super) strict: bool,
}

/// One item of a conversation.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputItem<'a> {
    Message {
        role: &'static str,
        content: ResponsesContent<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "str::is_empty")]
        id: &'a str,
        summary: Vec<ReasoningPart<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<ReasoningPart<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<&'a str>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: ResponsesContent<'a>,
    },
}

/// The content of a message or a result.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResponsesContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

/// A piece of what goes in.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    InputText { text: &'a str },
    InputImage { detail: &'static str, image_url: String },
}

/// A piece of replayed reasoning.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ReasoningPart<'a> {
    SummaryText { text: &'a str },
    ReasoningText { text: &'a str },
}

/// One record of an answer; which fields are there depends on `kind`. Large parts stay unread until
/// somebody wants them.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
    pub(super) output_index: Count,
    pub(super) content_index: Count,
    pub(super) summary_index: Count,
    /// The whole text in `*_text.done`.
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    /// The whole text in `refusal.done`.
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    /// The whole arguments in `function_call_arguments.done`.
    #[serde(borrow)]
    pub(super) arguments: Text<'a>,
    /// The whole input in `custom_tool_call_input.done`.
    #[serde(borrow)]
    pub(super) input: Text<'a>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// An answer as a whole: the body of one that was not streamed, or the state of one that is.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    /// The token counts, as a [`Usage`].
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<IncompleteDetails<'a>>,
}

/// The details of an incomplete answer, with the reason.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow)]
    pub(super) reason: Text<'a>,
}

/// Tokens as they count them: input includes what was cached, output what was reasoned.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) total_tokens: Count,
    pub(super) input_tokens_details: Option<InputDetails>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct InputDetails {
    pub(super) cached_tokens: Count,
    pub(super) cache_write_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) reasoning_tokens: Count,
}

/// One item of an answer. The lists are read only for the kinds whose lists we know.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputItem<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) encrypted_content: Text<'a>,
    /// The phase of a message: a remark in between, or the answer.
    #[serde(borrow)]
    pub(super) phase: Text<'a>,
}

/// A piece of a message or of reasoning.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputPart<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
}
