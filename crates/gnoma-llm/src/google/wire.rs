//! Types of the Gemini API, as far as gnoma uses it.

use std::borrow::Cow;

use gnoma_core::RawJson;
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::{
    arguments::ObjectArguments,
    lenient_values::{Count, SkippedValue, SmallList, Text},
};

// What is sent.

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GoogleRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_instruction: Option<SystemInstruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "GenerationConfig::is_empty")]
    pub generation_config: GenerationConfig<'a>,
    pub contents: [(); 0],
}

#[derive(Serialize)]
pub(super) struct SystemInstruction<'a> {
    pub parts: [GooglePart<'a>; 1],
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_json_schema: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_config: Option<ThinkingConfig>,
}

impl GenerationConfig<'_> {
    fn is_empty(&self) -> bool {
        let Self { max_output_tokens, temperature, .. } = self;
        max_output_tokens.is_none()
            && temperature.is_none()
            && self.response_json_schema.is_none()
            && self.thinking_config.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    pub include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolConfig<'a> {
    pub function_calling_config: CallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallingConfig<'a> {
    pub mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_function_names: Option<[Cow<'a, str>; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tools {
    pub function_declarations: Vec<RawJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Function<'a> {
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'a str,
    /// Takes JSON schema as it is; `parameters` would be Google's own subset.
    pub parameters_json_schema: &'a RawValue,
}

#[derive(Serialize)]
pub(super) struct GoogleTurn<'a> {
    pub role: &'static str,
    pub parts: Vec<GooglePart<'a>>,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum GooglePart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Image {
        inline_data: InlineData<'a>,
    },
    Call {
        function_call: GoogleCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Response {
        function_response: CallResponse<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineData<'a> {
    pub mime_type: &'a str,
    pub data: &'a str,
}

#[derive(Serialize)]
pub(super) struct GoogleCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: Cow<'a, str>,
    pub args: ObjectArguments<'a>,
}

#[derive(Serialize)]
pub(super) struct CallResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub name: Cow<'a, str>,
    pub response: FunctionOutcome,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<GooglePart<'a>>,
}

/// The result of a function. Google asks for an object and names these two keys for it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum FunctionOutcome {
    Output(String),
    Error(String),
}

// What is read. A whole answer and a chunk of a stream have the same shape. Proxies write some names as the schema of the
// protocol has them, with underscores.

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub candidates: SmallList<GoogleCandidate<'a>>,
    #[serde(borrow)]
    pub prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(alias = "usage_metadata")]
    pub usage_metadata: Option<Tokens>,
    #[serde(borrow)]
    pub model_version: Text<'a>,
    #[serde(borrow)]
    pub response_id: Text<'a>,
    pub error: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GoogleCandidate<'a> {
    pub index: Count,
    #[serde(borrow)]
    pub content: Option<GoogleContent<'a>>,
    #[serde(borrow, alias = "finish_reason")]
    pub finish_reason: Text<'a>,
    #[serde(borrow)]
    pub finish_message: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GoogleContent<'a> {
    #[serde(borrow)]
    pub parts: SmallList<ReadPart<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ReadPart<'a> {
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    pub thought: Option<bool>,
    #[serde(borrow, alias = "thought_signature")]
    pub thought_signature: Text<'a>,
    #[serde(borrow, alias = "function_call")]
    pub function_call: Option<ReadCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ReadCall<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow, alias = "arguments")]
    pub args: Option<&'a RawValue>,
    #[serde(borrow)]
    pub partial_args: Option<Vec<PartialArgument<'a>>>,
    pub will_continue: Option<bool>,
}

/// A piece of the arguments; one of the values is there.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PartialArgument<'a> {
    #[serde(borrow)]
    pub json_path: Text<'a>,
    #[serde(borrow)]
    pub string_value: Option<Text<'a>>,
    pub number_value: Option<serde_json::Number>,
    pub bool_value: Option<bool>,
    /// True if the field is present. Its value is `null`, so only its presence tells.
    #[serde(deserialize_with = "deserialize_presence")]
    pub null_value: bool,
}

fn deserialize_presence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow)]
    pub block_reason: Text<'a>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Tokens {
    pub prompt_token_count: Count,
    pub cached_content_token_count: Count,
    pub candidates_token_count: Count,
    pub thoughts_token_count: Count,
    #[serde(rename = "promptTokensDetails")]
    _prompt_details: SkippedValue,
    #[serde(rename = "cacheTokensDetails")]
    _cache_details: SkippedValue,
    #[serde(rename = "candidatesTokensDetails")]
    _candidates_details: SkippedValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelList<'a> {
    #[serde(borrow)]
    pub models: Vec<GoogleModel<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GoogleModel<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    pub input_token_limit: Count,
    #[serde(borrow)]
    pub supported_generation_methods: Option<Vec<Text<'a>>>,
}

impl GoogleModel<'_> {
    /// Reports whether the model can be asked for an answer; a model that does not tell its methods is assumed to.
    pub(super) fn can_generate(&self) -> bool {
        let methods = self.supported_generation_methods.as_ref();
        let generates =
            |methods: &Vec<Text<'_>>| methods.iter().any(|name| name.as_str() == "generateContent");
        !self.name.is_empty() && methods.is_none_or(generates)
    }

    pub(super) fn context_window(&self) -> Option<u32> {
        self.input_token_limit.0?.try_into().ok()
    }
}
