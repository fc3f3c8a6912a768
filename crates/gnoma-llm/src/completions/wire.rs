//! The skeleton of an answer: <https://platform.openai.com/docs/api-reference/chat-streaming> and
//! <https://docs.mistral.ai/api/endpoint/chat>. Only what is used is declared.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::content_text::ContentText;
use crate::{
    arguments::text_of,
    lenient_values::{Count, SmallList, Text},
};

/// JSON that is kept as text until it is wanted. What is bulky or rare would otherwise be moved about
/// with every record, which is what reading a stream of short deltas spends its time on.
pub(crate) type Raw<'a> = Option<&'a RawValue>;

/// Parses the value in `raw`. A missing value, or one of another form, gives the default: it is not worth losing an
/// answer.
pub(crate) fn read_or_default<'a, T: Deserialize<'a> + Default>(raw: Raw<'a>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// One record of a stream, or a whole answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) model: Text<'a>,
    #[serde(borrow)]
    pub(crate) choices: Option<SmallList<ChatChoice<'a>>>,
    /// The token counts, as a [`UsageReport`].
    #[serde(borrow)]
    pub(crate) usage: Raw<'a>,
    /// The additions by Groq, as [`GroqExtras`].
    #[serde(borrow)]
    pub(crate) x_groq: Raw<'a>,
    #[serde(borrow)]
    error: Raw<'a>,
    /// `error` on Mistral's error bodies.
    #[serde(borrow, default)]
    object: Text<'a>,
    /// The message of FastAPI's and Mistral's error bodies.
    #[serde(borrow)]
    detail: Raw<'a>,
}

impl Chunk<'_> {
    /// Reports whether the record tells of a failure, in any of the known forms.
    pub(crate) fn is_failure(&self) -> bool {
        let bare =
            self.choices.is_none() && (self.object.as_str() == "error" || self.detail.is_some());
        // Some gateways send along an error that is none.
        let is_some = |error: &&RawValue| !matches!(error.get(), "false" | "{}" | "\"\"");
        self.error.filter(is_some).is_some() || bare
    }
}

/// One of the alternatives asked for; gnoma asks for one.
#[derive(Debug, Deserialize)]
pub(crate) struct ChatChoice<'a> {
    #[serde(default)]
    pub(crate) index: Count,
    /// The new part of the answer, in a stream.
    #[serde(borrow)]
    pub(crate) delta: Raw<'a>,
    /// Everything, in a whole answer. Perplexity sends it along in a stream too.
    #[serde(borrow)]
    pub(crate) message: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) finish_reason: Text<'a>,
    /// The token counts where Moonshot streams them, as a [`UsageReport`].
    #[serde(borrow)]
    pub(crate) usage: Raw<'a>,
}

/// A part of a content list. Parts of other types (references, images, audio) hold none of these.
#[derive(Debug, Deserialize)]
pub(crate) struct ContentPart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(crate) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) text: Text<'a>,
    /// The thinking chunk of Mistral.
    #[serde(borrow, default)]
    pub(crate) thinking: ContentText<'a, Snippet<'a>>,
    /// Databricks' reasoning part: [`ContentText`] in [`Snippet`]s.
    #[serde(borrow)]
    pub(crate) summary: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) refusal: Text<'a>,
}

impl ContentPart<'_> {
    /// Reports whether the text of the part is reasoning.
    pub(crate) fn is_thought(&self) -> bool {
        ["reasoning", "thinking"].iter().any(|word| self.kind.as_str().contains(word))
    }
}

/// A piece of text within a part.
#[derive(Debug, Deserialize)]
pub(crate) struct Snippet<'a> {
    #[serde(borrow, default)]
    pub(crate) text: Text<'a>,
}

/// A call, or a piece of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallPiece<'a> {
    pub(crate) index: Count,
    #[serde(borrow)]
    pub(crate) id: Text<'a>,
    #[serde(borrow)]
    pub(crate) function: Option<FunctionPiece<'a>>,
    /// OpenAI's free-form tools: a [`FunctionPiece`].
    #[serde(borrow)]
    pub(crate) custom: Raw<'a>,
    /// The name of the function, from servers that send no `function`.
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    /// The arguments, from such servers.
    #[serde(borrow)]
    pub(crate) arguments: Raw<'a>,
    /// The additions by Google, as [`ExtraContent`].
    #[serde(borrow)]
    pub(crate) extra_content: Raw<'a>,
}

/// The function that is called, or a piece of it.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    arguments: Raw<'a>,
    /// The input of a free-form tool, in place of the arguments.
    #[serde(borrow)]
    input: Raw<'a>,
}

impl<'a> FunctionPiece<'a> {
    /// A function whose parts stand in the call itself.
    pub(crate) fn new(name: Text<'a>, arguments: Raw<'a>) -> Self {
        Self { name, arguments, input: None }
    }

    /// The text of the arguments.
    pub(crate) fn arguments_text(&self) -> Cow<'_, str> {
        self.arguments.or(self.input).map_or(Cow::Borrowed(""), text_of)
    }
}

/// The fields that Google adds to a call: <https://ai.google.dev/gemini-api/docs/thought-signatures>.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ExtraContent<'a> {
    #[serde(borrow)]
    pub(crate) google: GoogleExtras<'a>,
}

/// Google's part of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GoogleExtras<'a> {
    #[serde(borrow)]
    pub(crate) thought_signature: Text<'a>,
}

/// The fields that Groq adds to a record.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct GroqExtras {
    pub(crate) usage: Option<UsageReport>,
}

/// Token counts, with every vendor's names for the cached share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct UsageReport {
    pub(crate) prompt_tokens: Count,
    pub(crate) completion_tokens: Count,
    /// The tokens of the prompt, as servers with the names of other wires report them.
    pub(crate) input_tokens: Count,
    /// The tokens of the answer, as such servers report them.
    pub(crate) output_tokens: Count,
    pub(crate) total_tokens: Count,
    pub(crate) prompt_tokens_details: Option<PromptDetails>,
    pub(crate) completion_tokens_details: Option<CompletionDetails>,
    /// The tokens read from the cache, as DeepSeek names them.
    pub(crate) prompt_cache_hit_tokens: Count,
    /// The tokens read from the cache, as Databricks and Venice name them.
    pub(crate) cache_read_input_tokens: Count,
    pub(crate) cache_creation_input_tokens: Count,
    /// The tokens read from the cache, as Together and Moonshot name them.
    pub(crate) cached_tokens: Count,
    /// The tokens read from the cache, as Mistral names them.
    pub(crate) num_cached_tokens: Count,
    /// The tokens of reasoning, as Copilot reports them.
    pub(crate) reasoning_tokens: Count,
}

/// Details of the prompt's tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PromptDetails {
    pub(crate) cached_tokens: Count,
    pub(crate) cache_write_tokens: Count,
}

/// Details of the answer's tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CompletionDetails {
    pub(crate) reasoning_tokens: Count,
}
