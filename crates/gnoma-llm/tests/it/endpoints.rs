//! The endpoints that are tested: one for each protocol, and the compatible ones that differ.

use gnoma_core::{Content, ModelRef, Redacted, Text, Thinking, ToolCall};
use gnoma_llm::{Profile, Protocol};
use gnoma_testkit::Wire;

use crate::histories::call;

/// What every visible thought says, and no other text.
pub(crate) const THOUGHT: &str = "pondering";

/// Every opaque token holds it, and nothing else does. Base64, as Google demands.
pub(crate) const TOKEN: &str = "b3BhcXVl";

/// Every item id of reasoning holds it, and nothing else does.
pub(crate) const ITEM: &str = "rs_0042";

/// Somebody to talk to.
pub(crate) struct Endpoint {
    /// Names its snapshots and bodies.
    pub(crate) label: &'static str,
    /// The provider as configured; a known name brings its quirks.
    pub(crate) provider: &'static str,
    pub(crate) protocol: Protocol,
    pub(crate) model: &'static str,
    /// How the scripted server plays it.
    pub(crate) wire: Wire,
}

const fn endpoint(
    label: &'static str,
    provider: &'static str,
    protocol: Protocol,
    model: &'static str,
    wire: Wire,
) -> Endpoint {
    Endpoint { label, provider, protocol, model, wire }
}

/// One for each protocol.
pub(crate) const PROTOCOLS: [Endpoint; 6] = [
    endpoint("mistral", "mistral", Protocol::Mistral, "mistral-large-latest", Wire::Mistral),
    endpoint("anthropic", "anthropic", Protocol::Anthropic, "claude-sonnet-4-6", Wire::Anthropic),
    endpoint("openai-chat", "openai", Protocol::OpenAi, "gpt-5.5", Wire::OpenAi),
    endpoint("openai-responses", "openai", Protocol::Responses, "gpt-5.5", Wire::Responses),
    endpoint("google", "google", Protocol::Google, "gemini-3.5-flash", Wire::Google),
    endpoint("ollama", "ollama", Protocol::Ollama, "gpt-oss:20b", Wire::Ollama),
];

/// Those that speak chat completions in a manner of their own.
pub(crate) const COMPATIBLE: [Endpoint; 5] = [
    compatible("openrouter", "anthropic/claude-sonnet-4.6"),
    compatible("groq", "openai/gpt-oss-120b"),
    compatible("deepseek", "deepseek-v4-flash"),
    compatible("azure", "gpt-5.5"),
    compatible("llamacpp", "qwen3-8b"),
];

const fn compatible(name: &'static str, model: &'static str) -> Endpoint {
    endpoint(name, name, Protocol::OpenAi, model, Wire::Compatible)
}

impl Endpoint {
    /// How it is reached at `base_url`.
    pub(crate) fn profile(&self, base_url: &str) -> Profile {
        Profile::new(self.provider, self.protocol, base_url)
    }

    /// The model that is asked.
    pub(crate) fn model_ref(&self) -> ModelRef {
        ModelRef { provider: self.provider.to_owned(), model: self.model.to_owned() }
    }

    /// How its model asks for a file: with all that this wire can put around it.
    pub(crate) fn reads_a_file(&self) -> Vec<Content> {
        let say = Content::from_text("I look into it.");
        match self.label {
            "anthropic" => vec![
                thought(THOUGHT, Some(TOKEN), None),
                Content::RedactedThinking(Redacted { data: TOKEN.to_owned() }),
                say,
                asks("toolu_01A09q90qw90lq917835lq9"),
            ],
            "openai-responses" => vec![
                thought(THOUGHT, None, Some(ITEM)),
                thought(THOUGHT, Some(TOKEN), Some(ITEM)),
                signed_text("I look into it.", "phase:commentary"),
                Content::ToolCall(ToolCall {
                    item: Some("fc_0042".to_owned()),
                    ..call("call_HxlEaV3YGaCLlqFXTxZpLjHA", "fs.read")
                }),
            ],
            "google" => vec![
                thought(THOUGHT, None, None),
                signed_text("I look into it.", TOKEN),
                Content::ToolCall(ToolCall {
                    signature: Some(TOKEN.to_owned()),
                    ..call("call_0", "fs.read")
                }),
            ],
            "mistral" => vec![thought(THOUGHT, None, None), say, asks("D681PevKs")],
            "openrouter" => vec![
                thought(THOUGHT, Some(&details()), Some("reasoning")),
                say,
                asks("toolu_vrtx_01PwPqbXAJ4tsMbhNVRWhrhN"),
            ],
            "groq" => vec![
                thought(THOUGHT, None, Some("reasoning")),
                say,
                asks("fc_d1b7a5c0-9a51-4d0c-8c40-3e0d1f4b1c55"),
            ],
            "deepseek" => {
                vec![thought(THOUGHT, None, None), say, asks("call_00_bKZGR0Vz7OOUdtLyxKVH1Kk9")]
            }
            "llamacpp" => {
                vec![thought(THOUGHT, None, None), say, asks("Xq0J3mQp9bDfKVzYw1sLtR7uAeGc5hN8")]
            }
            "ollama" => vec![thought(THOUGHT, None, None), say, asks("call_k8x2n4bq")],
            _ => vec![say, asks("call_HxlEaV3YGaCLlqFXTxZpLjHA")],
        }
    }

    /// How its model ends: an answer that carries as much.
    pub(crate) fn answers(&self) -> Vec<Content> {
        let say = Content::from_text("It is a comment.");
        match self.label {
            "anthropic" => vec![thought("", Some(TOKEN), None), say],
            "openai-responses" => {
                let answer = signed_text("It is a comment.", "phase:final_answer");
                vec![thought("", Some(TOKEN), Some("rs_00421")), answer]
            }
            "google" => vec![say, signed_text("", TOKEN)],
            _ => vec![say],
        }
    }
}

fn asks(id: &str) -> Content {
    Content::ToolCall(call(id, "fs.read"))
}

fn thought(text: &str, signature: Option<&str>, item: Option<&str>) -> Content {
    Content::Thinking(Thinking {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        item: item.map(str::to_owned),
    })
}

fn signed_text(text: &str, signature: &str) -> Content {
    Content::Text(Text { text: text.to_owned(), signature: Some(signature.to_owned()) })
}

/// Reasoning as OpenRouter wants it back.
fn details() -> String {
    format!(
        r#"[{{"type":"reasoning.text","text":"{THOUGHT}","signature":"{TOKEN}","format":"anthropic-claude-v1","index":0}}]"#
    )
}
