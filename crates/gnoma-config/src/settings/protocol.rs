//! The wires that endpoints can speak.

/// A wire that an endpoint can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Mistral's.
    Mistral,
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAi,
    /// OpenAI Responses.
    Responses,
    /// Google Gemini.
    Google,
    /// Ollama's own.
    Ollama,
    /// What most servers mean by "OpenAI-compatible".
    Compatible,
}
