//! A provider's endpoint: address, key, protocol, and the small differences between servers that claim the same
//! protocol.

use gnoma_core::Secret;

use crate::{
    families::{self, Family},
    host::{host_of, is_private},
};

/// The wire an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The chat completions protocol of Mistral.
    Mistral,
    /// The Messages protocol of Anthropic.
    Anthropic,
    /// OpenAI Chat Completions, and everything compatible with it.
    OpenAi,
    /// The Responses protocol of OpenAI.
    Responses,
    /// The `generateContent` protocol of Google Gemini.
    Google,
    /// The `/api/chat` protocol of Ollama itself.
    Ollama,
}

/// The field that carries the output limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_tokens`, understood by nearly every compatible server.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models demand.
    MaxCompletionTokens,
}

/// The way in which a chat server is told how hard to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffortField {
    /// The server cannot be told.
    None,
    /// `reasoning_effort: "low"`, in words that depend on the model.
    Words(&'static [Family]),
    /// `reasoning: { effort: "low" }` (OpenRouter).
    Reasoning,
    /// `thinking: { type: "enabled" }`, and `reasoning_effort` for less than all (DeepSeek). What is
    /// thought of a call must come back with it, and a call cannot be demanded of a model that thinks.
    Thinking,
    /// `chat_template_kwargs: { enable_thinking: true, … }`, for the template of the model that runs
    /// (llama.cpp, vLLM), which ignores what it does not know; and `reasoning_effort` beside it, which
    /// vLLM reads for gpt-oss.
    Template,
}

/// The support of a chat server for a field with the form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatField {
    /// The server has no such field, or none for streamed answers.
    None,
    /// The server has such a field, and a model that is held to a form can call no tools.
    Alone,
    /// The server has such a field, and tools may be offered beside it.
    Beside,
}

/// The small differences between servers compatible with OpenAI's chat completions. One row of a
/// table per known server; an unknown one gets [`Quirks::COMPATIBLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// The output limit's field.
    pub max_tokens: MaxTokensField,
    /// True if `stream_options: {include_usage: true}` may be sent.
    pub stream_usage: bool,
    /// The way in which effort is asked for.
    pub effort: EffortField,
    /// The way in which the form of an answer is asked for.
    pub format: FormatField,
    /// True if the server takes pictures.
    pub images: bool,
    /// Longest call id it takes, in bytes.
    pub max_call_id: usize,
    /// The key goes into an `api-key` header instead of `Authorization` (Azure).
    pub api_key_header: bool,
    /// Small models behind it write calls as text; read those too.
    pub text_calls: bool,
}

impl Quirks {
    /// The quirks that an unknown compatible server is assumed to have.
    pub const COMPATIBLE: Self = Self {
        max_tokens: MaxTokensField::MaxTokens,
        stream_usage: true,
        effort: EffortField::None,
        format: FormatField::Alone,
        images: true,
        max_call_id: 256,
        api_key_header: false,
        text_calls: true,
    };
    const OPENAI: Self = Self {
        max_tokens: MaxTokensField::MaxCompletionTokens,
        effort: EffortField::Words(families::OPENAI),
        format: FormatField::Beside,
        max_call_id: 40,
        text_calls: false,
        ..Self::COMPATIBLE
    };
    const HOSTED: Self = Self { text_calls: false, ..Self::COMPATIBLE };
    /// Servers that run a model's own chat template.
    const TEMPLATED: Self = Self { effort: EffortField::Template, ..Self::COMPATIBLE };

    /// Returns the family of `model`, which says what the model takes if effort is told in words. A server that
    /// speaks OpenAI's protocols with other models is assumed to know OpenAI's words.
    pub(crate) fn family(&self, model: &str) -> &'static Family {
        let list = match self.effort {
            EffortField::Words(list) => list,
            EffortField::None
            | EffortField::Reasoning
            | EffortField::Thinking
            | EffortField::Template => families::OPENAI,
        };
        families::find_family(list, model)
    }
}

/// A provider gnoma knows by name.
#[derive(Clone, Copy, Debug)]
pub struct KnownProvider {
    /// The name of the provider in configuration.
    pub name: &'static str,
    /// The protocol that the provider speaks.
    pub protocol: Protocol,
    /// The base URL of the provider.
    pub base_url: &'static str,
    /// True if the provider runs on the user's machine: it needs no key, and gnoma looks for it.
    pub local: bool,
    /// The model used when none is named; empty for servers that are asked what they have.
    pub default_model: &'static str,
    /// The differences of the provider from plain chat completions.
    pub quirks: Quirks,
}

