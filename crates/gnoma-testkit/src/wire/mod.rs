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
mod protocol;
mod responses;
mod script;
mod strict;

pub use failure::{Failure, RetryAfter};
pub use fault::{Fault, FaultStage};
pub use protocol::Wire;
pub use script::{Script, ScriptCall};
pub use strict::IssuedTokens;

use crate::server::Reply;

impl Wire {
    /// The answer as a stream.
    #[must_use]
    pub fn stream_reply(self, script: &Script) -> Reply {
        match self {
            Self::Mistral | Self::OpenAi | Self::Compatible => {
                Reply::sse(chat::encode_stream(self, script))
            }
            Self::Anthropic => Reply::sse(anthropic::encode_stream(script)),
            Self::Responses => Reply::sse(responses::encode_stream(script)),
            Self::Google => Reply::sse(google::encode_stream(script)),
            Self::Ollama => Reply::new(200, "application/x-ndjson", ollama::encode_stream(script)),
        }
    }

    /// The vendor's words for a failure.
    #[must_use]
    pub fn failure_reply(self, failure: &Failure) -> Reply {
        failure::failure_reply(self, failure)
    }

    /// The answer to a request that breaks a rule of the vendor's.
    #[must_use]
    pub fn refusal_reply(self, reason: impl Into<String>) -> Reply {
        failure::refusal_reply(self, reason.into())
    }

    /// The answer as a stream that goes wrong in the middle of `stage`.
    #[must_use]
    pub fn broken_reply(self, script: &Script, stage: FaultStage, fault: &Fault) -> Reply {
        fault::broken_reply(self, script, stage, fault)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::server::ReplyBody;

    #[test]
    fn every_wire_stream_consists_of_json_records_with_the_scripted_content() {
        let script = Script::text(["Grüße ", "an alle"])
            .with_thinking("hm", "token")
            .with_call("call00001", "fs_read", r#"{"path":"ä"}"#)
            .with_call("call00002", "fs_ls", "{}");
        for wire in Wire::ALL {
            let ReplyBody::Bytes(body) = wire.stream_reply(&script).body else {
                panic!("{wire:?}")
            };
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
