//! Which providers are listed, how the sources call them, and which of their models are left out by
//! what their names say they are for.

/// A provider by our name and by theirs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provider {
    /// Name in gnoma's configuration.
    pub(super) name: &'static str,
    /// The provider's name in litellm, and the prefix of its ids there; empty if litellm does not list it.
    pub(super) litellm: (&'static str, &'static str),
    /// The provider's name in models.dev.
    pub(super) models_dev: &'static str,
    /// The provider's name in model-prices; empty if that does not list it.
    pub(super) model_prices: &'static str,
}

const fn define_provider(
    name: &'static str,
    litellm: (&'static str, &'static str),
    models_dev: &'static str,
    model_prices: &'static str,
) -> Provider {
    Provider { name, litellm, models_dev, model_prices }
}

/// Everybody gnoma knows, and those that its "compatible" protocols reach.
pub(super) const PROVIDERS: &[Provider] = &[
    define_provider("alibaba", ("dashscope", "dashscope/"), "alibaba", "alibaba"),
    define_provider("anthropic", ("anthropic", ""), "anthropic", "anthropic"),
    define_provider("baseten", ("baseten", "baseten/"), "baseten", ""),
    define_provider("cerebras", ("cerebras", "cerebras/"), "cerebras", ""),
    define_provider("deepinfra", ("deepinfra", "deepinfra/"), "deepinfra", ""),
    define_provider("deepseek", ("deepseek", "deepseek/"), "deepseek", "deepseek"),
    define_provider("fireworks", ("fireworks_ai", "fireworks_ai/"), "fireworks-ai", ""),
    define_provider("google", ("gemini", "gemini/"), "google", "google"),
    define_provider("groq", ("groq", "groq/"), "groq", ""),
    define_provider("inception", ("inception", "inception/"), "inception", "inception"),
    define_provider("meta", ("meta", "meta/"), "meta", "meta"),
    define_provider("minimax", ("minimax", "minimax/"), "minimax", "minimax"),
    define_provider("mistral", ("mistral", "mistral/"), "mistral", "mistral"),
    define_provider("moonshot", ("moonshot", "moonshot/"), "moonshotai", "moonshotai"),
    define_provider("nebius", ("nebius", "nebius/"), "nebius", ""),
    define_provider("novita", ("novita", "novita/"), "novita-ai", ""),
    define_provider("openai", ("openai", ""), "openai", "openai"),
    define_provider("openrouter", ("", ""), "openrouter", ""),
    define_provider("sambanova", ("sambanova", "sambanova/"), "sambanova", ""),
    define_provider("scaleway", ("scaleway", "scaleway/"), "scaleway", ""),
    define_provider("together", ("together_ai", "together_ai/"), "togetherai", ""),
    define_provider("xai", ("xai", "xai/"), "xai", "xai"),
    define_provider("xiaomi", ("xiaomi_mimo", "xiaomi_mimo/"), "xiaomi", "xiaomi"),
    define_provider("zai", ("zai", "zai/"), "zai", "zai"),
];

/// Providers that sell the models of another under its names and prices.
pub(super) const SAME_AS: &[(&str, &str)] = &[("azure", "openai")];

/// Words in an id that say it is not for conversations with tools, or not for everybody.
const OTHER_USE: &[&str] = &[
    "audio",
    "computer",
    "embed",
    "embedding",
    "fim",
    "guard",
    "image",
    "live",
    "moderation",
    "ocr",
    "realtime",
    "research",
    "robotics",
    "safeguard",
    "search",
    "streaming",
    "transcribe",
    "tts",
    "video",
];

/// Reports whether an id is of a model for conversations, as far as its name tells. Names with a colon in front are
/// people's own fine-tunes; those with a tilde are moving targets.
pub(super) fn is_for_conversation(id: &str) -> bool {
    let listable = id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'=' && byte != b'#');
    let words = id.split(['-', '/', ':', '.', '_']);
    let named = words.clone().any(|word| OTHER_USE.contains(&word.to_ascii_lowercase().as_str()));
    listable && !named && !id.starts_with("ft:") && !id.starts_with(['@', '~'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_are_not_for_chat_are_excluded_by_name() {
        assert!(is_for_conversation("vendor/searcher-4:free"));
        for id in ["ft:gpt-x", "x-tts", "x/y-embed-2", "x-Search-api", "~x/latest", "a b", "x=y"] {
            assert!(!is_for_conversation(id), "{id}");
        }
    }

    #[test]
    fn providers_are_sorted_and_distinct() {
        assert!(PROVIDERS.is_sorted_by(|one, next| one.name < next.name));
    }
}