/// The providers gnoma knows, in the order they are listed and looked for.
pub const KNOWN: &[KnownProvider] = &[
    KnownProvider {
        name: "mistral",
        protocol: Protocol::Mistral,
        base_url: "https://api.mistral.ai/v1",
        local: false,
        default_model: "mistral-large-latest",
        quirks: Quirks::HOSTED,
    },
    KnownProvider {
        name: "anthropic",
        protocol: Protocol::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        local: false,
        default_model: "claude-sonnet-4-6",
        quirks: Quirks::HOSTED,
    },
    KnownProvider {
        name: "openai",
        protocol: Protocol::Responses,
        base_url: "https://api.openai.com/v1",
        local: false,
        default_model: "gpt-5.5",
        quirks: Quirks::OPENAI,
    },
    KnownProvider {
        name: "google",
        protocol: Protocol::Google,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        local: false,
        default_model: "gemini-3.5-flash",
        quirks: Quirks::HOSTED,
    },
    KnownProvider {
        name: "ollama",
        protocol: Protocol::Ollama,
        base_url: "http://localhost:11434",
        local: true,
        default_model: "",
        quirks: Quirks::COMPATIBLE,
    },
    KnownProvider {
        name: "llamacpp",
        protocol: Protocol::OpenAi,
        base_url: "http://localhost:8080/v1",
        local: true,
        default_model: "",
        quirks: Quirks::TEMPLATED,
    },
    KnownProvider {
        name: "lmstudio",
        protocol: Protocol::OpenAi,
        base_url: "http://localhost:1234/v1",
        local: true,
        default_model: "",
        quirks: Quirks::COMPATIBLE,
    },
    KnownProvider {
        name: "vllm",
        protocol: Protocol::OpenAi,
        base_url: "http://localhost:8000/v1",
        local: true,
        default_model: "",
        quirks: Quirks::TEMPLATED,
    },
    KnownProvider {
        name: "openrouter",
        protocol: Protocol::OpenAi,
        base_url: "https://openrouter.ai/api/v1",
        local: false,
        default_model: "openrouter/auto",
        quirks: Quirks {
            effort: EffortField::Reasoning,
            format: FormatField::Beside,
            ..Quirks::HOSTED
        },
    },
    KnownProvider {
        name: "groq",
        protocol: Protocol::OpenAi,
        base_url: "https://api.groq.com/openai/v1",
        local: false,
        default_model: "openai/gpt-oss-120b",
        // It has a field, but not for answers that are streamed.
        quirks: Quirks {
            effort: EffortField::Words(families::GROQ),
            format: FormatField::None,
            ..Quirks::HOSTED
        },
    },
    KnownProvider {
        name: "deepseek",
        protocol: Protocol::OpenAi,
        base_url: "https://api.deepseek.com",
        local: false,
        default_model: "deepseek-v4-flash",
        quirks: Quirks {
            effort: EffortField::Thinking,
            format: FormatField::None,
            images: false,
            ..Quirks::HOSTED
        },
    },
    KnownProvider {
        name: "xai",
        protocol: Protocol::OpenAi,
        base_url: "https://api.x.ai/v1",
        local: false,
        default_model: "grok-4.3",
        quirks: Quirks {
            effort: EffortField::Words(families::XAI),
            format: FormatField::Beside,
            ..Quirks::HOSTED
        },
    },
    KnownProvider {
        name: "azure",
        protocol: Protocol::OpenAi,
        base_url: "",
        local: false,
        default_model: "",
        quirks: Quirks { api_key_header: true, ..Quirks::OPENAI },
    },
];

/// The information needed to reach one provider.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Name as configured; in errors, events and messages' origins.
    pub name: String,
    /// The protocol that the provider speaks.
    pub protocol: Protocol,
    /// Address up to, not including, the protocol's own path; without a slash at the end. A query
    /// (Azure's `api-version`) is kept behind the path.
    pub base_url: String,
    /// The key, where one is needed.
    pub key: Option<Secret<String>>,
    /// The key is sent as `Authorization: Bearer` where the protocol has a header of its own for keys.
    pub has_bearer_key: bool,
    /// Variable that would set the key, for the hint when it is missing or wrong.
    pub key_variable: String,
    /// That variable is set aside by `provider.ignored_variables`.
    pub ignores_key_variable: bool,
    /// The source of the key, as a person finds it: a variable, or a setting and its place. Without a key, the
    /// setting that names a variable which is not set. `None` if the source is not known.
    pub key_source: Option<String>,
    /// The same of the address; `None` where it is the vendor's own.
    pub address_source: Option<String>,
    /// Models that are sent no pictures.
    pub blind_models: Vec<String>,
    /// True if the provider runs on the user's machine.
    pub local: bool,
    /// The differences of the provider from plain chat completions.
    pub quirks: Quirks,
}

