//! Servers that misbehave, and the words a person gets to read about it.

use std::time::Duration;

use futures_util::StreamExt as _;
use gnoma_core::{Accumulator, ErrorKind, Provider, ProviderError, Secret};
use gnoma_llm::{Profile, connect_provider};
use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{End, Failure, Reply, ReplyBody, RetryAfter, Script, Server};
use tokio::{net::TcpListener, time::timeout};

use crate::{
    endpoints::{Endpoint, PROTOCOLS},
    histories::{ask, user},
};

/// Longest wait for what should happen soon.
const PATIENCE: Duration = Duration::from_secs(10);

/// The client's patience where a test is about silence.
const IDLE: Duration = Duration::from_millis(200);

/// What came before the error, and the error.
struct Outcome {
    text: String,
    error: ProviderError,
}

/// Says of an error what a person needs to know: its kind, words of it, and words of the remedy.
struct Expected<'a> {
    kind: ErrorKind,
    says: &'a str,
    hint: &'a str,
}

impl Outcome {
    fn expect(&self, endpoint: &Endpoint, expected: &Expected<'_>) {
        let (label, error) = (endpoint.label, &self.error);
        assert_eq!(error.kind, expected.kind, "{label}: {error}");
        let said = error.to_string();
        assert!(said.starts_with(endpoint.provider), "{label}: {said}");
        assert!(said.contains(expected.says), "{label}: {said}");
        let hint = error.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(expected.hint), "{label}: hint `{hint}`");
    }
}

#[tokio::test]
async fn broken_connection_keeps_the_partial_answer() {
    for endpoint in &PROTOCOLS {
        let (reply, cut) = half_an_answer(endpoint);
        for end in [End::Reset(cut), End::Abort(cut)] {
            let outcome = fails(endpoint, reply.clone().with_end(end)).await;
            outcome.expect(
                endpoint,
                &Expected { kind: ErrorKind::Network, says: "the connection broke", hint: "" },
            );
            assert_eq!(outcome.text, "first ", "{} {end:?}", endpoint.label);
        }
    }
}

#[tokio::test]
async fn truncated_stream_is_a_network_error() {
    for endpoint in &PROTOCOLS {
        let (reply, cut) = half_an_answer(endpoint);
        let outcome = fails(endpoint, reply.with_end(End::Truncate(cut))).await;
        outcome.expect(
            endpoint,
            &Expected {
                kind: ErrorKind::Network,
                says: "the connection ended before the answer was complete",
                hint: "check the network and the server at",
            },
        );
        assert_eq!(outcome.text, "first ", "{}", endpoint.label);
    }
}

#[tokio::test]
async fn stalled_stream_times_out() {
    for endpoint in &PROTOCOLS {
        let (reply, cut) = half_an_answer(endpoint);
        let silent = [
            (reply.clone().with_end(End::Stall(cut)), "first "),
            (reply.clone().with_end(End::Stall(0)), ""),
            (reply.with_delay(PATIENCE * 2), ""),
        ];
        for (reply, text) in silent {
            let server = Server::start_with_replies([reply]).unwrap();
            let impatient = HttpOptions { idle_timeout: IDLE, ..HttpOptions::default() };
            let provider = connect_provider(endpoint.profile(&server.url()), Http::new(impatient));
            let outcome = outcome_of(endpoint, &*provider).await;
            outcome.expect(
                endpoint,
                &Expected {
                    kind: ErrorKind::Timeout,
                    says: "no answer in time",
                    hint: "network.idle_timeout",
                },
            );
            assert_eq!(outcome.text, text, "{}", endpoint.label);
        }
    }
}

