//! Answers that are whole in a connection that is not, and words that come in odd pieces.

use std::time::Duration;

use futures_util::{StreamExt as _, future::join_all};
use gnoma_core::{Accumulator, ModelRequest, ProviderError, Response};
use gnoma_llm::connect_provider;
use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{End, Reply, ReplyBody, Script, Server};
use tokio::time::timeout;

use crate::{
    endpoints::{COMPATIBLE, Endpoint, PROTOCOLS},
    histories::{ask, tools, user},
    mutate::Body,
};

/// Longest wait for an answer, the grace for what may follow its end included.
const PATIENCE: Duration = Duration::from_secs(10);

fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    PROTOCOLS.iter().chain(&COMPATIBLE)
}

fn body_of(reply: &Reply) -> Vec<u8> {
    let ReplyBody::Bytes(body) = &reply.body else { panic!("an endless script") };
    body.to_vec()
}

/// The answer to a reply, and the failure that ended it.
async fn read(endpoint: &Endpoint, reply: Reply) -> (Response, Option<ProviderError>) {
    let server = Server::start_with_replies([reply]).unwrap();
    let provider =
        connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
    let request = ModelRequest { tools: tools(), ..ask(endpoint, [user("Hello")]) };
    let mut stream = provider.stream(request);
    let mut all = Accumulator::new();
    let mut error = None;
    while let Some(event) = timeout(PATIENCE, stream.next()).await.unwrap() {
        match event {
            Ok(event) => all.push(&event),
            Err(failure) => error = Some(failure),
        }
    }
    (all.into_response(), error)
}

/// The same answer without what only the server's last words tell.
fn without_counts(response: Response) -> Response {
    Response { usage: None, ..response }
}

fn script() -> Script {
    Script::text(["Grüße ", "an alle 🦀"]).with_call("call00001", "fs_read", r#"{"path":"ä"}"#)
}

#[tokio::test]
async fn answer_with_finish_reason_is_complete_even_if_the_connection_breaks() {
    let mut jobs = Vec::new();
    for endpoint in endpoints() {
        let reply = endpoint.wire.stream_reply(&script());
        let Some(whole) = Body::parse(&body_of(&reply)).and_then(|body| body.up_to_reason()) else {
            // The Responses API says why an answer ends in its last record, and nowhere else.
            assert_eq!(endpoint.label, "openai-responses");
            continue;
        };
        let cut = whole.len();
        let ends =
            [End::Whole, End::Truncate(cut), End::Abort(cut), End::Reset(cut), End::Stall(cut)];
        for end in ends {
            let damaged = Reply { body: ReplyBody::Bytes(whole.clone().into()), ..reply.clone() };
            let reply = reply.clone();
            jobs.push(async move {
                let expected = without_counts(read(endpoint, reply).await.0);
                let (response, error) = read(endpoint, damaged.with_end(end)).await;
                assert_eq!(error, None, "{} {end:?}", endpoint.label);
                assert_eq!(without_counts(response), expected, "{} {end:?}", endpoint.label);
            });
        }
    }
    assert!(jobs.len() >= 50, "{}", jobs.len());
    join_all(jobs).await;
}

#[tokio::test]
async fn garbage_after_the_finish_reason_is_ignored() {
    for endpoint in endpoints() {
        let reply = endpoint.wire.stream_reply(&script());
        let expected = without_counts(read(endpoint, reply.clone()).await.0);
        let body = Body::parse(&body_of(&reply)).unwrap();
        for damaged in [body.with_junk_at_end(), body.with_doubled_end()].into_iter().flatten() {
            let damaged = Reply { body: ReplyBody::Bytes(damaged.into()), ..reply.clone() };
            let (response, error) = read(endpoint, damaged).await;
            assert_eq!(error, None, "{}", endpoint.label);
            assert_eq!(without_counts(response), expected, "{}", endpoint.label);
        }
    }
}

#[tokio::test]
async fn split_surrogates_are_joined_on_every_wire() {
    for endpoint in endpoints() {
        let reply = endpoint.wire.stream_reply(&script());
        let body = Body::parse(&body_of(&reply)).unwrap();
        let (whole, split) = body.with_split_letters().unwrap();
        let [whole, split] = [whole, split]
            .map(|body| Reply { body: ReplyBody::Bytes(body.into()), ..reply.clone() });
        let expected = read(endpoint, whole).await;
        let text = format!("{:?}", expected.0.content);
        assert!(text.contains('😀'), "{}: {text}", endpoint.label);
        assert_eq!(read(endpoint, split).await, expected, "{}", endpoint.label);
    }
}

#[tokio::test]
async fn placeholder_tool_arguments_are_replaced_by_later_deltas() {
    let mut tried = 0;
    for endpoint in endpoints() {
        let reply = endpoint.wire.stream_reply(&script());
        let expected = read(endpoint, reply.clone()).await;
        let Some(body) = Body::parse(&body_of(&reply)).unwrap().with_stand_ins() else { continue };
        let body = Reply { body: ReplyBody::Bytes(body.into()), ..reply };
        let found = read(endpoint, body).await;
        assert_eq!(found, expected, "{}", endpoint.label);
        tried += 1;
    }
    // Google and Ollama send arguments whole, Mistral with the call.
    assert!(tried >= 7, "{tried}");
}

/// Eight tokens behind a prompt of 32,760 are the rest of the window, whatever the limit of the answer was.
#[tokio::test]
async fn length_stop_after_few_tokens_is_a_full_context_window() {
    for (prompt, output, most, window, is_full) in [
        (32_760, 8, Some(4_096), None, true),
        (32_760, 8, None, Some(32_768), true),
        (32_760, 8, Some(8), None, false),
        (32_760, 8, None, None, false),
        (300, 8, Some(4_096), None, false),
        (2_000, 4_096, Some(4_096), None, false),
        (2_000, 8, None, Some(131_072), false),
    ] {
        let endpoint = endpoints().find(|it| it.label == "llamacpp").unwrap();
        let body = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"part\"}}}}]}}\n\ndata: \
             {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"length\"}}],\"usage\":{{\"prompt_tokens\":{prompt},\
             \"completion_tokens\":{output}}}}}\n\ndata: [DONE]\n\n"
        );
        let reply = endpoint.wire.stream_reply(&Script::text(["x"]));
        let reply = Reply { body: ReplyBody::Bytes(body.into_bytes().into()), ..reply };
        let server = Server::start_with_replies([reply]).unwrap();
        let provider =
            connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
        let mut request = ask(endpoint, [user("Hello")]);
        (request.max_output_tokens, request.context_window) = (most, window);
        let all: Vec<_> = provider.stream(request).collect().await;
        let failed = all.iter().find_map(|event| event.as_ref().err().map(|error| error.kind));
        let expected = is_full.then_some(gnoma_core::ErrorKind::ContextTooLong);
        assert_eq!(failed, expected, "{prompt} {output} {most:?} {window:?}");
    }
}