impl Profile {
    /// A profile without a key. A known name brings its quirks, whatever the address.
    pub fn new(name: impl Into<String>, protocol: Protocol, base_url: impl Into<String>) -> Self {
        let name = name.into();
        let known = KNOWN.iter().find(|known| known.name == name);
        let base_url: String = base_url.into();
        Self {
            protocol,
            base_url: base_url.trim_end_matches('/').to_owned(),
            key: None,
            has_bearer_key: false,
            key_variable: variable_name(&name),
            ignores_key_variable: false,
            key_source: None,
            address_source: None,
            blind_models: Vec::new(),
            local: known.is_some_and(|known| known.local),
            quirks: known.map_or(Quirks::COMPATIBLE, |known| known.quirks),
            name,
        }
    }

    /// Reports whether both profiles lead to the same provider with the same credentials, so that one connection
    /// serves for both.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { name, protocol, base_url, key, key_variable, local, quirks, .. } = self;
        let sources = |profile: &Self| [profile.key_source.clone(), profile.address_source.clone()];
        let is_same_key = match (key, &other.key) {
            (Some(own), Some(other)) => own.expose() == other.expose(),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        (name, protocol, base_url, key_variable, local, quirks)
            == (
                &other.name,
                &other.protocol,
                &other.base_url,
                &other.key_variable,
                &other.local,
                &other.quirks,
            )
            && is_same_key
            && sources(self) == sources(other)
            && self.blind_models == other.blind_models
    }

    /// Says how a missing key can be set by its variable: `export MISTRAL_API_KEY=…`.
    #[must_use]
    pub fn describe_key_setting(&self) -> String {
        let variable = &self.key_variable;
        if self.ignores_key_variable {
            format!("take {variable} out of `provider.ignored_variables`")
        } else {
            format!("export {variable}=…")
        }
    }

    /// Returns the place that a person checks if the key is wrong: where it came from, or else where it may stand.
    pub(crate) fn key_place(&self) -> String {
        self.key_source.clone().unwrap_or_else(|| {
            format!("{} or `provider.api_keys.{}`", self.key_variable, self.name)
        })
    }

    /// Returns the place that a person changes if the address is wrong.
    pub(crate) fn address_place(&self) -> String {
        let setting = || format!("`provider.endpoints.{}`", self.name);
        self.address_source.clone().unwrap_or_else(setting)
    }

    /// Describes the address for a person to check if something other than the server may have answered. A vendor's
    /// own address is not a setting, so the text then names other causes.
    pub(crate) fn describe_address(&self) -> String {
        let (name, url) = (&self.name, &self.base_url);
        match &self.address_source {
            Some(place) => format!("Check the address {url} in {place}."),
            None if !self.has_vendor_address() => {
                format!("Check the address {url} in `provider.endpoints.{name}`.")
            }
            None => format!(
                "gnoma asks {url}, the address that it knows for `{name}`: a proxy or a login page in between may have \
                 answered. Open it in a browser to see."
            ),
        }
    }