#[tokio::test]
async fn non_protocol_answer_is_reported_as_wrong_server() {
    use ErrorKind::{Garbled, WrongServer};
    let table: [(&str, &'static [u8], ErrorKind, &str); 9] = [
        // Asked once: another server says the same again.
        ("application/json", br#"{"hello":"world"}"#, WrongServer, "the answer "),
        (
            "text/plain",
            b"Hello, I am a clock.\n",
            WrongServer,
            "begins with `Hello, I am a clock.`",
        ),
        ("application/xml", b"<?xml version=\"1.0\"?><e>no</e>", WrongServer, "<e>no</e>"),
        ("", b"\x00\x01\xFE\xFF\r\n\r\n\x80\x81", WrongServer, r"begins with `\x00\x01\xfe\xff`"),
        ("text/event-stream", b"data: {\"cho\n\n", Garbled, "invalid record"),
        ("application/json", b"{]}", Garbled, "invalid record"),
        ("application/json", b"", Garbled, "the answer is empty"),
        (
            "text/html",
            b"<!doctype html><title>Login</title>",
            WrongServer,
            "HTML page (\u{201c}Login\u{201d})",
        ),
        ("text/event-stream", b"\x1f\x8b\x08\0\0\0\0\0", WrongServer, "the answer is compressed"),
    ];
    for endpoint in &PROTOCOLS {
        for (mime, body, kind, says) in table {
            let outcome = fails(endpoint, Reply::new(200, mime, body)).await;
            outcome.expect(endpoint, &Expected { kind, says, hint: "Check that the address" });
        }
    }
}

/// A wrong `provider.protocols` is found with the first record: each request costs.
#[tokio::test]
async fn stream_of_another_protocol_is_reported_with_the_setting() {
    for endpoint in &PROTOCOLS {
        let (record, says) = match endpoint.label {
            "anthropic" => (r#"{"choices":[{"delta":{"content":"hi"}}]}"#, "Chat Completions"),
            _ => (r#"{"type":"message_start","message":{"id":"1"}}"#, "Anthropic's Messages API"),
        };
        let reply = Reply::sse(format!("data: null\n\ndata: {record}\n\n").into_bytes());
        let hint = format!("provider.protocols.{}", endpoint.provider);
        let expected = Expected { kind: ErrorKind::WrongServer, says, hint: &hint };
        fails(endpoint, reply).await.expect(endpoint, &expected);
    }
}

#[tokio::test]
async fn html_page_of_a_proxy_is_not_quoted_in_the_error() {
    for endpoint in &PROTOCOLS {
        let outcome = fails(endpoint, endpoint.wire.failure_reply(&Failure::WebPage)).await;
        let says = "no usable answer from the server behind the proxy (HTTP 502): the server answered with an HTML page";
        outcome
            .expect(endpoint, &Expected { kind: ErrorKind::Overloaded, says, hint: "Retry later" });
    }
}

#[tokio::test]
async fn http_429_error_has_the_retry_after_wait() {
    let date = RetryAfter::Date {
        at: "Sun, 06 Nov 1994 08:50:07 GMT".to_owned(),
        now: "Sun, 06 Nov 1994 08:49:37 GMT".to_owned(),
    };
    let table = [(None, None), (Some(RetryAfter::Seconds(7)), Some(7)), (Some(date), Some(30))];
    for endpoint in &PROTOCOLS {
        for (retry_after, seconds) in table.clone() {
            let failure = Failure::RateLimited(retry_after);
            let outcome = fails(endpoint, endpoint.wire.failure_reply(&failure)).await;
            outcome.expect(
                endpoint,
                &Expected {
                    kind: ErrorKind::RateLimited,
                    says: "rate limited (HTTP 429): ",
                    hint: "--provider",
                },
            );
            let wait = seconds.map(Duration::from_secs);
            assert_eq!(outcome.error.retry_after, wait, "{}", endpoint.label);
        }
    }
}

#[tokio::test]
async fn http_errors_are_mapped_to_error_kinds_for_every_protocol() {
    let table = [
        (Failure::Overloaded, ErrorKind::Overloaded, "Retry later"),
        (Failure::Internal, ErrorKind::ServerError, "The problem is on the side of"),
        (Failure::NoModel, ErrorKind::NotFound, "gnoma models"),
        (Failure::TooLong, ErrorKind::ContextTooLong, "larger window"),
    ];
    for endpoint in &PROTOCOLS {
        for (failure, kind, hint) in &table {
            let outcome = fails(endpoint, endpoint.wire.failure_reply(failure)).await;
            let (kind, says) = (*kind, "(HTTP ");
            outcome.expect(endpoint, &Expected { kind, says, hint });
        }
    }
}

#[tokio::test]
async fn http_401_hint_names_the_missing_or_wrong_api_key() {
    for endpoint in &PROTOCOLS {
        let reply = endpoint.wire.failure_reply(&Failure::Key);
        let server = Server::start(move |_| reply.clone()).unwrap();
        let mut profile = endpoint.profile(&server.url());
        let variable = profile.key_variable.clone();
        let missing = format!("export {variable}=…, or set `provider.api_keys.");
        let wrong = format!("rejected the key: check {variable}");
        for (key, hint) in [(None, &missing), (Some("s3cret-key"), &wrong)] {
            profile.key = key.map(|key| Secret::new(key.to_owned()));
            let outcome = asked(endpoint, profile.clone()).await;
            let expected = Expected { kind: ErrorKind::Auth, says: "not authorised", hint };
            outcome.expect(endpoint, &expected);
            assert!(!format!("{:?}", outcome.error).contains("s3cret"));
        }
        let with_key = server.requests().pop().unwrap();
        let values = with_key.headers.iter().map(|(_, value)| value);
        assert!(values.into_iter().any(|value| value.contains("s3cret")));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for endpoint in &PROTOCOLS {
        let elsewhere =
            Server::start_with_replies([endpoint.wire.stream_reply(&Script::text(["no"]))])
                .unwrap();
        for status in [301, 302, 307, 308] {
            let target = format!("{}/elsewhere", elsewhere.url());
            let reply = Reply::text(status, "").with_header("location", &target);
            let server = Server::start_with_replies([reply]).unwrap();
            let mut profile = endpoint.profile(&server.url());
            profile.key = Some(Secret::new("s3cret".to_owned()));
            profile.address_source = Some("SOME_BASE_URL".to_owned());
            let outcome = asked(endpoint, profile).await;
            outcome.expect(
                endpoint,
                &Expected { kind: ErrorKind::WrongServer, says: &target, hint: "in SOME_BASE_URL" },
            );
        }
        assert_eq!(elsewhere.connection_count(), 0, "{}", endpoint.label);
    }
}

#[tokio::test]
async fn https_to_a_plain_http_server_says_it_does_not_speak_tls() {
    let endpoint = &PROTOCOLS[0];
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", server.local_addr().unwrap());
    let plain = std::thread::spawn(move || {
        let mut client = server.accept().unwrap().0;
        std::io::Write::write_all(&mut client, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let outcome = asked(endpoint, endpoint.profile(&url)).await;
    plain.join().unwrap();
    let expected =
        Expected { kind: ErrorKind::WrongServer, says: "does not speak TLS", hint: "Use http://" };
    outcome.expect(endpoint, &expected);
}

#[tokio::test]
async fn server_that_requires_a_client_certificate_fails_without_retry() {
    let endpoint = &PROTOCOLS[0];
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", server.local_addr().unwrap());
    let strict = std::thread::spawn(move || {
        let mut client = server.accept().unwrap().0;
        let mut head = [0; 5];
        std::io::Read::read_exact(&mut client, &mut head).unwrap();
        let mut hello = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
        std::io::Read::read_exact(&mut client, &mut hello).unwrap();
        // The fatal alert `certificate_required`.
        std::io::Write::write_all(&mut client, b"\x15\x03\x03\x00\x02\x02\x74").unwrap();
    });
    let outcome = asked(endpoint, endpoint.profile(&url)).await;
    strict.join().unwrap();
    let (kind, says) = (ErrorKind::Certificate, "wants a client certificate, which gnoma cannot");
    outcome.expect(endpoint, &Expected { kind, says, hint: "proxy_ssl_certificate" });
}

/// An alert of TLS is what a server behind TLS says to a request without.
#[tokio::test]
async fn http_to_a_tls_server_says_to_use_https() {
    let endpoint = &PROTOCOLS[0];
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let encrypted = std::thread::spawn(move || {
        let mut client = server.accept().unwrap().0;
        // Who speaks TLS waits for the client's hello.
        std::io::Read::read_exact(&mut client, &mut [0]).unwrap();
        std::io::Write::write_all(&mut client, b"\x15\x03\x01\x00\x02\x02\x46").unwrap();
    });
    let outcome = asked(endpoint, endpoint.profile(&url)).await;
    encrypted.join().unwrap();
    let (kind, says) = (ErrorKind::WrongServer, "the server does not speak HTTP");
    outcome.expect(endpoint, &Expected { kind, says, hint: "use https:// instead of http://" });
}

#[tokio::test]
async fn http_404_or_html_answer_hints_at_a_wrong_endpoint() {
    let table = [
        (404, "404 page not found", ErrorKind::NotFound, "The address of `"),
        (
            404,
            "<html>nothing here</html>",
            ErrorKind::NotFound,
            "may be wrong: gnoma asked http://",
        ),
        (405, "", ErrorKind::BadRequest, "The address of `"),
        (
            403,
            "<html>blocked</html>",
            ErrorKind::Forbidden,
            "A proxy or firewall may have answered",
        ),
    ];
    for endpoint in &PROTOCOLS {
        for (status, body, kind, hint) in table {
            let server = Server::start_with_replies([Reply::text(status, body)]).unwrap();
            let mut profile = endpoint.profile(&server.url());
            profile.key = Some(Secret::new("s3cret".to_owned()));
            profile.address_source = Some("SOME_BASE_URL".to_owned());
            let outcome = asked(endpoint, profile).await;
            outcome.expect(endpoint, &Expected { kind, says: "(HTTP ", hint });
        }
    }
}

#[tokio::test]
async fn connection_refused_error_names_the_address() {
    for endpoint in &PROTOCOLS {
        let url = vacant().await;
        let outcome = asked(endpoint, endpoint.profile(&url)).await;
        let hint = if endpoint.label == "ollama" {
            format!("Is the server of `ollama` running at {url}?")
        } else {
            "Check the network".to_owned()
        };
        let expected = Expected {
            kind: ErrorKind::Unreachable,
            says: &format!("cannot connect ({url}/"),
            hint: &hint,
        };
        outcome.expect(endpoint, &expected);
        assert!(outcome.error.message.contains("refused"), "{}", outcome.error.message);
    }
}

#[tokio::test]
async fn invalid_endpoint_url_error_names_the_setting() {
    for endpoint in &PROTOCOLS {
        let outcome = asked(endpoint, endpoint.profile("not an address")).await;
        let hint = format!("provider.endpoints.{}", endpoint.provider);
        let expected =
            Expected { kind: ErrorKind::BadRequest, says: "unusable address", hint: &hint };
        outcome.expect(endpoint, &expected);
    }
}

/// An address where nobody listens.
async fn vacant() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// An answer of two words, and where it is cut after the first.
fn half_an_answer(endpoint: &Endpoint) -> (Reply, usize) {
    let reply = endpoint.wire.stream_reply(&Script::text(["first ", "second"]));
    let ReplyBody::Bytes(body) = &reply.body else { panic!("an endless script") };
    let text = String::from_utf8(body.to_vec()).unwrap();
    // In the middle of the second word: its record is cut.
    let cut = text.find("second").unwrap() + 3;
    (reply, cut)
}

async fn fails(endpoint: &Endpoint, reply: Reply) -> Outcome {
    let server = Server::start_with_replies([reply]).unwrap();
    asked(endpoint, endpoint.profile(&server.url())).await
}

async fn asked(endpoint: &Endpoint, profile: Profile) -> Outcome {
    outcome_of(endpoint, &*connect_provider(profile, Http::new(HttpOptions::default()))).await
}

/// Asks, and reads until the error, which must be the last that comes.
async fn outcome_of(endpoint: &Endpoint, provider: &dyn Provider) -> Outcome {
    let mut answer = provider.stream(ask(endpoint, [user("Hello")]));
    let mut all = Accumulator::new();
    let error = loop {
        match timeout(PATIENCE, answer.next()).await.unwrap() {
            Some(Ok(event)) => all.push(&event),
            Some(Err(error)) => break error,
            None => panic!("{}: a good end", endpoint.label),
        }
    };
    assert!(answer.next().await.is_none(), "{}", endpoint.label);
    assert_eq!(all.stop_reason(), None, "{}: {error}", endpoint.label);
    let message = all.into_response().into_message(None);
    Outcome { text: message.map_or_else(String::new, |message| message.text_content()), error }
}
