//! Ollama's own chat.
//!
//! Source: Ollama's `docs/api.md` and its Go types. The server itself reads over much; what it would
//! read over silently counts as wrong here.

use serde_json::Value;

use super::{
    Issued,
    findings::{Findings, given},
    pairing::Pairing,
    tools,
};

const BODY: [&str; 8] =
    ["model", "messages", "stream", "think", "options", "tools", "format", "keep_alive"];
const OPTIONS: [&str; 5] = ["num_ctx", "num_predict", "temperature", "top_p", "seed"];

/// Longest name of a tool.
const MAX_NAME_BYTES: usize = 64;

/// Checks one request to Ollama.
pub(super) fn check(body: &Value, issued: &Issued, findings: &mut Findings) {
    findings.fields("body", body, &BODY);
    findings.word("body", body, "model");
    if let Some(options) = given(body, "options") {
        findings.fields("options", options, &OPTIONS);
    }
    tools::check(body, &[], findings);
    let mut pairing = Pairing::default();
    let messages = findings.list("body", body, "messages");
    for (nth, message) in messages.iter().enumerate() {
        let at = format!("messages[{nth}]");
        let role = message["role"].as_str().unwrap_or_default();
        findings.demand(message["content"].is_string(), &at, "`content` must be a text");
        if role != "tool" {
            pairing.close(&at, findings);
        }
        match role {
            "system" => {
                findings.fields(&at, message, &["role", "content"]);
                findings.demand(nth == 0, &at, "the system's words must come first");
            }
            "user" => {
                findings.fields(&at, message, &["role", "content", "images"]);
                let shows = message["content"] != "" || given(message, "images").is_some();
                findings.demand(shows, &at, "the message is empty");
            }
            "assistant" => answer(&at, message, issued, &mut pairing, findings),
            "tool" => {
                let known = ["role", "content", "tool_name", "tool_call_id"];
                findings.fields(&at, message, &known);
                findings.word(&at, message, "tool_name");
                let id = findings.word(&at, message, "tool_call_id");
                pairing.result(&at, id, findings);
            }
            other => findings.note(&at, format_args!("there is no role `{other}`")),
        }
    }
    pairing.close("messages", findings);
    let last = messages.last().map(|message| &message["role"]);
    let open = last.is_some_and(|role| role == "user" || role == "tool");
    findings.demand(open, "messages", "the last one must be a user's or a tool's");
}

fn answer(
    at: &str,
    message: &Value,
    issued: &Issued,
    pairing: &mut Pairing,
    findings: &mut Findings,
) {
    findings.fields(at, message, &["role", "content", "thinking", "tool_calls"]);
    if let Some(thinking) = given(message, "thinking") {
        let own = thinking.as_str().is_some_and(|text| issued.thought(text));
        findings.demand(own, at, "thinking that this server's model has not thought");
    }
    let calls = given(message, "tool_calls").and_then(Value::as_array);
    let says = message["content"] != "" || calls.is_some_and(|calls| !calls.is_empty());
    findings.demand(says, at, "an answer must have content or calls, and has neither");
    for call in calls.into_iter().flatten() {
        findings.fields(at, call, &["id", "function"]);
        let function = &call["function"];
        findings.fields(at, function, &["name", "arguments", "index"]);
        findings.tool_name(at, function["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
        findings.demand(function["arguments"].is_object(), at, "`arguments` must be an object");
        let id = findings.word(at, call, "id");
        pairing.call(at, id, findings);
    }
}
