//! Servers over HTTP that restart, move, are busy, or answer in their own way.

use std::sync::atomic::{AtomicUsize, Ordering};

use gnoma_testkit::{End, Reply, Request, Server};
use serde_json::{Value, json};

use super::{super::definition::ServerReach, OneServer, definition};

/// A server of the wire with the handshake. `how` is given each request with its method and how many of that method
/// there were; without a word of it the answer is the usual one.
fn start(how: impl Fn(&Request, &str, usize) -> Option<Reply> + Send + Sync + 'static) -> Server {
    let calls = AtomicUsize::new(0);
    Server::start(move |request| {
        let message = request.json();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let count =
            if method == "tools/call" { calls.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        how(request, &method, count).unwrap_or_else(|| usual(request, &message, &method))
    })
    .unwrap()
}

fn usual(request: &Request, message: &Value, method: &str) -> Reply {
    if request.method != "POST" {
        return Reply::text(405, "");
    }
    let result = match method {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}),
        "tools/list" => json!({"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "hello"}]}),
        _ if message.get("id").is_none() => return Reply::text(202, ""),
        _ => return error(200, &message["id"], -32601, "no such method"),
    };
    let reply = Reply::json(
        200,
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string(),
    );
    if method == "initialize" { reply.with_header("mcp-session-id", "one") } else { reply }
}

fn error(status: u16, id: &Value, code: i64, message: &str) -> Reply {
    let error = json!({"code": code, "message": message});
    Reply::json(status, json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
}

fn one(server: &Server) -> OneServer {
    let reach =
        ServerReach::Http { url: format!("{}/mcp", server.url()), headers: Default::default() };
    OneServer::new(definition(reach), std::path::Path::new("/"))
}

fn methods(server: &Server, wanted: &str) -> usize {
    server.requests().iter().filter(|request| request.json()["method"] == wanted).count()
}

#[tokio::test]
async fn mcp_http_lost_session_is_reinitialized_and_the_call_retried() {
    let refusals: [fn(&Value) -> Reply; 7] = [
        |_| {
            Reply::json(
                400,
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":"server-error"}"#,
            )
        },
        |_| Reply::text(404, ""),
        |_| Reply::text(404, "Session not found"),
        |id| error(200, id, -32001, "Session expired"),
        |id| error(400, id, -32000, "Bad Request: Server not initialized"),
        |id| error(200, id, -32002, "Server not initialized"),
        |id| error(200, id, -32602, "Received request before initialization was complete"),
    ];
    for refusal in refusals {
        let server = start(move |request, method, count| {
            (method == "tools/call" && count == 1).then(|| refusal(&request.json()["id"]))
        });
        let one = one(&server);
        one.connect().await;
        assert_eq!(one.call("mcp__s__hello", "{}").await, "hello");
        assert_eq!((methods(&server, "tools/call"), methods(&server, "initialize")), (2, 2));
    }
}

#[tokio::test]
async fn mcp_http_truncated_answer_or_html_page_is_explained() {
    let whole = json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}}).to_string();
    let page = "<html><head><title>Sign in to Work</title></head></html>";
    for (reply, said) in [
        (
            Reply::json(200, whole.clone()).with_end(End::Reset(20)),
            "whether the call had an effect",
        ),
        (Reply::text(200, page).with_header("content-type", "text/html"), "`Sign in to Work`"),
        (
            Reply::text(502, page).with_header("content-type", "text/html"),
            "HTTP 502: Sign in to Work",
        ),
        (Reply::text(401, ""), "run `gnoma mcp login s`"),
        (Reply::text(403, "no"), "its `url` in"),
    ] {
        let server = start(move |_, method, _| (method == "tools/call").then(|| reply.clone()));
        let one = one(&server);
        one.connect().await;
        let answer = one.call("mcp__s__hello", "{}").await;
        assert!(answer.starts_with("failed: ") && answer.contains(said), "{answer}");
    }
}

