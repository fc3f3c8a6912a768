//! Models whose thinking cannot be turned off.

use gnoma_core::Effort;

use crate::{Profile, Protocol, anthropic, google, profile::EffortField};

/// Reports whether a model thinks regardless of what it is told, as far as is known about it.
#[must_use]
pub fn always_thinks(profile: &Profile, model: &str) -> bool {
    match profile.protocol {
        Protocol::Anthropic => anthropic::always_thinks(model),
        Protocol::Google => google::always_thinks(model),
        Protocol::Mistral => model.starts_with("magistral"),
        Protocol::Ollama => model.contains("gpt-oss"),
        Protocol::Responses => is_worded(profile, model),
        Protocol::OpenAi => match profile.quirks.effort {
            EffortField::Words(_) => is_worded(profile, model),
            EffortField::None
            | EffortField::Reasoning
            | EffortField::Thinking
            | EffortField::Template => false,
        },
    }
}

/// Reports whether the word that asks the model for no effort still asks for some.
fn is_worded(profile: &Profile, model: &str) -> bool {
    let word = profile.quirks.family(model).effort_word(Effort::None);
    word.is_some_and(|word| word != "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_thinking_models_are_recognized_by_name() {
        for (provider, protocol, model, always) in [
            ("openai", Protocol::Responses, "o3", true),
            ("openai", Protocol::Responses, "gpt-5.5", false),
            ("openai", Protocol::Responses, "gpt-4.1", false),
            ("anthropic", Protocol::Anthropic, "claude-sonnet-4-6", false),
            ("google", Protocol::Google, "gemini-2.5-pro", true),
            ("google", Protocol::Google, "gemini-2.5-flash", false),
            ("mistral", Protocol::Mistral, "magistral-medium", true),
            ("ollama", Protocol::Ollama, "qwen3:8b", false),
        ] {
            let profile = Profile::new(provider, protocol, "http://x");
            assert_eq!(always_thinks(&profile, model), always, "{model}");
        }
    }
}
