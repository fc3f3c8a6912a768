//! RecordedRequest exchanges with real providers, one JSON file each, and what a reader must make of them.
//!
//! The recordings themselves are not part of the project. [`Exceptions`] is the list of what a
//! recording cannot show, so that nothing is left out in silence.

use std::{collections::BTreeMap, fmt, fs, io, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::server::Reply;

/// Headers that describe how the recorded body travelled, not what it says.
const FRAMING_HEADERS: [&str; 4] =
    ["connection", "content-encoding", "content-length", "transfer-encoding"];

/// The protocol of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub enum Api {
    /// The protocol of Anthropic's Messages.
    #[serde(rename = "anthropic.messages")]
    Anthropic,
    /// OpenAI's Chat Completions, by whomever.
    #[serde(rename = "openai.chat")]
    OpenAi,
    /// OpenAI's Responses, by whomever.
    #[serde(rename = "openai.responses")]
    Responses,
    /// The protocol of Mistral's Chat Completions.
    #[serde(rename = "mistral.chat")]
    Mistral,
    /// The protocol of Google's Generate Content.
    #[serde(rename = "google.generate_content")]
    Google,
    /// The protocol of Ollama's own chat.
    #[serde(rename = "ollama.chat")]
    Ollama,
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "anthropic.messages",
            Self::OpenAi => "openai.chat",
            Self::Responses => "openai.responses",
            Self::Mistral => "mistral.chat",
            Self::Google => "google.generate_content",
            Self::Ollama => "ollama.chat",
        })
    }
}

/// One recorded exchange with a provider.
#[derive(Clone, Debug, Deserialize)]
pub struct Cassette {
    /// The unique name of the exchange.
    pub id: String,
    /// The provider that answered, such as `openrouter`.
    pub provider: String,
    /// The protocol of the exchange.
    pub api: Api,
    /// Exchanges of one conversation share this.
    pub conversation: String,
    /// Place in the conversation; places can be missing.
    pub step: u32,
    /// The closeness of the recording to the wire; `raw` is byte-exact.
    pub fidelity: String,
    /// The recorded request; empty when the source had the answer only.
    #[serde(default, deserialize_with = "null_as_default")]
    pub request: RecordedRequest,
    /// The recorded answer of the provider.
    pub response: RecordedResponse,
    /// Features of the exchange.
    pub tags: Vec<String>,
    /// Peculiarities of the wire.
    pub quirks: Vec<String>,
    /// The outcome that a reader must get from the answer.
    pub expect: ExpectedOutcome,
}

/// A recorded request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RecordedRequest {
    /// The path and query of the request.
    pub path: String,
    /// The body; `null` when the source had none.
    pub body: Value,
}

/// A recorded answer.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordedResponse {
    /// The HTTP status of the answer.
    pub status: u16,
    /// The headers of the answer.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body as text.
    #[serde(default)]
    pub body: Option<String>,
    /// The body when it is no text.
    #[serde(default)]
    pub body_base64: Option<String>,
}

/// The outcome of an exchange, as a careful reader finds it.
#[derive(Clone, Debug, Deserialize)]
pub struct ExpectedOutcome {
    /// The text of the answer.
    pub text: String,
    /// The visible reasoning in the answer.
    pub thinking: String,
    /// Opaque tokens, in order.
    #[serde(default)]
    pub signatures: Vec<String>,
    /// The words of a refusal, where the wire keeps them apart.
    #[serde(default)]
    pub refusal_text: Option<String>,
    /// Calls of the client's tools.
    pub tool_calls: Vec<ExpectedCall>,
    /// `end_turn`, `tool_use`, `max_tokens`, `refusal`, `error` or `other`.
    pub stop_reason: Option<String>,
    /// The wire's own word.
    #[serde(default)]
    pub stop_reason_raw: Option<String>,
    /// Tokens in the provider's own counting.
    #[serde(default)]
    pub usage: Option<ExpectedUsage>,
    /// The wire's own record of them.
    #[serde(default)]
    pub usage_raw: Value,
    /// The failure, if it failed.
    #[serde(default)]
    pub error: Option<ExpectedError>,
    /// The model that answered.
    #[serde(default)]
    pub model: Option<String>,
    /// The provider's id of the answer.
    #[serde(default)]
    pub response_id: Option<String>,
}

/// An expected call of a tool.
#[derive(Clone, Debug, Deserialize)]
pub struct ExpectedCall {
    /// The provider's id; none or empty when it sent none.
    pub id: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// The arguments; `null` when they are no JSON.
    #[serde(default)]
    pub args: Value,
    /// The arguments as text, where that matters.
    #[serde(default)]
    pub args_raw: Option<String>,
}

/// Expected tokens, in the provider's own counting; `None` is "not sent".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ExpectedUsage {
    /// The tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// The tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// The tokens spent on reasoning.
    pub reasoning_tokens: Option<u64>,
}

/// An expected failure of the provider.
#[derive(Clone, Debug, Deserialize)]
pub struct ExpectedError {
    /// HTTP status; 200 for a failure inside a stream.
    pub status: Option<u16>,
    /// The vendor's type, a string or a number.
    #[serde(rename = "type", default)]
    pub kind: Value,
    /// The vendor's code, a string or a number.
    #[serde(default)]
    pub code: Value,
    /// The message in the vendor's words.
    #[serde(default)]
    pub message: Option<String>,
    /// The value of the header `Retry-After`.
    #[serde(default)]
    pub retry_after: Option<String>,
}

