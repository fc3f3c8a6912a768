//! The wire protocols (APIs) that providers can speak.

/// A wire that an endpoint can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The protocol of Mistral.
    Mistral,
    /// The Messages protocol of Anthropic.
    Anthropic,
    /// The Chat Completions protocol of OpenAI.
    OpenAi,
    /// The Responses protocol of OpenAI.
    Responses,
    /// The protocol of Google Gemini.
    Google,
    /// The protocol of Ollama itself.
    Ollama,
    /// The protocol that most servers mean by "OpenAI-compatible".
    Compatible,
}
