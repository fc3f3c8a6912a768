//! Who is refused, and that nothing comes of it.

use gnoma_core::protocol::Request;
use gnoma_web::Rights;
use serde_json::Value;

use super::support::Served;

const CANCEL: &str = "/api/v1/sessions/s/cancel";

#[tokio::test]
async fn request_without_token_gets_401_and_no_effect() {
    let served = Served::new().await;
    let wrong = format!("Bearer {}", "0".repeat(64));
    let none = String::new();
    let address = served.address;
    for (method, path) in [
        ("GET", "/api/v1/hello"),
        ("GET", "/api/v1/events?watch=1"),
        ("POST", CANCEL),
        ("POST", "/api/v1/messages"),
        ("POST", "/api/v1/process/list"),
    ] {
        for bearer in [&none, &wrong, &"Basic eDp5".to_owned(), &"Bearer".to_owned()] {
            let headers = [("Authorization", bearer.as_str())];
            let headers = if bearer.is_empty() { &headers[..0] } else { &headers[..] };
            let answer = served.ask(&format!("{method} {path}"), headers, b"").await;
            assert_eq!(answer.status, 401, "{path} {answer:?}");
            assert!(answer.text().contains("gnoma web"), "{answer:?}");
        }
        let query = served
            .ask(&format!("{method} {path}?t={}", served.token(Rights::Steer)), &[], b"")
            .await;
        assert!([400, 401].contains(&query.status), "a token in an address opens nothing");
    }
    let origin = format!("http://{address}");
    let body = format!("{{\"token\":\"{}\"}}", "0".repeat(64));
    for body in [body.as_str(), "", "{", "[]", "{\"token\":7}"] {
        let exchange =
            served.ask("POST /api/v1/exchange", &[("Origin", &origin)], body.as_bytes()).await;
        assert_eq!((exchange.status, exchange.header("set-cookie")), (401, None), "{body}");
    }
    assert!(served.host.asked.lock().unwrap().is_empty(), "the host was asked");
}

#[tokio::test]
async fn wrong_host_header_and_foreign_origins_are_refused() {
    let served = Served::new().await;
    let bearer = format!("Bearer {}", served.token(Rights::Steer));
    let port = served.address.port();
    let token = ("Authorization", bearer.as_str());
    for host in [
        "evil.example",
        "evil.example:80",
        &format!("evil.example:{port}"),
        "127.0.0.1:1",
        "",
        "a b",
    ] {
        for path in ["POST /api/v1/process/list", "GET /", "GET /app.js", "GET /api/v1/hello"] {
            let answer = served.ask(path, &[token, ("Host", host)], b"").await;
            assert!([400, 421].contains(&answer.status), "{host} {path} {answer:?}");
        }
    }
    for origin in [
        "http://evil.example",
        "null",
        &format!("http://evil.example:{port}"),
        "http://127.0.0.1:3000",
    ] {
        let answer = served.ask(&format!("POST {CANCEL}"), &[token, ("Origin", origin)], b"").await;
        assert_eq!(answer.status, 403, "{origin}");
        let answer = served.ask(&format!("OPTIONS {CANCEL}"), &[("Origin", origin)], b"").await;
        assert!(answer.header("access-control-allow-origin").is_none(), "{answer:?}");
    }
    let answer = served
        .ask(&format!("POST {CANCEL}"), &[token, ("Sec-Fetch-Site", "cross-site")], b"")
        .await;
    assert_eq!(answer.status, 403);
    assert!(served.host.asked.lock().unwrap().is_empty(), "the host was asked");
    assert_eq!(served.call(CANCEL, "").await.status, 200);
    assert!(matches!(served.host.asked.lock().unwrap()[0].1.request, Request::Cancel));
}

