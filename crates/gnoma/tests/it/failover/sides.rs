//! The vendors between which a turn changes hands, one for each protocol, and what their models say.

use gnoma_core::ModelRef;
use gnoma_llm::Protocol;
use gnoma_testkit::{Reaction, Script, Vendor, Wire};

/// The file that models ask for.
pub(super) const FILE: &str = "a.txt";

/// The last words of a turn.
pub(super) const FINAL: &str = "It holds one line.";

/// One vendor.
#[derive(Debug)]
pub(super) struct Side {
    pub wire: Wire,
    pub protocol: Protocol,
    /// The protocol's name in the configuration.
    pub word: &'static str,
    /// A model of those that demand the most.
    pub model: &'static str,
    /// An id as the vendor gives it to a call; empty where it gives none.
    call_id: &'static str,
    /// An opaque token, different for each vendor; base64, as Google demands.
    token: &'static str,
}

/// One for each protocol.
pub(super) const SIDES: [Side; 6] = [
    Side {
        wire: Wire::Mistral,
        protocol: Protocol::Mistral,
        word: "mistral",
        model: "mistral-large-latest",
        call_id: "D681PevKs",
        token: "bWlzdHJhbA==",
    },
    Side {
        wire: Wire::Anthropic,
        protocol: Protocol::Anthropic,
        word: "anthropic",
        model: "claude-3-7-sonnet",
        call_id: "toolu_01A09q90qw90lq917835lq9",
        token: "YW50aHJvcGlj",
    },
    Side {
        wire: Wire::Compatible,
        protocol: Protocol::OpenAi,
        word: "compatible",
        model: "kimi-k2",
        call_id: "functions.fs_read:0",
        token: "Y29tcGF0aWJsZQ==",
    },
    Side {
        wire: Wire::Responses,
        protocol: Protocol::Responses,
        word: "responses",
        model: "gpt-5.5",
        call_id: "call_HxlEaV3YGaCLlqFXTxZpLjHA",
        token: "cmVzcG9uc2Vz",
    },
    Side {
        wire: Wire::Google,
        protocol: Protocol::Google,
        word: "google",
        model: "gemini-3-flash",
        call_id: "",
        token: "Z29vZ2xl",
    },
    Side {
        wire: Wire::Ollama,
        protocol: Protocol::Ollama,
        word: "ollama",
        model: "gpt-oss:20b",
        call_id: "call_k8x2n4bq",
        token: "b2xsYW1h",
    },
];

/// Every ordered pair of different vendors, each with its number.
pub(super) fn pairs() -> impl Iterator<Item = (usize, &'static Side, &'static Side)> {
    let numbered = || SIDES.iter().enumerate();
    numbered()
        .flat_map(move |(row, from)| numbered().map(move |(column, to)| (row, from, column, to)))
        .filter(|(row, _, column, _)| row != column)
        .map(|(row, from, column, to)| (row + column, from, to))
}

impl Side {
    /// Thinks, says something and asks for the file.
    pub(super) fn looks(&self) -> Script {
        Script::text(["I look ", "into it."])
            .with_thinking(format!("{} wants to see the file", self.word), self.token)
            .with_call(self.call_id, "fs_read", format!(r#"{{"path":"{FILE}"}}"#))
    }

    /// Thinks and says the last words.
    pub(super) fn ends(&self) -> Script {
        Script::text([FINAL]).with_thinking(format!("{} has seen enough", self.word), self.token)
    }

    /// What is never said to the end: nothing of it may be taken for an answer.
    pub(super) fn half(&self) -> Script {
        Script::text(["halfsaid ", "and more"]).with_thinking("halfthought", self.token).with_call(
            self.call_id,
            "fs_read",
            r#"{"path":"halfcalled.txt"}"#,
        )
    }

    /// A vendor that answers so.
    pub(super) fn start(&self, reactions: impl IntoIterator<Item = Reaction>) -> Vendor {
        Vendor::start(self.wire, self.model, reactions).unwrap()
    }

    /// The model under the name its provider has in the configuration.
    pub(super) fn arm(&self, provider: &str) -> ModelRef {
        ModelRef { provider: provider.to_owned(), model: self.model.to_owned() }
    }
}

/// Words of [`Side::half`] that are there; only their absence is worth anything.
pub(super) fn halves(text: &str) -> Vec<&'static str> {
    ["halfthought", "halfsaid", "halfcalled"]
        .into_iter()
        .filter(|word| text.contains(word))
        .collect()
}
