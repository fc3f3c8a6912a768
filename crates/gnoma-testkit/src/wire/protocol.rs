//! The protocols there are, and how they frame an event.

use serde_json::Value;

/// A protocol and, where vendors differ in it, whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Mistral's chat completions: thinking as content chunks, whole calls.
    Mistral,
    /// The protocol of Anthropic's Messages.
    Anthropic,
    /// OpenAI's chat completions: no visible thinking, calls in fragments.
    OpenAi,
    /// The protocol of OpenAI's Responses.
    Responses,
    /// The protocol of Google's `streamGenerateContent`.
    Google,
    /// Ollama's own chat: JSON lines.
    Ollama,
    /// A server that imitates OpenAI: `reasoning_content`, keep-alive comments.
    Compatible,
}

impl Wire {
    /// All of the protocols.
    pub const ALL: [Self; 7] = [
        Self::Mistral,
        Self::Anthropic,
        Self::OpenAi,
        Self::Responses,
        Self::Google,
        Self::Ollama,
        Self::Compatible,
    ];
}

/// A server-sent event without a name.
pub(super) fn unnamed_event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A server-sent event named after its `type`.
pub(super) fn named_event(data: &Value) -> String {
    let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