fn null_as_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Cassette {
    /// Every recording of a folder, by file name.
    ///
    /// # Errors
    /// When the folder or a file cannot be read, or a file is not of this format.
    pub fn load_dir(folder: &Path) -> io::Result<Vec<Self>> {
        let mut paths = fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        paths.iter().map(|path| Self::load(path)).collect()
    }

    fn load(path: &Path) -> io::Result<Self> {
        serde_json::from_slice(&fs::read(path)?)
            .map_err(|error| io::Error::other(format!("`{}`: {error}", path.display())))
    }

    /// Returns the recorded body as bytes.
    ///
    /// # Errors
    /// When it is kept in base64 that is none.
    pub fn body(&self) -> io::Result<Bytes> {
        match (&self.response.body, &self.response.body_base64) {
            (Some(text), _) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            (None, Some(encoded)) => {
                STANDARD.decode(encoded).map(Bytes::from).map_err(io::Error::other)
            }
            (None, None) => Ok(Bytes::new()),
        }
    }

    /// The recorded answer, in pieces of `piece` bytes.
    ///
    /// # Errors
    /// As [`body`](Self::body).
    pub fn reply(&self, piece: usize) -> io::Result<Reply> {
        let mut reply = Reply::new(self.response.status, "", self.body()?).with_piece_size(piece);
        for (name, value) in &self.response.headers {
            if !FRAMING_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                reply = reply.with_header(name, value);
            }
        }
        Ok(reply)
    }

    /// Reports whether the recorded body, as text, contains `part`.
    #[must_use]
    pub fn body_contains(&self, part: &str) -> bool {
        let body = self.response.body.as_deref();
        body.is_some_and(|body| body.contains(part))
    }

    /// Reports whether the exchange carries this tag or quirk.
    #[must_use]
    pub fn has_mark(&self, mark: &str) -> bool {
        self.tags.iter().chain(&self.quirks).any(|own| own == mark)
    }
}

/// The exceptions for what recordings cannot show, read from a file of `[[exception]]` tables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    /// The list of the exceptions.
    #[serde(rename = "exception", default)]
    pub list: Vec<Exception>,
}

/// Comparisons that are left out of the recordings a pattern matches. The conditions given must all
/// hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The names of the fields that are not compared.
    pub fields: Vec<String>,
    /// The reason for the exception.
    pub reason: String,
    /// The exact id of the recording.
    #[serde(default)]
    pub id: Option<String>,
    /// The protocol of the recording.
    #[serde(default)]
    pub api: Option<Api>,
    /// Tags or quirks, all of them.
    #[serde(default)]
    pub marks: Vec<String>,
    /// The wire's own stop word.
    #[serde(default)]
    pub stop_reason_raw: Option<String>,
    /// A text that the recorded body contains.
    #[serde(default)]
    pub body_contains: Option<String>,
}

impl Exceptions {
    /// Parses the list of exceptions.
    ///
    /// # Errors
    /// When it is not TOML of this format.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns the reason why `field` of `cassette` is not compared, if it is not.
    #[must_use]
    pub fn reason_for(&self, cassette: &Cassette, field: &str) -> Option<&str> {
        let covers = |exception: &&Exception| {
            exception.fields.iter().any(|name| name == field) && exception.matches(cassette)
        };
        let found = self.list.iter().find(covers);
        found.map(|exception| exception.reason.as_str())
    }
}

impl Exception {
    fn matches(&self, cassette: &Cassette) -> bool {
        self.id.as_ref().is_none_or(|id| *id == cassette.id)
            && self.api.is_none_or(|api| api == cassette.api)
            && self.marks.iter().all(|mark| cassette.has_mark(mark))
            && (self.stop_reason_raw.is_none()
                || self.stop_reason_raw == cassette.expect.stop_reason_raw)
            && self.body_contains.as_ref().is_none_or(|part| cassette.body_contains(part))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::ReplyBody;

    fn cassette() -> Cassette {
        serde_json::from_value(json!({
            "id": "a-01", "provider": "ollama", "api": "ollama.chat", "conversation": "a",
            "step": 1, "fidelity": "raw", "tags": ["stream"], "quirks": ["sse_crlf"],
            "request": {"path": "/api/chat"},
            "response": {
                "status": 200,
                "headers": {"Content-Length": "2", "X-A": "b"},
                "body": null,
                "body_base64": "e30=",
            },
            "expect": {"text": "", "thinking": "", "tool_calls": [], "stop_reason": "end_turn"},
        }))
        .unwrap()
    }

    #[test]
    fn cassette_reply_has_the_body_and_headers_without_framing() {
        let reply = cassette().reply(1).unwrap();
        assert!(matches!(&reply.body, ReplyBody::Bytes(bytes) if bytes == "{}"));
        assert_eq!(reply.headers, [("X-A".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn cassette_exception_applies_if_all_its_conditions_match() {
        let text = r#"
            [[exception]]
            fields = ["usage"]
            reason = "because"
            api = "ollama.chat"
            marks = ["stream", "sse_crlf"]
        "#;
        let exceptions = Exceptions::parse(text).unwrap();
        let mut cassette = cassette();
        assert_eq!(exceptions.reason_for(&cassette, "usage"), Some("because"));
        assert_eq!(exceptions.reason_for(&cassette, "text"), None);
        cassette.quirks.clear();
        assert_eq!(exceptions.reason_for(&cassette, "usage"), None);
    }
}