#[tokio::test]
async fn browser_request_needs_cookie_and_csrf_key() {
    let served = Served::new().await;
    let origin = format!("http://{}", served.address);
    let body = format!("{{\"token\":\"{}\"}}", served.token(Rights::Steer));
    let exchange =
        served.ask("POST /api/v1/exchange", &[("Origin", &origin)], body.as_bytes()).await;
    assert_eq!(exchange.status, 200, "{exchange:?}");
    let set = exchange.header("set-cookie").unwrap();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(word), "{set}");
    }
    assert!(!exchange.text().contains(served.token(Rights::Steer)));
    let cookie = set.split(';').next().unwrap();
    let hello: Value = serde_json::from_slice(&exchange.body).unwrap();
    let key = hello["key"].as_str().unwrap();
    assert_eq!(hello["rights"], "steer");
    let status = async |headers: &[(&str, &str)]| {
        served.ask("POST /api/v1/process/list", headers, b"").await.status
    };
    let (origin, cookie, key) =
        (("Origin", origin.as_str()), ("Cookie", cookie), ("Gnoma-Key", key));
    assert_eq!(status(&[origin, cookie, key]).await, 200);
    assert_eq!(status(&[origin, cookie]).await, 401, "a form on another page");
    assert_eq!(status(&[origin, key]).await, 401);
    assert_eq!(status(&[cookie, key]).await, 403, "no origin");
    assert_eq!(status(&[("Origin", "http://127.0.0.1:3000"), cookie, key]).await, 403);
}

#[tokio::test]
async fn watch_token_cannot_change_anything() {
    let served = Served::new().await;
    let bearer = format!("Bearer {}", served.token(Rights::Watch));
    let headers = [("Authorization", bearer.as_str())];
    for (path, body) in [
        (CANCEL, ""),
        ("/api/v1/sessions/s/send", "{\"content\":[{\"text\":{\"text\":\"hi\"}}]}"),
        ("/api/v1/sessions/s/answer", "{\"call\":\"c\",\"answer\":\"allow\"}"),
        ("/api/v1/sessions/s/settings", ""),
        ("/api/v1/process/open", "{}"),
        ("/api/v1/messages", "{\"id\":1,\"session\":\"s\",\"request\":\"close\"}"),
    ] {
        let answer = served.ask(&format!("POST {path}"), &headers, body.as_bytes()).await;
        assert_eq!(answer.status, 403, "{path} {answer:?}");
    }
    assert!(served.host.asked.lock().unwrap().is_empty(), "the host was asked");
    assert_eq!(served.ask("POST /api/v1/process/list", &headers, b"").await.status, 200);
}

#[tokio::test]
async fn path_traversal_is_refused() {
    let served = Served::new().await;
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..;/",
        "//etc/passwd",
        "/app.js/../../x",
        "/api/v1/sessions/..%2f..%2fx/cancel",
        "/.git/config",
        "/Cargo.toml",
        "/page/app.js",
    ] {
        let answer = served.ask(&format!("GET {path}"), &[], b"").await;
        assert!([404, 405].contains(&answer.status), "{path} {answer:?}");
        assert!(!answer.text().contains("root:"), "{path}");
    }
    let page = served.ask("GET /", &[], b"").await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'")
            && policy.contains("require-trusted-types-for 'script'")
    );
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    for name in [
        "x-frame-options",
        "x-content-type-options",
        "referrer-policy",
        "cross-origin-resource-policy",
    ] {
        assert!(page.header(name).is_some(), "{name}");
    }
    let tag = page.header("etag").unwrap();
    assert_eq!(served.ask("GET /", &[("If-None-Match", tag)], b"").await.status, 304);
}

