//! The port to a model: one request in, one pulled stream of events out.

use std::{pin::Pin, sync::Arc};

use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::{
    error::ProviderError,
    json::RawJson,
    message::Message,
    stream::StreamEvent,
    thinking::ThinkingMode,
    tool::{BoxFuture, ToolSpec},
};

/// The effort that a model should put into thinking, if the model accepts such a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all, or as little as the model allows.
    None,
    /// The lowest effort of thinking.
    Low,
    /// A medium effort: a few thousand tokens of reasoning, as the vendor defines it.
    Medium,
    /// A high effort: as much reasoning as the vendor allows for it.
    High,
}

/// The choice that says if the model may, must or must not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides by itself.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// At least one call. No turn asks for this at present; every wire can say it.
    Required,
    /// This tool (our name).
    Tool(String),
}

/// The stage at which the answer must have its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FormatStage {
    /// Tools may be called first. The schema is sent as well, if the wire allows both.
    WithTools,
    /// Now, in the wire's own way; if it has none, as the arguments of a tool.
    AnswerNow,
    /// Now, as the arguments of a tool that is called for it.
    AsCall,
}

/// The form that an answer must have.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerFormat {
    /// The JSON Schema that it matches.
    pub schema: Arc<RawJson>,
    /// The stage at which the form is wanted.
    pub stage: FormatStage,
}

/// One question to a model.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Model id as the wire expects it.
    pub model: Arc<str>,
    /// System prompt; may be empty.
    pub system: Arc<str>,
    /// The conversation. Entries are shared with the history, and adapters remember how they were
    /// encoded: only what is new is serialised.
    pub messages: Vec<Arc<Message>>,
    /// Tools on offer, in an order that stays the same (prompt caches).
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// The choice that says if the tools may be called.
    pub tool_choice: ToolChoice,
    /// Most tokens to write; `None` leaves it to the adapter's default.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f32>,
    /// The effort of thinking; `None` leaves it to the provider.
    pub effort: Option<Effort>,
    /// The thinking mode that a person chose, for wires that accept more than an effort.
    pub thinking: Option<ThinkingMode>,
    /// Window in tokens that a local server should allot (Ollama's `num_ctx`); `None` asks for none.
    pub context_window: Option<u32>,
    /// The form that the answer must have; `None` for text.
    pub format: Option<AnswerFormat>,
}

/// A model a provider offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Model id as the wire wants it.
    pub id: String,
    /// Window in tokens, if the provider reports it.
    pub context_window: Option<u32>,
    /// The number of parameters of the model, if the provider reports it.
    pub parameters: Option<u64>,
}

/// A stream the consumer pulls. Dropping it closes the connection.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, ProviderError>> + Send>>;

/// A connection to one provider of models, such as Anthropic or a local server.
pub trait Provider: Send + Sync {
    /// Name as configured, such as `anthropic` or `my-vllm`.
    fn name(&self) -> &str;

    /// Asks a model and gives its answer as events. Nothing is sent before the stream is polled; failures come through the stream.
    fn stream(&self, request: ModelRequest) -> EventStream;

    /// The models on offer.
    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>>;
}
