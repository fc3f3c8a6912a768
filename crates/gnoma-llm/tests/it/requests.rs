//! The bodies that are sent, as snapshots, and the laws they keep. After a wanted change,
//! `INSTA_UPDATE=always` writes the snapshots anew; the difference is then read like code.
//!
//! With `GNOMA_REQUESTS_DIR` set, each body is written to that folder as well, where
//! `.ci/validate-requests` lets the vendors' own types judge it.

use std::{fs, path::Path};

use gnoma_core::ModelRequest;
use gnoma_llm::internals;
use serde_json::Value;

use crate::{
    endpoints::{COMPATIBLE, Endpoint, ITEM, PROTOCOLS, THOUGHT, TOKEN},
    histories,
};

const FOLDER: &str = "GNOMA_REQUESTS_DIR";

/// Where compatible servers differ: all that they share is what `openai-chat` shows.
const DIFFERENCES: [&str; 8] = [
    "text",
    "tools_required",
    "own_thinking",
    "foreign_thinking",
    "limits",
    "effort_none",
    "schema_with_tools",
    "schema_now",
];

#[test]
fn mistral() {
    snapshots_of("mistral");
}

#[test]
fn anthropic() {
    snapshots_of("anthropic");
}

#[test]
fn openai_chat() {
    snapshots_of("openai-chat");
}

#[test]
fn openai_responses() {
    snapshots_of("openai-responses");
}

#[test]
fn google() {
    snapshots_of("google");
}

#[test]
fn ollama() {
    snapshots_of("ollama");
}

#[test]
fn compatible() {
    for endpoint in &COMPATIBLE {
        for (case, request) in histories::all(endpoint) {
            if DIFFERENCES.contains(&case) {
                snapshot(endpoint, case, &request);
            }
        }
    }
}

/// Every call is answered once, under the id and in the order it was made in.
#[test]
fn encoded_tool_results_have_the_ids_of_their_calls() {
    each_body(|endpoint, case, body| {
        let (calls, results) = (ids(body, call_of), ids(body, result_of));
        assert_eq!(calls, results, "{} {case}", endpoint.label);
    });
}

/// An id that a provider would refuse never leaves.
#[test]
fn encoded_tool_call_ids_are_valid_for_the_provider() {
    each_body(|endpoint, case, body| {
        for id in ids(body, call_of) {
            assert!(is_legal(endpoint, &id), "{} {case}: `{id}`", endpoint.label);
        }
    });
}

/// Neither words nor tokens of another model's thinking are sent, to nobody.
#[test]
fn thinking_of_another_model_is_never_sent() {
    each_body(|endpoint, case, body| {
        if !matches!(case, "foreign_thinking" | "only_thinking") {
            return;
        }
        let text = body.to_string();
        for secret in [THOUGHT, TOKEN, ITEM] {
            assert!(!text.contains(secret), "{} {case}: {secret} in {text}", endpoint.label);
        }
    });
}

/// Schemas and arguments arrive as they were written, down to the spelling of a number.
#[test]
fn tool_schemas_and_arguments_are_sent_verbatim() {
    for endpoint in every() {
        let request = case(endpoint, "call");
        let text = String::from_utf8(encode(endpoint, &request)).unwrap();
        let plain = text.replace('\\', "");
        assert!(
            plain.contains(r#"{"path": "src/main.rs", "limit": 1.0}"#),
            "{}: {text}",
            endpoint.label
        );
        let schema = request.tools[1].parameters.get();
        assert!(plain.contains(schema), "{}: {text}", endpoint.label);
    }
}

fn every() -> impl Iterator<Item = &'static Endpoint> {
    const ALL: [&[Endpoint]; 2] = [&PROTOCOLS, &COMPATIBLE];
    ALL.into_iter().flatten()
}

fn each_body(law: impl Fn(&Endpoint, &str, &Value)) {
    for endpoint in every() {
        for (case, request) in histories::all(endpoint) {
            let body = serde_json::from_slice(&encode(endpoint, &request)).unwrap();
            law(endpoint, case, &body);
        }
    }
}

fn case(endpoint: &Endpoint, name: &str) -> ModelRequest {
    let mut all = histories::all(endpoint).into_iter();
    all.find(|(case, _)| *case == name).unwrap().1
}

fn encode(endpoint: &Endpoint, request: &ModelRequest) -> Vec<u8> {
    internals::encode_request(endpoint.profile("http://localhost"), request)
}

fn snapshots_of(label: &str) {
    let endpoint = PROTOCOLS.iter().find(|endpoint| endpoint.label == label).unwrap();
    for (case, request) in histories::all(endpoint) {
        snapshot(endpoint, case, &request);
    }
}

fn snapshot(endpoint: &Endpoint, case: &str, request: &ModelRequest) {
    let bytes = encode(endpoint, request);
    hand_over(endpoint.label, case, &bytes);
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    insta::with_settings!({
        snapshot_path => format!("snapshots/{}", endpoint.label),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(case, serde_json::to_string_pretty(&body).unwrap());
    });
}

/// Writes a body to where it will be validated, if anybody wants to.
#[expect(
    clippy::disallowed_methods,
    reason = "the folder is an input of this test target and of nothing else"
)]
fn hand_over(label: &str, case: &str, body: &[u8]) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let path = Path::new(&folder).join(format!("{label}--{case}.json"));
        fs::write(&path, body).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The ids that `of` finds in the body's objects, in order.
fn ids(body: &Value, of: fn(&Value) -> Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    collect(body, of, &mut found);
    found
}

fn collect(value: &Value, of: fn(&Value) -> Option<&Value>, found: &mut Vec<String>) {
    found.extend(of(value).and_then(Value::as_str).map(str::to_owned));
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, of, found)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, of, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

/// The id of the call that `value` is, on any wire; Google pairs by name.
fn call_of(value: &Value) -> Option<&Value> {
    match value.get("type").and_then(Value::as_str) {
        Some("tool_use") => return value.get("id"),
        Some("function_call") => return value.get("call_id"),
        _ => (),
    }
    let arguments = value.get("function").and_then(|made| made.get("arguments"));
    if arguments.is_some() {
        return value.get("id");
    }
    let called = value.get("functionCall")?;
    called.get("id").or_else(|| called.get("name"))
}

/// The id of the call that `value` answers, on any wire.
fn result_of(value: &Value) -> Option<&Value> {
    if value.get("type").and_then(Value::as_str) == Some("function_call_output") {
        return value.get("call_id");
    }
    let answer = value.get("functionResponse");
    value
        .get("tool_use_id")
        .or_else(|| value.get("tool_call_id"))
        .or_else(|| answer?.get("id"))
        .or_else(|| answer?.get("name"))
}

/// Whether the endpoint takes the id. Sources: Anthropic's and Mistral's refusals
/// (`^[a-zA-Z0-9_-]+$`; nine letters or digits), OpenAI's limits of 40 bytes on chat completions and
/// 64 on Responses.
fn is_legal(endpoint: &Endpoint, id: &str) -> bool {
    let all = |fits: fn(&u8) -> bool| !id.is_empty() && id.bytes().all(|byte| fits(&byte));
    match endpoint.label {
        "anthropic" => all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')),
        "mistral" => id.len() == 9 && all(u8::is_ascii_alphanumeric),
        "openai-chat" | "azure" => id.len() <= 40 && !id.is_empty(),
        "openai-responses" => id.len() <= 64 && !id.is_empty(),
        _ => !id.is_empty(),
    }
}
