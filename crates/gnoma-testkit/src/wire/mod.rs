//! Legal streams and errors in the words of every protocol, from one small description.
//!
//! What is common among real servers, not all that is possible: for the odd cases, tests write their
//! own bytes, and recordings of real traffic stand in [`crate::cassette`].

mod anthropic;
mod chat;
mod failure;
mod fault;
mod google;
mod ollama;
mod responses;
mod strict;

use gnoma_core::{StopReason, Usage};
use serde_json::Value;

pub use failure::{Failure, RetryAfter};
pub use fault::{Fault, Stage};
pub use strict::Issued;

use crate::server::Reply;

/// A protocol and, where vendors differ in it, whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Mistral's chat completions: thinking as content chunks, whole calls.
    Mistral,
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's chat completions: no visible thinking, calls in fragments.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Google's `streamGenerateContent`.
    Google,
    /// Ollama's own chat: JSON lines.
    Ollama,
    /// A server that imitates OpenAI: `reasoning_content`, keep-alive comments.
    Compatible,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Mistral,
        Self::Anthropic,
        Self::OpenAi,
        Self::Responses,
        Self::Google,
        Self::Ollama,
        Self::Compatible,
    ];

    /// The answer as a stream.
    #[must_use]
    pub fn stream(self, script: &Script) -> Reply {
        match self {
            Self::Mistral | Self::OpenAi | Self::Compatible => {
                Reply::sse(chat::stream(self, script))
            }
            Self::Anthropic => Reply::sse(anthropic::stream(script)),
            Self::Responses => Reply::sse(responses::stream(script)),
            Self::Google => Reply::sse(google::stream(script)),
            Self::Ollama => Reply::new(200, "application/x-ndjson", ollama::stream(script)),
        }
    }

    /// The vendor's words for a failure.
    #[must_use]
    pub fn failure(self, failure: &Failure) -> Reply {
        failure::reply(self, failure)
    }

    /// The answer to a request that breaks a rule of the vendor's.
    #[must_use]
    pub fn refusal(self, reason: impl Into<String>) -> Reply {
        failure::refusal(self, reason.into())
    }

    /// The answer as a stream that goes wrong in the middle of `stage`.
    #[must_use]
    pub fn broken(self, script: &Script, stage: Stage, fault: &Fault) -> Reply {
        fault::broken(self, script, stage, fault)
    }
}

/// A tool call in a [`Script`].
#[derive(Clone, Debug)]
pub struct ScriptCall {
    /// The provider's id of it.
    pub id: String,
    /// The tool, in the wire's spelling.
    pub name: String,
    /// Arguments as JSON text.
    pub arguments: String,
}

/// One answer: thinking, then text, then calls.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Reasoning, a delta each. Left out on wires that show none.
    pub thinking: Vec<String>,
    /// Opaque token of the reasoning (of the first call on Google's wire).
    pub signature: Option<String>,
    /// Words, a delta each.
    pub text: Vec<String>,
    /// Calls.
    pub calls: Vec<ScriptCall>,
    /// Why it stops; `None` means to have its calls run, if it has some, or that it is done.
    pub stop: Option<StopReason>,
    /// Tokens.
    pub usage: Usage,
}

impl Script {
    /// An answer of these words, a delta each.
    pub fn text<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Self {
        Self {
            text: words.into_iter().map(Into::into).collect(),
            usage: Usage { input: 10, output: 5, ..Usage::default() },
            ..Self::default()
        }
    }

    /// With reasoning before it.
    #[must_use]
    pub fn thinking(mut self, words: impl Into<String>, signature: impl Into<String>) -> Self {
        self.thinking.push(words.into());
        self.signature = Some(signature.into());
        self
    }

    /// With one more call.
    #[must_use]
    pub fn call(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        self.calls.push(ScriptCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        });
        self
    }

    /// Stopped for this reason.
    #[must_use]
    pub fn stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// With this count of tokens.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Why it stops.
    fn stop_reason(&self) -> StopReason {
        self.stop.unwrap_or(if self.calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolUse
        })
    }
}

impl ScriptCall {
    /// The arguments in two fragments.
    fn fragments(&self) -> (&str, &str) {
        let half = self.arguments.len() / 2;
        let cut = (half..self.arguments.len()).find(|at| self.arguments.is_char_boundary(*at));
        self.arguments.split_at(cut.unwrap_or(self.arguments.len()))
    }

    /// The arguments as a value, for wires that send them so.
    fn value(&self) -> Value {
        serde_json::from_str(&self.arguments).unwrap_or_default()
    }
}

/// A server-sent event without a name.
fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A server-sent event named after its `type`.
fn named_event(data: &Value) -> String {
    let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Body;

    #[test]
    fn every_stream_is_made_of_json_records_and_holds_what_it_was_told() {
        let script = Script::text(["Grüße ", "an alle"])
            .thinking("hm", "token")
            .call("call00001", "fs_read", r#"{"path":"ä"}"#)
            .call("call00002", "fs_ls", "{}");
        for wire in Wire::ALL {
            let Body::Bytes(body) = wire.stream(&script).body else { panic!("{wire:?}") };
            let body = String::from_utf8(body.to_vec()).unwrap();
            for line in body.lines() {
                let data = match wire {
                    Wire::Ollama => Some(line),
                    _ => line.strip_prefix("data: "),
                };
                if let Some(data) = data.filter(|data| *data != "[DONE]") {
                    serde_json::from_str::<Value>(data).unwrap();
                }
            }
            for part in ["Grüße ", "an alle", "fs_read", "fs_ls"] {
                assert!(body.contains(part), "{wire:?}: {part}");
            }
        }
    }
}