    /// Returns the path that follows the base address in the address of a request.
    pub(crate) fn request_path(&self) -> &'static str {
        match self.protocol {
            Protocol::Mistral | Protocol::OpenAi => "/chat/completions",
            Protocol::Responses => "/responses",
            Protocol::Anthropic => "/messages",
            Protocol::Google => "/models/MODEL:streamGenerateContent",
            Protocol::Ollama => "/api/chat",
        }
    }

    /// Says how an address of the protocol usually ends, where this one does not.
    pub(crate) fn describe_usual_address(&self) -> String {
        let path = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let path = path.split_once('/').map(|(_, path)| path.trim_end_matches('/'));
        match (self.protocol, path) {
            (Protocol::Ollama, None) => String::new(),
            (Protocol::Ollama, Some(_)) => " It usually is host and port alone.".to_owned(),
            (Protocol::Google, Some(path)) if path.ends_with("v1beta") => String::new(),
            (Protocol::Google, _) => " It often ends in /v1beta.".to_owned(),
            (_, Some(path)) if path.ends_with("v1") => String::new(),
            _ => " It often ends in /v1.".to_owned(),
        }
    }

    /// Reports whether the address is the vendor's own and was not set by a person.
    pub(crate) fn has_vendor_address(&self) -> bool {
        self.address_source.is_none() && !self.is_own_server()
    }

    /// Reports whether the provider is a server of people's own, and not a vendor's: on their machine, of a name that
    /// gnoma does not know, or at another address than the vendor's that they have set.
    pub(crate) fn is_own_server(&self) -> bool {
        let host = host_of(&self.base_url);
        let is_elsewhere = |vendor: &str| {
            let domain = vendor.rsplitn(3, '.').take(2).map(str::len).sum::<usize>() + 1;
            let domain = vendor.get(vendor.len().saturating_sub(domain)..).unwrap_or(vendor);
            let is_below =
                host.strip_suffix(domain).is_some_and(|it| it.is_empty() || it.ends_with('.'));
            !vendor.is_empty() && !is_below
        };
        let known = KNOWN.iter().find(|known| known.name == self.name);
        self.local
            || known.is_none_or(|known| {
                self.address_source.is_some() && is_elsewhere(host_of(known.base_url))
            })
    }

    /// Reports whether gnoma does not know the provider's name.
    pub(crate) fn has_unknown_name(&self) -> bool {
        KNOWN.iter().all(|known| known.name != self.name)
    }

    /// Reports whether calls that the model writes as text are read. Small models on a person's own machines need
    /// it; a text of a hosted model that quotes a call must not become one.
    #[must_use]
    pub fn reads_text_calls(&self) -> bool {
        self.quirks.text_calls && (self.local || is_private(host_of(&self.base_url)))
    }

    /// The profile of a provider gnoma knows.
    #[must_use]
    pub fn find_known(name: &str) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.name == name)?;
        Some(Self::new(known.name, known.protocol, known.base_url))
    }

    /// The key as a header, where there is one.
    pub(crate) fn auth_header(&self) -> Option<(&'static str, Secret<String>)> {
        let key = self.key.as_ref()?;
        if self.quirks.api_key_header {
            return Some(("api-key", key.clone()));
        }
        let bearer = Secret::new(format!("Bearer {}", key.expose()));
        Some(("authorization", bearer))
    }

    /// `path` under the base URL; the base's query moves to the end.
    #[must_use]
    pub fn url_for(&self, path: &str) -> String {
        match self.base_url.split_once('?') {
            None => format!("{}{path}", self.base_url),
            Some((base, query)) => {
                let joint = if path.contains('?') { '&' } else { '?' };
                format!("{}{path}{joint}{query}", base.trim_end_matches('/'))
            }
        }
    }
}

fn variable_name(provider: &str) -> String {
    let word = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
    };
    match provider {
        "google" => "GEMINI_API_KEY".to_owned(),
        _ => format!("{}_API_KEY", provider.chars().map(word).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_query_string_stays_at_the_end_of_the_url() {
        let profile =
            Profile::new("azure", Protocol::OpenAi, "https://x/openai/deployments/d?api-version=1");
        let url = "https://x/openai/deployments/d/chat/completions?api-version=1";
        assert_eq!(profile.url_for("/chat/completions"), url);
        assert_eq!(profile.key_variable, "AZURE_API_KEY");
    }

    #[test]
    fn api_key_is_sent_in_the_auth_header_of_the_provider() {
        let header = |name| {
            let mut profile = Profile::new(name, Protocol::OpenAi, "");
            profile.key = Some(Secret::new("k".to_owned()));
            profile.auth_header().map(|(name, value)| (name, value.expose().clone()))
        };
        assert_eq!(header("groq"), Some(("authorization", "Bearer k".to_owned())));
        assert_eq!(header("azure"), Some(("api-key", "k".to_owned())));
        assert!(Profile::new("vllm", Protocol::OpenAi, "").auth_header().is_none());
    }

    #[test]
    fn tool_calls_in_text_are_parsed_only_for_self_hosted_servers() {
        for (url, reads) in [
            ("http://127.0.0.1:8080/v1", true),
            ("http://[::1]:8080/v1", true),
            ("http://gpu:8000", true),
            ("http://192.168.1.7/v1", true),
            ("https://models.example.com/v1", false),
            ("https://8.8.8.8/v1", false),
        ] {
            assert_eq!(Profile::new("x", Protocol::OpenAi, url).reads_text_calls(), reads, "{url}");
        }
    }
}