#[tokio::test]
async fn another_method_is_told_which_one_is_right() {
    let served = Served::new().await;
    let bearer = format!("Bearer {}", served.token(Rights::Steer));
    let token = [("Authorization", bearer.as_str())];
    for (line, allowed) in [
        (format!("GET {CANCEL}"), "POST"),
        ("POST /api/v1/hello".to_owned(), "GET"),
        ("PUT /api/v1/sessions/s/usage".to_owned(), "GET, POST"),
        ("POST /app.js".to_owned(), "GET, HEAD"),
    ] {
        let answer = served.ask(&line, &token, b"").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allowed)), "{line}");
    }
    let read = served.ask("GET /api/v1/process/list", &token, b"").await;
    assert_eq!((read.status, read.text().as_str()), (200, r#"{"live":[]}"#));
    let refused = served.ask("GET /api/v1/process/list", &[], b"").await;
    assert_eq!(refused.status, 401, "a GET needs the token as well");
    let description = served.ask("GET /api/v1/openapi.json", &token, b"").await;
    assert_eq!((description.status, description.text().contains("3.1.0")), (200, true));
}

#[tokio::test]
async fn a_page_at_another_port_says_where_it_is() {
    let served = Served::new().await;
    let answer = served.ask("GET /", &[("Host", "127.0.0.1:5000")], b"").await;
    assert_eq!(answer.status, 421);
    assert!(answer.header("content-type").unwrap().starts_with("text/plain"), "{answer:?}");
    assert!(answer.text().contains(&format!("http://{}", served.address)), "{answer:?}");
}

#[tokio::test]
async fn malformed_requests_get_an_error_and_no_effect() {
    let served = Served::new().await;
    for (path, body, status) in [
        ("/api/v1/sessions/s/dance", "", 400),
        ("/api/v1/sessions/s/send", "{\"content\":7}", 400),
        ("/api/v1/sessions/s/send", "\u{0}\u{1}", 400),
        ("/api/v1/sessions/s/attach", "{\"from\":null}", 400),
        ("/api/v1/process/shutdown", "", 403),
        ("/api/v1/sessions/other/cancel", "", 404),
        ("/api/v1/messages", "rubbish", 200),
        ("/api/v1/messages", "{\"id\":5,\"request\":\"dance\"}", 200),
    ] {
        let answer = served.call(path, body).await;
        assert_eq!(answer.status, status, "{path} {body} {answer:?}");
        assert!(answer.text().contains("cause"), "{answer:?}");
    }
    let told: Value = serde_json::from_slice(
        &served.call("/api/v1/messages", "{\"id\":5,\"request\":\"dance\"}").await.body,
    )
    .unwrap();
    assert_eq!(told["reply"]["id"], 5);
    let asked: Vec<_> =
        served.host.asked.lock().unwrap().iter().map(|(_, it)| it.request.clone()).collect();
    assert!(asked.iter().all(|it| matches!(it, Request::Cancel)), "{asked:?}");
    served.still_serves().await;
}

#[tokio::test]
async fn client_name_and_idempotency_key_reach_the_host() {
    let served = Served::new().await;
    let bearer = format!("Bearer {}", served.token(Rights::Steer));
    let token = ("Authorization", bearer.as_str());
    let named = [token, ("Gnoma-Client", "my-program-1"), ("Idempotency-Key", "17")];
    assert_eq!(served.ask(&format!("POST {CANCEL}"), &named, b"").await.status, 200);
    let (name, message) = served.host.asked.lock().unwrap()[0].clone();
    assert_eq!((name.as_str(), message.id.0), ("steer my-program-1", 17));
    // Without a number nothing says that it was sent before: it must never be taken for an earlier one.
    assert_eq!(served.ask(&format!("POST {CANCEL}"), &named[..2], b"").await.status, 200);
    assert_eq!(served.host.asked.lock().unwrap()[1].0, "unnamed");
    // A number without a name would not keep a request from taking effect twice.
    let wrong: [&[_]; 3] = [
        &[token, ("Gnoma-Client", "a b")],
        &[token, ("Gnoma-Client", "my-program-1"), ("Idempotency-Key", "x")],
        &[token, ("Idempotency-Key", "5")],
    ];
    for headers in wrong {
        assert_eq!(served.ask(&format!("POST {CANCEL}"), headers, b"").await.status, 400);
    }
    let opened = served.call("/api/v1/process/open", "{\"interactive\":true}").await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let asked = served.host.asked.lock().unwrap();
    let Request::Open(spec) = &asked.last().unwrap().1.request else { unreachable!() };
    assert_eq!((spec.folder.to_str(), spec.interactive), (Some("/work"), true));
}
