//! Ollama's own chat.
//!
//! Source: Ollama's `docs/api.md` and its Go types. The server itself reads over much; what it would
//! read over silently counts as wrong here.

use serde_json::Value;

use super::{
    IssuedTokens,
    findings::{Findings, non_null_field},
    pairing::Pairing,
    tools,
};

const BODY: [&str; 8] =
    ["model", "messages", "stream", "think", "options", "tools", "format", "keep_alive"];
const OPTIONS: [&str; 5] = ["num_ctx", "num_predict", "temperature", "top_p", "seed"];

/// Longest name of a tool.
const MAX_NAME_BYTES: usize = 64;

/// Checks one request to Ollama.
pub(super) fn check_request(body: &Value, issued: &IssuedTokens, findings: &mut Findings) {
    findings.check_fields("body", body, &BODY);
    findings.require_string("body", body, "model");
    if let Some(options) = non_null_field(body, "options") {
        findings.check_fields("options", options, &OPTIONS);
    }
    tools::check_tools(body, &[], findings);
    let mut pairing = Pairing::default();
    let messages = findings.require_list("body", body, "messages");
    for (nth, message) in messages.iter().enumerate() {
        let at = format!("messages[{nth}]");
        let role = message["role"].as_str().unwrap_or_default();
        findings.add_unless(message["content"].is_string(), &at, "`content` must be a text");
        if role != "tool" {
            pairing.require_none_open(&at, findings);
        }
        match role {
            "system" => {
                findings.check_fields(&at, message, &["role", "content"]);
                findings.add_unless(nth == 0, &at, "the system's words must come first");
            }
            "user" => {
                findings.check_fields(&at, message, &["role", "content", "images"]);
                let shows = message["content"] != "" || non_null_field(message, "images").is_some();
                findings.add_unless(shows, &at, "the message is empty");
            }
            "assistant" => check_answer(&at, message, issued, &mut pairing, findings),
            "tool" => {
                let known = ["role", "content", "tool_name", "tool_call_id"];
                findings.check_fields(&at, message, &known);
                findings.require_string(&at, message, "tool_name");
                let id = findings.require_string(&at, message, "tool_call_id");
                pairing.close_call(&at, id, findings);
            }
            other => findings.add_violation(&at, format_args!("there is no role `{other}`")),
        }
    }
    pairing.require_none_open("messages", findings);
    let last = messages.last().map(|message| &message["role"]);
    let open = last.is_some_and(|role| role == "user" || role == "tool");
    findings.add_unless(open, "messages", "the last one must be a user's or a tool's");
}

fn check_answer(
    at: &str,
    message: &Value,
    issued: &IssuedTokens,
    pairing: &mut Pairing,
    findings: &mut Findings,
) {
    findings.check_fields(at, message, &["role", "content", "thinking", "tool_calls"]);
    if let Some(thinking) = non_null_field(message, "thinking") {
        let own = thinking.as_str().is_some_and(|text| issued.has_thought(text));
        findings.add_unless(own, at, "thinking that this server's model has not thought");
    }
    let calls = non_null_field(message, "tool_calls").and_then(Value::as_array);
    let says = message["content"] != "" || calls.is_some_and(|calls| !calls.is_empty());
    findings.add_unless(says, at, "an answer must have content or calls, and has neither");
    for call in calls.into_iter().flatten() {
        findings.check_fields(at, call, &["id", "function"]);
        let function = &call["function"];
        findings.check_fields(at, function, &["name", "arguments", "index"]);
        findings.tool_name(at, function["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
        findings.add_unless(function["arguments"].is_object(), at, "`arguments` must be an object");
        let id = findings.require_string(at, call, "id");
        pairing.open_call(at, id, findings);
    }
}
