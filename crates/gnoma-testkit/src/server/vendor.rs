//! A server that stands for one vendor: it speaks the vendor's wire, refuses what the vendor would
//! refuse, and answers or fails by a script.

use std::{
    io,
    sync::{Arc, Mutex},
};

use serde_json::json;

use super::{End, Reply, Request, Server};
use crate::{
    lock_ignoring_poison,
    wire::{Failure, Fault, FaultStage, IssuedTokens, Script, Wire},
};

/// The reaction of a vendor to one request.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// The vendor answers the request.
    Answer(Script),
    /// The vendor fails before its answer.
    Fail(Failure),
    /// The vendor hangs up without a word.
    HangUp,
    /// The vendor begins an answer and breaks off in the middle.
    Break {
        /// The answer that it begins.
        script: Script,
        /// The stage at which the answer breaks off.
        stage: FaultStage,
        /// The way in which it breaks off.
        fault: Fault,
    },
}

/// The requests that a vendor has seen, and what it has said.
#[derive(Default)]
struct VendorState {
    /// The number of reactions so far.
    given: usize,
    issued: IssuedTokens,
    requests: Vec<Request>,
    violations: Vec<String>,
}

/// A vendor's server: it answers by a script and refuses what the vendor would refuse. Dropping it ends
/// every connection.
pub struct Vendor {
    wire: Wire,
    server: Server,
    state: Arc<Mutex<VendorState>>,
}

impl Vendor {
    /// Starts a vendor with one model. It meets each request with the next reaction, and with the last
    /// one again and again.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn start(
        wire: Wire,
        model: impl Into<String>,
        reactions: impl IntoIterator<Item = Reaction>,
    ) -> io::Result<Self> {
        let reactions: Vec<Reaction> = reactions.into_iter().collect();
        let state = Arc::<Mutex<VendorState>>::default();
        let shared = Arc::clone(&state);
        let model = model.into();
        let server = Server::start(move |request| {
            if request.method == "GET" {
                return models_reply(wire, &model);
            }
            lock_ignoring_poison(&shared).answer_request(wire, request, &reactions)
        })?;
        Ok(Self { wire, server, state })
    }

    /// Returns the vendor's address as users configure it.
    #[must_use]
    pub fn url(&self) -> String {
        let version = match self.wire {
            Wire::Ollama => "",
            Wire::Google => "/v1beta",
            Wire::Mistral | Wire::Anthropic | Wire::OpenAi | Wire::Responses | Wire::Compatible => {
                "/v1"
            }
        };
        format!("{}{version}", self.server.url())
    }

    /// Returns the requests so far, including those that were refused.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock_ignoring_poison(&self.state).requests.clone()
    }

    /// Returns what was wrong with the requests. Each was refused for it.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        lock_ignoring_poison(&self.state).violations.clone()
    }
}

impl VendorState {
    fn answer_request(&mut self, wire: Wire, request: &Request, reactions: &[Reaction]) -> Reply {
        let violations = wire.violations(request, &self.issued);
        self.requests.push(request.clone());
        if !violations.is_empty() {
            let reason = violations.join("; ");
            let nth = self.requests.len();
            self.violations.push(format!("{wire:?}, request {nth}: {reason}"));
            return wire.refusal_reply(reason);
        }
        let reaction = reactions.get(self.given).or(reactions.last());
        self.given += 1;
        match reaction {
            None => Reply::text(500, "the script has no reaction"),
            Some(Reaction::Answer(script)) => {
                self.issued.record_answer(script);
                wire.stream_reply(script)
            }
            Some(Reaction::Fail(failure)) => wire.failure_reply(failure),
            Some(Reaction::HangUp) => Reply::text(200, "").with_end(End::HangUp),
            Some(Reaction::Break { script, stage, fault }) => {
                self.issued.record_answer(script);
                wire.broken_reply(script, *stage, fault)
            }
        }
    }
}

/// The list of its models.
fn models_reply(wire: Wire, model: &str) -> Reply {
    let list = match wire {
        Wire::Ollama => json!({"models": [{"name": model, "model": model}]}),
        Wire::Google => json!({"models": [{
            "name": format!("models/{model}"),
            "supportedGenerationMethods": ["generateContent"],
        }]}),
        Wire::Mistral | Wire::Anthropic | Wire::OpenAi | Wire::Responses | Wire::Compatible => {
            json!({"object": "list", "data": [{"id": model}]})
        }
    };
    Reply::json(200, list.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
    };

    use super::*;

    /// Sends a request and gives what comes back until the connection closes; empty when it is reset.
    async fn exchange(vendor: &Vendor, head: &str, body: &str) -> String {
        let address = vendor.server.url().replace("http://", "");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut bytes = Vec::new();
        let _reset = stream.read_to_end(&mut bytes).await;
        String::from_utf8(bytes).unwrap()
    }

    fn question(thinking: Option<&str>) -> String {
        let mut messages = vec![json!({"role": "user", "content": "hi"})];
        if let Some(thinking) = thinking {
            let answer = json!({"role": "assistant", "content": "ho", "thinking": thinking});
            messages.extend([answer, json!({"role": "user", "content": "and?"})]);
        }
        json!({"model": "m", "messages": messages}).to_string()
    }

    /// A refusal is written down and uses up no reaction; what was handed out may come back.
    #[tokio::test]
    async fn fake_vendor_rejects_invalid_requests_without_using_up_its_script() {
        let script = Script::text(["ho"]).with_thinking("hm", "");
        let reactions = [Reaction::Answer(script), Reaction::HangUp];
        let vendor = Vendor::start(Wire::Ollama, "m", reactions).unwrap();
        let ask = |body: String| {
            let vendor = &vendor;
            async move { exchange(vendor, "POST /api/chat", &body).await }
        };
        assert!(ask(question(Some("hm"))).await.starts_with("HTTP/1.1 400"));
        assert!(ask(question(None)).await.starts_with("HTTP/1.1 200"));
        assert_eq!(ask(question(Some("hm"))).await, "");
        assert_eq!(ask(question(None)).await, "");
        assert_eq!(vendor.requests().len(), 4);
        let [violation] = vendor.violations().try_into().unwrap();
        assert!(
            violation.contains("request 1") && violation.contains("not thought"),
            "{violation}"
        );
    }

    #[tokio::test]
    async fn every_fake_vendor_lists_its_model() {
        for wire in Wire::ALL {
            let vendor = Vendor::start(wire, "m1", []).unwrap();
            let answer = exchange(&vendor, "GET /models", "").await;
            let json = answer.split("\r\n").find(|line| line.starts_with('{')).unwrap();
            let list: Value = serde_json::from_str(json).unwrap();
            assert!(list.to_string().contains("m1"), "{wire:?}: {list}");
            assert!(vendor.requests().is_empty());
        }
    }
}
