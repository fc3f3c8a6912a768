//! Requests that are nearly right, or wrong in every way, against the handler.

use gnoma_web::Token;
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

#[expect(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../../fuzz/src/web.rs"]
pub(crate) mod bodies;

/// Requests of the protocol, by name and fields: what is carried, and what is not.
fn named() -> impl Strategy<Value = (&'static str, Value)> {
    select(vec![
        ("set_mode", json!({ "mode": "bypass" })),
        ("set_mode", json!({ "mode": "plan" })),
        ("send", json!({ "content": [{ "text": { "text": "hi" } }] })),
        ("set_setting", json!({ "key": "permission.mode", "value": "bypass" })),
        ("set_setting", json!({ "key": "tools.max_rounds", "value": "9" })),
        ("set_setting", json!({ "key": "provider.thinking", "value": "${HOME}" })),
        ("open", json!({ "environment": { "PATH": "/tmp" } })),
        ("open", json!({ "overrides": { "mode": "bypass" } })),
        ("open", json!({ "overrides": { "confirm_bypass": true } })),
        ("open", json!({ "folder": "/work", "profile": "careless" })),
        ("open", json!({ "folder": "/work" })),
        ("stored_in", json!({ "spec": { "umask": 0 }, "max": 3 })),
        ("delete", json!({ "spec": {}, "id": "s" })),
        ("add_provider", json!({ "provider": "p", "by": { "key": "k" } })),
        ("try_provider", json!({ "provider": "p", "by": { "key": "k" } })),
        ("keep_rule", json!({ "rule": "bash(*)", "scope": "user", "dry_run": false })),
        ("answer", json!({ "call": "c", "answer": "allow" })),
        ("history", json!({ "before": null, "max": 3 })),
        ("trust", json!({})),
        ("shutdown", json!({})),
        ("watch", json!({})),
        ("cancel", json!({})),
        ("list", json!({})),
        ("status", json!({})),
    ])
}

/// A target and a body.
fn asked() -> impl Strategy<Value = (String, Vec<u8>)> {
    let of = || select(vec!["process", "sessions/s", "sessions/s", "sessions/.."]);
    let call = (of(), named())
        .prop_map(|(of, (name, fields))| (format!("/api/v1/{of}/{name}"), fields.to_string()));
    let message = (named(), prop::bool::ANY).prop_map(|((name, fields), of_session)| {
        let is_bare = fields.as_object().is_none_or(serde_json::Map::is_empty);
        let request = if is_bare { json!(name) } else { json!({ name: fields }) };
        let session = of_session.then_some("s");
        let message = json!({ "id": 1, "session": session, "request": request });
        ("/api/v1/messages".to_owned(), message.to_string())
    });
    let told = prop_oneof![call, message].prop_map(|(target, body)| (target, body.into_bytes()));
    let target = prop_oneof![
        "attach=[a-z@.0-9]{0,12}".prop_map(|query| format!("/api/v1/events?watch=1&{query}")),
        select(vec!["/", "/app.js", "/api/v1/hello", "/api/v1/exchange"]).prop_map(str::to_owned),
        "/[ -~]{0,40}",
    ];
    prop_oneof![8 => told, 1 => (target, prop::collection::vec(any::<u8>(), 0..80))]
}

fn headers() -> impl Strategy<Value = Vec<String>> {
    let token = Token::from_random(bodies::RANDOM);
    let (steer, watch) = (token.expose().to_owned(), token.for_watching().expose().to_owned());
    let known = vec![
        format!("Authorization: Bearer {steer}"),
        format!("Authorization: Bearer {watch}"),
        format!("Authorization: Bearer {}", "0".repeat(64)),
        format!("Cookie: gnoma_4666={steer}"),
        format!("Gnoma-Key: {watch}"),
        format!("Origin: http://{}", bodies::ADDRESS),
        "Origin: http://evil.example".to_owned(),
        "Sec-Fetch-Site: cross-site".to_owned(),
        "Idempotency-Key: 7".to_owned(),
        "Gnoma-Client: my-program".to_owned(),
        "Last-Event-ID: s@7.3".to_owned(),
        "Host: evil.example".to_owned(),
    ];
    let first = vec![known[0].clone(), known[1].clone(), known[2].clone()];
    let more = prop_oneof![4 => select(known), 1 => "[A-Za-z-]{1,12}: [ -~]{0,30}"];
    (select(first), prop::collection::vec(more, 0..2), prop::bool::weighted(0.9)).prop_map(
        |(first, mut all, has_host)| {
            all.push(first);
            all.extend(has_host.then(|| format!("Host: {}", bodies::ADDRESS)));
            all
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// The laws of the fuzz target hold for what people might try.
    #[test]
    fn random_http_requests_obey_the_route_table(
        method in prop_oneof![8 => Just("POST"), 2 => Just("GET"), 1 => select(vec!["PUT", "OPTIONS", "HEAD"])],
        (target, body) in asked(),
        headers in headers(),
    ) {
        let head = format!("{method} {target}\n{}\n\n", headers.join("\n"));
        bodies::request(&[head.as_bytes(), &body].concat());
    }
}
