//! What a person reads for each HTTP status, by where the key and the address came from, on all wires.
//!
//! The snapshot is there to be read aloud: each line says what happened, and what to do with the setting or
//! variable that has to be changed.

use futures_util::{StreamExt as _, future::join_all};
use gnoma_core::{ErrorKind, ProviderError, Secret};
use gnoma_llm::{Profile, Protocol, connect_provider};
use gnoma_net::{Http, HttpOptions};
use gnoma_testkit::{Reply, Server};

use crate::{
    endpoints::{Endpoint, PROTOCOLS},
    histories::{ask, user},
};

const STATUSES: [u16; 29] = [
    302, 400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 415, 421, 422, 425, 426, 429, 431, 451,
    500, 501, 502, 503, 504, 508, 511, 520, 521, 529,
];

/// Where a profile comes from: its name, the key's source, the address's source.
const ORIGINS: [(&str, Option<&str>, Option<&str>); 4] = [
    ("vendor", Some("VENDOR_KEY"), None),
    (
        "work",
        Some("WORK_KEY"),
        Some("`provider.endpoints.work` (/home/u/.config/gnoma/config.toml:4)"),
    ),
    (
        "vendor",
        Some("`provider.api_keys.vendor` (/home/u/.config/gnoma/config.toml:7)"),
        Some("VENDOR_BASE_URL"),
    ),
    ("work", None, Some("`provider.endpoints.work` (/home/u/.config/gnoma/config.toml:4)")),
];

/// What follows the address on each wire, and how addresses usually end.
const PATHS: [&str; 5] = [
    "/chat/completions",
    "/responses",
    "/messages",
    "/models/MODEL:streamGenerateContent",
    "/api/chat",
];
/// The protocols, as they are named where the server may speak another one.
const PROTOCOL_NAMES: [&str; 6] = [
    "speaks Mistral's Chat Completions",
    "speaks Anthropic's Messages API",
    "speaks Chat Completions",
    "speaks the Responses API",
    "speaks the Gemini API",
    "speaks Ollama's own API",
];
const USUAL_ENDS: [&str; 2] = [" It often ends in /v1beta.", " It often ends in /v1."];