#[tokio::test]
async fn mcp_http_result_without_id_answers_the_only_request() {
    let result = json!({"content": [{"type": "text", "text": "hello"}]});
    for id in [json!({"jsonrpc": "2.0", "id": null}), json!({"jsonrpc": "2.0"})] {
        let mut answer = id;
        answer["result"] = result.clone();
        let server = start(move |_, method, _| {
            (method == "tools/call").then(|| Reply::json(200, answer.to_string()))
        });
        let one = one(&server);
        one.connect().await;
        assert_eq!(one.call("mcp__s__hello", "{}").await, "hello");
    }
}

#[tokio::test]
async fn mcp_http_404_or_405_explains_the_likely_wrong_url() {
    for (path, status, said) in [
        ("/sse", 405, "older transport"),
        ("/sse", 404, "older transport"),
        ("/x", 404, "/x`: check that its `url`"),
    ] {
        let server = start(move |_, _, _| Some(Reply::text(status, "")));
        let reach = ServerReach::Http {
            url: format!("{}{path}", server.url()),
            headers: Default::default(),
        };
        let one = OneServer::new(definition(reach), std::path::Path::new("/"));
        let why = format!("{:?}", one.connect().await.seen.state);
        assert!(why.contains(said), "{why}");
    }
}

#[tokio::test]
async fn mcp_http_session_lost_twice_fails_the_call() {
    let server = start(|_, method, _| {
        (method == "tools/call").then(|| Reply::text(404, "Session not found"))
    });
    let one = one(&server);
    one.connect().await;
    let said = one.call("mcp__s__hello", "{}").await;
    assert_eq!(said, "failed: the server has lost the session: Session not found");
    assert_eq!(methods(&server, "tools/call"), 2);
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed_and_others_named() {
    for status in [301, 302, 307, 308] {
        let server = start(move |request, _, _| {
            (request.path() == "/mcp")
                .then(|| Reply::text(status, "").with_header("location", "/mcp/"))
        });
        let one = one(&server);
        one.connect().await;
        assert_eq!(one.call("mcp__s__hello", "{}").await, "hello", "{status}");
    }
    let elsewhere = start(|_, _, _| None);
    let place = format!("{}/mcp?key=1", elsewhere.url());
    let server =
        start(move |_, _, _| Some(Reply::text(307, "").with_header("location", place.clone())));
    let one = one(&server);
    let why = format!("{:?}", one.connect().await.seen.state);
    assert!(
        why.contains(&format!("redirects to another place, `{}/mcp`", elsewhere.url())),
        "{why}"
    );
    assert_eq!(elsewhere.requests().len(), 0);
    let circle = start(|_, _, _| Some(Reply::text(307, "").with_header("location", "/mcp")));
    let why = format!("{:?}", self::one(&circle).connect().await.seen.state);
    assert!(why.contains("in a circle"), "{why}");
}

#[tokio::test]
async fn mcp_http_429_and_503_wait_for_retry_after_within_limits() {
    for (status, wait) in [
        (429, Some("0")),
        (503, Some("0.01")),
        (429, Some("10ms")),
        (503, Some("Sun, 06 Nov 1994 08:49:37 GMT")),
    ] {
        let server = start(move |_, method, count| {
            let busy = || Reply::text(status, "slow down");
            let reply = match wait {
                Some(wait) => busy().with_header("retry-after", wait),
                None => busy(),
            };
            (method == "tools/call" && count < 3).then_some(reply)
        });
        let one = one(&server);
        one.connect().await;
        assert_eq!(one.call("mcp__s__hello", "{}").await, "hello", "{status} {wait:?}");
    }
    for (status, wait, said) in [
        (429, Some("3600"), "failed: the server is busy (HTTP 429): it asks to wait 1h; try later"),
        (429, Some("0"), "failed: the server is busy (HTTP 429); try later"),
        (503, None, "failed: the server is busy (HTTP 503); try later"),
    ] {
        let server = start(move |_, method, _| {
            let reply = Reply::text(status, "slow down");
            let reply = match wait {
                Some(wait) => reply.with_header("retry-after", wait),
                None => reply,
            };
            (method == "tools/call").then_some(reply)
        });
        let one = one(&server);
        one.connect().await;
        let outcome = one.call("mcp__s__hello", "{}").await;
        assert_eq!(outcome, said);
    }
}

#[tokio::test]
async fn mcp_http_errors_are_explained_in_plain_words() {
    let page = "<html><body>Bad gateway</body></html>";
    for (reply, said) in [
        (Reply::new(502, "text/html", page), "failed: the server answered with HTTP 502"),
        (
            Reply::new(200, "text/html", page),
            "failed: the server's answer cannot be read: `text/html` that is no message of the protocol",
        ),
        (Reply::text(500, "boom"), "failed: the server answered with HTTP 500: boom"),
        (
            Reply::text(200, ""),
            "failed: the server's answer cannot be read: HTTP 200 without content",
        ),
        (
            Reply::json(200, "{\"jsonrpc\":\"2.0\",\"id\":"),
            "failed: the server's answer cannot be read: it is not valid JSON-RPC",
        ),
        (
            Reply::sse("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"),
            "failed: the connection ended before the answer, so whether the call had an effect is unknown",
        ),
        (
            Reply::json(
                400,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-3,"message":"bad arguments"}}"#,
            ),
            "failed: the server refused: bad arguments",
        ),
    ] {
        let server = start(move |_, method, _| (method == "tools/call").then(|| reply.clone()));
        let one = one(&server);
        one.connect().await;
        assert_eq!(one.call("mcp__s__hello", "{}").await, said);
    }
}

