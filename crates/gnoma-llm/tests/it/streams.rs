//! The client over a real connection: good streams however they are cut, a consumer that leaves or is
//! slow. What misbehaving servers lead to is in [`crate::faults`].

use std::time::Duration;

use futures_util::StreamExt as _;
use gnoma_core::{Accumulator, Content, Provider, StopReason, StreamEvent};
use gnoma_llm::connect_provider;
use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{End, Failure, Reply, ReplyBody, RetryAfter, Script, Server};
use tokio::time::{sleep, timeout};

use crate::{
    endpoints::{COMPATIBLE, Endpoint, PROTOCOLS},
    histories::{ask, tools, user},
};

/// Longest wait for what should happen at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most that may lie between a server and a client that does not read: the kernel's buffers on both
/// sides and one network read.
const MAX_IN_FLIGHT_BYTES: u64 = 8 << 20;

/// A server that sends nothing for so long has stopped sending.
const QUIET: Duration = Duration::from_millis(100);

const WORD: &str = "wordwordword";

/// The same events, whatever the network does to the bytes.
#[tokio::test]
async fn streams_decode_the_same_for_any_chunking() {
    let script = Script::text(["Grüße ", "an alle 🦀"])
        .with_call("call00001", "fs_read", r#"{"path":"ä"}"#)
        .with_call("call00002", "bash", "{}");
    for endpoint in PROTOCOLS.iter().chain(&COMPATIBLE) {
        for bytes in [1, 7, 64, usize::MAX] {
            let reply = endpoint.wire.stream_reply(&script).with_piece_size(bytes);
            let server = Server::start_with_replies([reply]).unwrap();
            let answer = read(endpoint, &server).await;
            let label = endpoint.label;
            assert_eq!(answer.stop_reason(), Some(StopReason::ToolUse), "{label} {bytes}");
            let message = answer.into_response().into_message(None).unwrap();
            assert_eq!(message.text_content(), "Grüße an alle 🦀", "{label}");
            let calls: Vec<_> = message.tool_calls().collect();
            assert_eq!(calls[0].name, "fs.read", "{label}");
            assert_eq!(calls[0].arguments.get(), r#"{"path":"ä"}"#, "{label}");
            assert_eq!(calls[1].arguments.get(), "{}", "{label}");
        }
    }
}

/// Servers label streams as they like.
#[tokio::test]
async fn stream_is_decoded_with_any_content_type() {
    for endpoint in &PROTOCOLS {
        for kind in ["application/octet-stream", "text/html", ""] {
            let ReplyBody::Bytes(body) = endpoint.wire.stream_reply(&Script::text([WORD])).body
            else {
                panic!("an endless script")
            };
            let server = Server::start_with_replies([Reply::new(200, kind, body)]).unwrap();
            let message = read(endpoint, &server).await.into_response();
            assert_eq!(message.content, [Content::from_text(WORD)], "{}", endpoint.label);
        }
    }
}

/// Records in other frames, and such that say nothing.
#[tokio::test]
async fn sse_records_with_unusual_framing_are_decoded() {
    let records = [
        r#"{"choices":[{"delta":{"content":"wordword"}}]}"#,
        "null",
        r#"{"choices":[{"delta":{"content":"word"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    for (frame, end) in [("data: ", "\n\n"), ("data: data: ", "\n\n"), ("data: ", "\n")] {
        let endpoint = &COMPATIBLE[0];
        let body: String = records.iter().map(|record| format!("{frame}{record}{end}")).collect();
        let server = Server::start_with_replies([Reply::sse(body.into_bytes())]).unwrap();
        let message = read(endpoint, &server).await.into_response();
        assert_eq!(message.content, [Content::from_text(WORD)], "{frame:?} {end:?}");
    }
}

#[tokio::test]
async fn invalid_utf8_in_a_stream_becomes_replacement_characters() {
    for endpoint in &PROTOCOLS {
        let body = body_with(endpoint, WORD, b"gr\xFC\xDFe");
        let server = Server::start_with_replies([Reply::sse(body)]).unwrap();
        let message = read(endpoint, &server).await.into_response();
        let text = Content::from_text("gr\u{FFFD}\u{FFFD}e");
        assert_eq!(message.content, [text], "{}", endpoint.label);
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    for endpoint in &PROTOCOLS {
        let server = Server::start_with_replies([endless(endpoint)]).unwrap();
        let provider = provider(endpoint, &server);
        let mut answer = provider.stream(ask(endpoint, [user("Hello")]));
        first_words(&mut answer).await;
        assert_eq!(server.clients_gone(), 0);
        drop(answer);
        let gone = timeout(PATIENCE, server.client_gone()).await;
        assert!(gone.is_ok(), "{}: still connected", endpoint.label);
    }
}

/// A stream that waits for a silent server lets go of it as well.
#[tokio::test]
async fn dropping_a_waiting_stream_closes_the_connection() {
    for endpoint in &PROTOCOLS {
        let reply = endpoint.wire.stream_reply(&Script::text([WORD]));
        let server = Server::start_with_replies([reply.with_end(End::Stall(0))]).unwrap();
        let provider = provider(endpoint, &server);
        let mut answer = provider.stream(ask(endpoint, [user("Hello")]));
        let mut heard = Vec::new();
        while server.requests().is_empty() || heard.is_empty() {
            heard.extend(timeout(QUIET, answer.next()).await.ok());
        }
        // The head of an answer is the only sign of life.
        let is_head = matches!(heard[..], [Some(Ok(StreamEvent::RateLimits { .. }))]);
        assert!(is_head, "{}: {heard:?}", endpoint.label);
        assert!(timeout(QUIET, answer.next()).await.is_err());
        drop(answer);
        let gone = timeout(PATIENCE, server.client_gone()).await;
        assert!(gone.is_ok(), "{}: still connected", endpoint.label);
    }
}

#[tokio::test]
async fn unpolled_stream_opens_no_connection() {
    let endpoint = &PROTOCOLS[0];
    let server = Server::start_with_replies([endless(endpoint)]).unwrap();
    let provider = provider(endpoint, &server);
    let answer = provider.stream(ask(endpoint, [user("Hello")]));
    sleep(QUIET).await;
    assert_eq!(server.connection_count(), 0);
    drop(answer);
}

/// Nothing is read ahead of the consumer: the sender stops when it stops, and goes on with it.
#[tokio::test]
async fn slow_stream_consumer_applies_backpressure() {
    for endpoint in &PROTOCOLS {
        let server = Server::start_with_replies([endless(endpoint)]).unwrap();
        let provider = provider(endpoint, &server);
        let mut answer = provider.stream(ask(endpoint, [user("Hello")]));
        first_words(&mut answer).await;
        let held = settled(&server).await;
        assert!(held < MAX_IN_FLIGHT_BYTES, "{}: {held} bytes were read ahead", endpoint.label);
        let mut taken = 0;
        while taken <= held {
            let event = timeout(PATIENCE, answer.next()).await.unwrap();
            if let StreamEvent::TextDelta { text, .. } = event.unwrap().unwrap() {
                taken += text.len() as u64;
            }
        }
        assert!(server.bytes_sent() > held, "{}", endpoint.label);
    }
}

/// What the server has got rid of when it cannot send any more.
async fn settled(server: &Server) -> u64 {
    let mut sent = server.bytes_sent();
    loop {
        sleep(QUIET).await;
        let now = server.bytes_sent();
        if now == sent {
            return now;
        }
        sent = now;
    }
}

async fn first_words(answer: &mut gnoma_core::EventStream) {
    loop {
        let event = timeout(PATIENCE, answer.next()).await.unwrap();
        if let StreamEvent::TextDelta { .. } = event.unwrap().unwrap() {
            return;
        }
    }
}

/// A stream that says the same for ever.
fn endless(endpoint: &Endpoint) -> Reply {
    let words = WORD.repeat(1000);
    let ReplyBody::Bytes(body) = endpoint.wire.stream_reply(&Script::text([words.as_str()])).body
    else {
        panic!("an endless script")
    };
    let body = String::from_utf8(body.to_vec()).unwrap();
    let at = body.find(&words).unwrap();
    let ends = ["\r\n\r\n", "\n\n", "\n"];
    let end = ends.into_iter().find(|end| body.contains(end)).unwrap();
    let unit_end = at + body[at..].find(end).unwrap() + end.len();
    let unit = body[..unit_end - end.len()].rfind(end);
    let unit = unit.map_or(0, |before| before + end.len());
    Reply::endless_stream(
        "text/event-stream",
        body[..unit_end].to_owned(),
        body[unit..unit_end].to_owned(),
    )
}

/// A good answer in which `mark` is replaced by `bytes`.
fn body_with(endpoint: &Endpoint, mark: &str, bytes: &[u8]) -> Vec<u8> {
    let ReplyBody::Bytes(body) = endpoint.wire.stream_reply(&Script::text([mark])).body else {
        panic!("an endless script")
    };
    let mark = mark.as_bytes();
    let mut out = Vec::new();
    let mut rest = &body[..];
    while let Some(at) = rest.windows(mark.len()).position(|window| window == mark) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(bytes);
        rest = &rest[at + mark.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn provider(endpoint: &Endpoint, server: &Server) -> std::sync::Arc<dyn Provider> {
    connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()))
}

/// A good answer, whole.
async fn read(endpoint: &Endpoint, server: &Server) -> Accumulator {
    let request = gnoma_core::ModelRequest { tools: tools(), ..ask(endpoint, [user("Hello")]) };
    let mut answer = provider(endpoint, server).stream(request);
    let mut all = Accumulator::new();
    while let Some(event) = timeout(PATIENCE, answer.next()).await.unwrap() {
        let event = event.unwrap_or_else(|error| panic!("{}: {error}", endpoint.label));
        all.push(&event);
    }
    all
}

#[tokio::test]
async fn garbage_after_a_complete_ollama_answer_is_ignored() {
    let ollama = PROTOCOLS.iter().find(|endpoint| endpoint.label == "ollama").unwrap();
    let line = r#"{"message":{"content":"hi"},"done":true,"done_reason":"stop"}"#;
    for bytes in [1, usize::MAX] {
        let reply = Reply::new(200, "application/x-ndjson", format!("{line}\n oops"))
            .with_piece_size(bytes);
        let server = Server::start_with_replies([reply]).unwrap();
        let answer = read(ollama, &server).await;
        assert_eq!(answer.stop_reason(), Some(StopReason::EndTurn), "pieces of {bytes}");
    }
}

/// A vendor's new word for why an answer ended costs no call that is whole.
#[tokio::test]
async fn complete_tool_calls_survive_an_unknown_finish_reason() {
    let words = [
        (r#""finish_reason":"tool_calls""#, r#""finish_reason":"of_tomorrow""#),
        (r#""stop_reason":"tool_use""#, r#""stop_reason":"of_tomorrow""#),
        (r#""finishReason":"STOP""#, r#""finishReason":"OF_TOMORROW""#),
        (r#""done_reason":"stop""#, r#""done_reason":"of_tomorrow""#),
    ];
    let mut changed = 0;
    for endpoint in &PROTOCOLS {
        let script =
            Script::text([""; 0]).with_call("call_a", "fs_ls", "{}").with_stop(StopReason::ToolUse);
        let mut reply = endpoint.wire.stream_reply(&script);
        let ReplyBody::Bytes(body) = &reply.body else { panic!() };
        let mut text = String::from_utf8(body.to_vec()).unwrap();
        for (known, unknown) in words {
            changed += text.matches(known).count();
            text = text.replace(known, unknown);
        }
        reply.body = ReplyBody::Bytes(text.into());
        let server = Server::start_with_replies([reply]).unwrap();
        let answer = read(endpoint, &server).await;
        let stop = answer.effective_stop_reason(answer.stop_reason().unwrap());
        assert_eq!(stop, StopReason::ToolUse, "{}", endpoint.label);
    }
    assert!(changed >= 4, "{changed}");
}

/// What headers tell of rate limits is the first event, of an answer and of a refusal.
#[tokio::test]
async fn rate_limit_headers_are_the_first_event_of_answers_and_errors() {
    for endpoint in PROTOCOLS.iter().chain(&COMPATIBLE) {
        let answered = endpoint.wire.stream_reply(&Script::text([WORD]));
        let refused =
            endpoint.wire.failure_reply(&Failure::RateLimited(Some(RetryAfter::Seconds(7))));
        for (reply, is_answered) in [(answered, true), (refused, false)] {
            let reply =
                reply.with_header("x-ratelimit-limit-requests", "50").with_header("x-other", "1");
            let server = Server::start_with_replies([reply]).unwrap();
            let http = Http::new(HttpOptions::default());
            let provider = connect_provider(endpoint.profile(&server.url()), http);
            let mut stream = provider.stream(ask(endpoint, [user("hello")]));
            let first = timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap();
            let StreamEvent::RateLimits { headers } = first else { panic!("{first:?}") };
            let of = |name: &str| headers.iter().find(|(known, _)| known == name);
            assert_eq!(of("x-ratelimit-limit-requests").map(|(_, value)| &**value), Some("50"));
            assert_eq!(of("retry-after").is_some(), !is_answered, "{}", endpoint.label);
            assert_eq!(of("x-other"), None);
            let rest: Vec<_> = timeout(PATIENCE, stream.collect()).await.unwrap();
            let again = |event: &Result<StreamEvent, _>| {
                matches!(event, Ok(StreamEvent::RateLimits { .. }))
            };
            assert!(!rest.iter().any(again));
            assert_eq!(rest.iter().all(Result::is_ok), is_answered, "{}", endpoint.label);
        }
    }
}