/// The sentence for a status, with the names of the origin in place of those of the wire.
async fn sentence(endpoint: &Endpoint, status: u16, origin: usize) -> String {
    let (name, key, address) = ORIGINS[origin];
    let reply = match status {
        302 => Reply::text(status, "").with_header("location", "https://wifi.example/login"),
        _ => Reply::new(status, "application/json", r#"{"error":{"message":"it says no"}}"#),
    };
    let server = Server::start_with_replies([reply]).unwrap();
    let url = server.url();
    let mut profile = match name {
        "work" => Profile::new("work", endpoint.protocol, &url),
        _ => endpoint.profile(&url),
    };
    profile.local = false;
    profile.key = key.map(|_| Secret::new("k3y".to_owned()));
    profile.key_source = key.map(str::to_owned);
    profile.address_source = address.map(str::to_owned);
    let provider = profile.name.clone();
    let error = failure(endpoint, profile).await;
    let text = format!("{error}\n    {}", error.hint.clone().unwrap_or_default());
    let text = text.replace(&url, "https://address/v1").replace(endpoint.model, "MODEL");
    // One wire has a sentence more where the address is none of the vendor's.
    let chat = format!(
        " If the server there speaks Chat Completions and not the Responses API, set `provider.protocols.{provider}` to \
         `compatible`."
    );
    let text = text.replace(&chat, "");
    // Each wire has a path of its own, and a usual end of the address.
    let text = PATHS.iter().fold(text, |text, path| text.replace(path, "/PATH"));
    let text = PROTOCOL_NAMES.iter().fold(text, |text, name| text.replace(name, "speaks PROTOCOL"));
    let text = USUAL_ENDS.iter().fold(text, |text, end| text.replace(end, ""));
    text.replace(&format!("{provider}:"), &format!("{name}:"))
        .replace(&format!("`{provider}`"), &format!("`{name}`"))
        .replace(&format!(".{provider}`"), &format!(".{name}`"))
}

async fn failure(endpoint: &Endpoint, profile: Profile) -> ProviderError {
    let provider = connect_provider(profile, Http::new(HttpOptions::default()));
    let mut stream = provider.stream(ask(endpoint, [user("hi")]));
    while let Some(event) = stream.next().await {
        if let Err(error) = event {
            return error;
        }
    }
    panic!("{}: no failure", endpoint.label)
}

#[tokio::test]
async fn gateway_without_the_responses_api_hints_at_the_compatible_protocol() {
    let body = r#"{"error":{"message":"no such path /responses"}}"#;
    let server = Server::start_with_replies([Reply::new(404, "application/json", body)]).unwrap();
    let mut profile = Profile::new("openai", Protocol::Responses, server.url());
    profile.key = Some(Secret::new("k3y".to_owned()));
    profile.address_source = Some("OPENAI_BASE_URL".to_owned());
    let protocols = PROTOCOLS;
    let endpoint = protocols.iter().find(|it| it.protocol == Protocol::Responses).unwrap();
    let hint = failure(endpoint, profile).await.hint.unwrap_or_default();
    assert!(hint.contains("set `provider.protocols.openai` to `compatible`"), "{hint}");
}

#[tokio::test]
async fn every_http_status_error_has_a_hint_naming_the_setting() {
    let mut page = String::new();
    for (origin, (name, key, address)) in ORIGINS.iter().enumerate() {
        page.push_str(&format!("# `{name}`, key: {key:?}, address: {address:?}\n"));
        for status in STATUSES {
            let all =
                join_all(PROTOCOLS.iter().map(|endpoint| sentence(endpoint, status, origin))).await;
            for (said, endpoint) in all.iter().zip(&PROTOCOLS) {
                assert_eq!(said, &all[0], "{} {status}", endpoint.label);
            }
            let said = &all[0];
            let hint = said.split_once("\n    ").map(|(_, hint)| hint).unwrap_or_default();
            assert!(!hint.is_empty(), "{status} has no remedy: {said}");
            assert!(!said.contains("/model ") && !said.contains("k3y"), "{said}");
            // Neither a setting nor a variable is named that the key or the address does not come from.
            for other in [
                "provider.endpoints",
                "VENDOR_BASE_URL",
                "WORK_KEY",
                "VENDOR_KEY",
                "provider.api_keys",
            ] {
                let is_source =
                    |source: &Option<&str>| source.is_some_and(|source| source.contains(other));
                let is_missing = key.is_none() && other == "provider.api_keys";
                assert!(
                    !hint.contains(other) || is_source(key) || is_source(address) || is_missing,
                    "{status} names {other}: {hint}"
                );
            }
            page.push_str(&format!("{status} {said}\n"));
        }
        page.push('\n');
    }
    insta::assert_snapshot!(page);
}

#[tokio::test]
async fn wifi_login_page_in_place_of_the_model_list_is_reported() {
    for endpoint in &PROTOCOLS {
        let page = Reply::new(200, "text/html", "<!doctype html><title>Guest Wi-Fi</title>");
        let server = Server::start_with_replies([page]).unwrap();
        let provider =
            connect_provider(endpoint.profile(&server.url()), Http::new(HttpOptions::default()));
        let error = provider.list_models().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::WrongServer, "{}", endpoint.label);
        assert!(error.message.contains("Guest Wi-Fi"), "{}: {error}", endpoint.label);
        assert!(error.hint.unwrap_or_default().contains("login page"), "{}", endpoint.label);
    }
}

#[tokio::test]
async fn http_413_for_a_small_request_is_blamed_on_a_proxy() {
    for endpoint in &PROTOCOLS {
        let page = Reply::new(
            413,
            "text/html",
            "<html><title>413 Request Entity Too Large</title></html>",
        );
        let server = Server::start_with_replies([page]).unwrap();
        let error = failure(endpoint, endpoint.profile(&server.url())).await;
        assert_eq!(error.kind, ErrorKind::BadRequest, "{}", endpoint.label);
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains("a proxy") && hint.contains("raise that limit"), "{hint}");
    }
}