#[tokio::test]
async fn mcp_http_broken_event_stream_resumes_after_the_last_event_id() {
    let server = start(|request, method, _| match (request.method.as_str(), method) {
        ("POST", "tools/call") => Some(Reply::sse("id: 7\nretry: 10\ndata: \n\n")),
        ("GET", _) if request.header("last-event-id") == Some("7") => {
            // The request before this one has the id.
            Some(Reply::sse(
                "data: {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}}\n\n",
            ))
        }
        _ => None,
    });
    let one = one(&server);
    one.connect().await;
    let id = server.requests().iter().filter_map(|request| request.json()["id"].as_u64()).max();
    assert_eq!(id, Some(3), "the call is the fourth request");
    assert_eq!(one.call("mcp__s__hello", "{}").await, "late");
}

#[tokio::test]
async fn mcp_http_event_stream_is_read_with_any_content_type() {
    let text = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"streamed\"}]}}";
    for kind in [
        "text/event-stream; charset=utf-8",
        "application/json",
        "text/plain",
        "application/octet-stream",
    ] {
        let server = start(move |_, method, _| {
            (method == "tools/call").then(|| Reply::new(200, kind, text))
        });
        let one = one(&server);
        one.connect().await;
        assert_eq!(one.call("mcp__s__hello", "{}").await, "streamed", "{kind}");
    }
}

#[tokio::test]
async fn mcp_http_calls_wait_until_the_get_stream_is_open() {
    let gate = gnoma_testkit::Gate::default();
    let (behind, opens) = (gate.clone(), gate);
    let server = start(move |request, method, _| {
        if method == "notifications/initialized" {
            opens.open();
        }
        (request.method == "GET")
            .then(|| Reply::sse(": hello\n\n").with_gate(&behind).with_end(End::Stall(9)))
    });
    let one = one(&server);
    one.connect().await;
    let requests = server.requests();
    let place = |is: &dyn Fn(&Request) -> bool| requests.iter().position(is);
    let stream = place(&|request| request.method == "GET");
    let list = place(&|request| request.json()["method"] == "tools/list");
    assert!(stream.is_some() && stream < list, "{stream:?} {list:?}");
}
