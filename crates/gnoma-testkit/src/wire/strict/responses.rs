//! OpenAI's Responses, used without anything being stored.
//!
//! Sources: the API reference, the guide on reasoning, and the messages of its errors.

use serde_json::Value;

use super::{
    Issued,
    findings::{Findings, given},
    pairing::Pairing,
};

const BODY: [&str; 16] = [
    "model",
    "input",
    "instructions",
    "stream",
    "store",
    "include",
    "reasoning",
    "text",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "temperature",
    "top_p",
    "prompt_cache_key",
    "service_tier",
];

/// Longest id of a call.
const MAX_ID_BYTES: usize = 64;

/// Longest name of a tool.
const MAX_NAME_BYTES: usize = 64;

/// Fewest tokens of an answer that may be asked for.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// Checks one request to OpenAI's Responses.
pub(super) fn check(body: &Value, issued: &Issued, findings: &mut Findings) {
    findings.fields("body", body, &BODY);
    findings.word("body", body, "model");
    findings.demand(body["store"] == false, "store", "must be false: nothing is kept there");
    if let Some(limit) = given(body, "max_output_tokens") {
        let fits = limit.as_u64() >= Some(MIN_OUTPUT_TOKENS);
        findings.demand(fits, "max_output_tokens", "must be 16 or more");
    }
    tools(body, findings);
    let input = findings.list("body", body, "input");
    let mut pairing = Pairing::default();
    for (nth, item) in input.iter().enumerate() {
        let at = format!("input[{nth}]");
        let next = input.get(nth + 1);
        self::item(&at, item, next, issued, &mut pairing, findings);
    }
    pairing.close("input", findings);
}

fn tools(body: &Value, findings: &mut Findings) {
    if given(body, "tools").is_none() {
        let chosen = given(body, "tool_choice").is_some();
        findings.demand(!chosen, "tool_choice", "there are no tools to choose from");
        return;
    }
    let mut names = Vec::new();
    for (nth, tool) in findings.list("body", body, "tools").iter().enumerate() {
        let at = format!("tools[{nth}]");
        findings.fields(&at, tool, &["type", "name", "description", "parameters", "strict"]);
        findings.demand(tool["type"] == "function", &at, "`type` must be `function`");
        let name = tool["name"].as_str().unwrap_or_default();
        findings.tool_name(&at, name, MAX_NAME_BYTES);
        findings.schema(&at, &tool["parameters"]);
        names.push(name);
    }
    let legal = match given(body, "tool_choice") {
        None => true,
        Some(Value::String(word)) => matches!(word.as_str(), "auto" | "none" | "required"),
        Some(choice) => choice["name"].as_str().is_some_and(|name| names.contains(&name)),
    };
    findings.demand(legal, "tool_choice", "must be a known word or a tool on offer");
    findings.distinct("tools", names);
}

/// One item; `next` is the one behind it.
fn item(
    at: &str,
    item: &Value,
    next: Option<&Value>,
    issued: &Issued,
    pairing: &mut Pairing,
    findings: &mut Findings,
) {
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            // Results are found by their ids: what the model itself said may stand between.
            if item["role"] != "assistant" {
                pairing.close(at, findings);
            }
            message(at, item, findings);
        }
        "reasoning" => reasoning(at, item, next, issued, findings),
        "function_call" => {
            findings.fields(at, item, &["type", "call_id", "name", "arguments", "id", "status"]);
            let id = call_id(at, item, findings);
            findings.tool_name(at, item["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
            findings.demand(item["arguments"].is_string(), at, "`arguments` must be a text");
            if let Some(id) = given(item, "id") {
                let own = id.as_str().is_some_and(|id| id.starts_with("fc_"));
                findings.demand(own, at, "the item's id must begin with `fc_`");
            }
            pairing.call(at, id, findings);
        }
        "function_call_output" => {
            findings.fields(at, item, &["type", "call_id", "output", "id", "status"]);
            match &item["output"] {
                Value::String(_) => (),
                Value::Array(parts) => self::parts(at, parts, &INPUT_PARTS, findings),
                _ => findings.note(at, "`output` must be a text or a list of parts"),
            }
            let id = call_id(at, item, findings);
            pairing.result(at, id, findings);
        }
        other => findings.note(at, format_args!("there is no item `{other}`")),
    }
}

fn call_id<'a>(at: &str, item: &'a Value, findings: &mut Findings) -> &'a str {
    let id = findings.word(at, item, "call_id");
    findings.demand(id.len() <= MAX_ID_BYTES, at, "the id of the call is longer than 64 bytes");
    id
}

const INPUT_PARTS: [&str; 2] = ["input_text", "input_image"];
const OUTPUT_PARTS: [&str; 2] = ["output_text", "refusal"];

fn message(at: &str, item: &Value, findings: &mut Findings) {
    let kinds = match item["role"].as_str().unwrap_or_default() {
        "user" | "system" | "developer" => {
            findings.fields(at, item, &["type", "role", "content"]);
            INPUT_PARTS
        }
        "assistant" => {
            findings.fields(at, item, &["type", "role", "content", "id", "status", "phase"]);
            OUTPUT_PARTS
        }
        other => {
            findings.note(at, format_args!("there is no role `{other}`"));
            return;
        }
    };
    match &item["content"] {
        Value::String(text) => findings.demand(!text.is_empty(), at, "the content is empty"),
        Value::Array(parts) if !parts.is_empty() => self::parts(at, parts, &kinds, findings),
        _ => findings.note(at, "the content must be a text or a list of parts"),
    }
}

fn parts(at: &str, parts: &[Value], kinds: &[&str], findings: &mut Findings) {
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        if !kinds.contains(&kind) {
            findings.note(at, format_args!("there is no part `{kind}` in this place"));
        } else if kind.ends_with("_text") {
            findings.word(at, part, "text");
        }
    }
}

/// Reasoning is known by its token, and stands before what it led to.
fn reasoning(
    at: &str,
    item: &Value,
    next: Option<&Value>,
    issued: &Issued,
    findings: &mut Findings,
) {
    findings.fields(at, item, &["type", "id", "summary", "content", "encrypted_content", "status"]);
    findings.demand(item["summary"].is_array(), at, "reasoning needs a list of summaries");
    let own = item["encrypted_content"].as_str().is_some_and(|token| issued.token(token));
    findings.demand(own, at, "reasoning that this server has not encrypted");
    let led_to = next.is_some_and(|next| match next["type"].as_str().unwrap_or("message") {
        "message" => next["role"] == "assistant",
        "function_call" | "reasoning" => true,
        _ => false,
    });
    findings.demand(led_to, at, "reasoning without the item that follows from it");
}
