//! A conversation that grows round by round is sent as if it were encoded anew each time.
//!
//! That only new messages are encoded is shown where the encoder is, in `src/body.rs`.

use std::sync::Arc;

use futures_util::StreamExt as _;
use gnoma_core::{Message, ModelRequest, Provider, ToolSpec};
use gnoma_llm::{connect_provider, internals};
use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{Script, Server};

use crate::{
    endpoints::{Endpoint, PROTOCOLS},
    histories::{ask, results, said, tools, user},
};

#[tokio::test]
async fn incrementally_encoded_request_equals_a_fresh_encoding() {
    for endpoint in &PROTOCOLS {
        let server = answering(endpoint);
        let provider =
            connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
        let offered = tools();
        let history = history(endpoint);
        for length in 1..=history.len() {
            send(&*provider, &round(endpoint, &history[..length], &offered)).await;
        }
        let requests = server.requests();
        assert_eq!(requests.len(), history.len());
        for (length, request) in (1..).zip(&requests) {
            let anew = internals::encode_request(
                endpoint.profile(&server.url()),
                &round(endpoint, &history[..length], &offered),
            );
            assert_eq!(request.body, anew, "{} {length}", endpoint.label);
        }
    }
}

/// What was remembered of one conversation, model or set of tools never shows up in another.
#[tokio::test]
async fn cached_request_bodies_of_conversations_do_not_mix() {
    for endpoint in &PROTOCOLS {
        let server = answering(endpoint);
        let provider =
            connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
        let mut sent = turns_of_many(endpoint);
        for request in &sent {
            send(&*provider, request).await;
        }
        for (seen, request) in server.requests().iter().zip(sent.drain(..)) {
            let anew = internals::encode_request(endpoint.profile(&server.url()), &request);
            assert_eq!(seen.body, anew, "{}", endpoint.label);
        }
    }
}

/// A session and its side talks: another question, another model, no tools, a history that was cut
/// back and taken elsewhere.
fn turns_of_many(endpoint: &Endpoint) -> Vec<ModelRequest> {
    let offered = tools();
    let history = history(endpoint);
    let whole = round(endpoint, &history, &offered);
    let other_model = ModelRequest { model: "another-model".into(), ..whole.clone() };
    let other_tools = round(endpoint, &history, &tools()[..1].into());
    let side = round(endpoint, &[Arc::new(user("Aside"))], &offered);
    let mut elsewhere = history[..3].to_vec();
    elsewhere.push(Arc::new(user("Elsewhere")));
    let cut_back = round(endpoint, &elsewhere, &offered);
    vec![
        whole.clone(),
        side.clone(),
        other_model,
        other_tools,
        whole.clone(),
        cut_back,
        side,
        whole,
    ]
}

fn history(endpoint: &Endpoint) -> Vec<Arc<Message>> {
    let mut history = Vec::new();
    for question in ["First", "Second"] {
        let calls = said(endpoint, endpoint.reads_a_file());
        let answers = results(&calls);
        let end = said(endpoint, endpoint.answers());
        history.extend([user(question), calls, answers, end].map(Arc::new));
    }
    history
}

fn round(
    endpoint: &Endpoint,
    messages: &[Arc<Message>],
    tools: &Arc<[Arc<ToolSpec>]>,
) -> ModelRequest {
    ModelRequest {
        system: "You are gnoma.".into(),
        messages: messages.to_vec(),
        tools: Arc::clone(tools),
        ..ask(endpoint, [])
    }
}

fn answering(endpoint: &Endpoint) -> Server {
    let reply = endpoint.wire.stream_reply(&Script::text(["Yes."]));
    Server::start(move |_| reply.clone()).unwrap()
}

async fn send(provider: &dyn Provider, request: &ModelRequest) {
    let mut answer = provider.stream(request.clone());
    while let Some(event) = answer.next().await {
        event.unwrap();
    }
}
