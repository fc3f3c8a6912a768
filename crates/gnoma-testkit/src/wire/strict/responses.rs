//! OpenAI's Responses, used without anything being stored.
//!
//! Sources: the API reference, the guide on reasoning, and the messages of its errors.

use serde_json::Value;

use super::{
    IssuedTokens,
    findings::{Findings, non_null_field},
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
pub(super) fn check_request(body: &Value, issued: &IssuedTokens, findings: &mut Findings) {
    findings.check_fields("body", body, &BODY);
    findings.require_string("body", body, "model");
    findings.add_unless(body["store"] == false, "store", "must be false: nothing is kept there");
    if let Some(limit) = non_null_field(body, "max_output_tokens") {
        let fits = limit.as_u64() >= Some(MIN_OUTPUT_TOKENS);
        findings.add_unless(fits, "max_output_tokens", "must be 16 or more");
    }
    check_tools(body, findings);
    let input = findings.require_list("body", body, "input");
    let mut pairing = Pairing::default();
    for (nth, item) in input.iter().enumerate() {
        let at = format!("input[{nth}]");
        let next = input.get(nth + 1);
        self::check_item(&at, item, next, issued, &mut pairing, findings);
    }
    pairing.require_none_open("input", findings);
}

fn check_tools(body: &Value, findings: &mut Findings) {
    if non_null_field(body, "tools").is_none() {
        let chosen = non_null_field(body, "tool_choice").is_some();
        findings.add_unless(!chosen, "tool_choice", "there are no tools to choose from");
        return;
    }
    let mut names = Vec::new();
    for (nth, tool) in findings.require_list("body", body, "tools").iter().enumerate() {
        let at = format!("tools[{nth}]");
        findings.check_fields(&at, tool, &["type", "name", "description", "parameters", "strict"]);
        findings.add_unless(tool["type"] == "function", &at, "`type` must be `function`");
        let name = tool["name"].as_str().unwrap_or_default();
        findings.tool_name(&at, name, MAX_NAME_BYTES);
        findings.check_schema(&at, &tool["parameters"]);
        names.push(name);
    }
    let legal = match non_null_field(body, "tool_choice") {
        None => true,
        Some(Value::String(word)) => matches!(word.as_str(), "auto" | "none" | "required"),
        Some(choice) => choice["name"].as_str().is_some_and(|name| names.contains(&name)),
    };
    findings.add_unless(legal, "tool_choice", "must be a known word or a tool on offer");
    findings.check_unique_names("tools", names);
}

/// One item; `next` is the one behind it.
fn check_item(
    at: &str,
    item: &Value,
    next: Option<&Value>,
    issued: &IssuedTokens,
    pairing: &mut Pairing,
    findings: &mut Findings,
) {
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            // Results are found by their ids: what the model itself said may stand between.
            if item["role"] != "assistant" {
                pairing.require_none_open(at, findings);
            }
            check_message(at, item, findings);
        }
        "reasoning" => check_reasoning(at, item, next, issued, findings),
        "function_call" => {
            findings.check_fields(
                at,
                item,
                &["type", "call_id", "name", "arguments", "id", "status"],
            );
            let id = call_id(at, item, findings);
            findings.tool_name(at, item["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
            findings.add_unless(item["arguments"].is_string(), at, "`arguments` must be a text");
            if let Some(id) = non_null_field(item, "id") {
                let own = id.as_str().is_some_and(|id| id.starts_with("fc_"));
                findings.add_unless(own, at, "the item's id must begin with `fc_`");
            }
            pairing.open_call(at, id, findings);
        }
        "function_call_output" => {
            findings.check_fields(at, item, &["type", "call_id", "output", "id", "status"]);
            match &item["output"] {
                Value::String(_) => (),
                Value::Array(parts) => self::check_parts(at, parts, &INPUT_PARTS, findings),
                _ => findings.add_violation(at, "`output` must be a text or a list of parts"),
            }
            let id = call_id(at, item, findings);
            pairing.close_call(at, id, findings);
        }
        other => findings.add_violation(at, format_args!("there is no item `{other}`")),
    }
}

fn call_id<'a>(at: &str, item: &'a Value, findings: &mut Findings) -> &'a str {
    let id = findings.require_string(at, item, "call_id");
    findings.add_unless(id.len() <= MAX_ID_BYTES, at, "the id of the call is longer than 64 bytes");
    id
}

const INPUT_PARTS: [&str; 2] = ["input_text", "input_image"];
const OUTPUT_PARTS: [&str; 2] = ["output_text", "refusal"];

fn check_message(at: &str, item: &Value, findings: &mut Findings) {
    let kinds = match item["role"].as_str().unwrap_or_default() {
        "user" | "system" | "developer" => {
            findings.check_fields(at, item, &["type", "role", "content"]);
            INPUT_PARTS
        }
        "assistant" => {
            findings.check_fields(at, item, &["type", "role", "content", "id", "status", "phase"]);
            OUTPUT_PARTS
        }
        other => {
            findings.add_violation(at, format_args!("there is no role `{other}`"));
            return;
        }
    };
    match &item["content"] {
        Value::String(text) => findings.add_unless(!text.is_empty(), at, "the content is empty"),
        Value::Array(parts) if !parts.is_empty() => self::check_parts(at, parts, &kinds, findings),
        _ => findings.add_violation(at, "the content must be a text or a list of parts"),
    }
}

fn check_parts(at: &str, parts: &[Value], kinds: &[&str], findings: &mut Findings) {
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        if !kinds.contains(&kind) {
            findings.add_violation(at, format_args!("there is no part `{kind}` in this place"));
        } else if kind.ends_with("_text") {
            findings.require_string(at, part, "text");
        }
    }
}

/// Reasoning is known by its token, and stands before what it led to.
fn check_reasoning(
    at: &str,
    item: &Value,
    next: Option<&Value>,
    issued: &IssuedTokens,
    findings: &mut Findings,
) {
    findings.check_fields(
        at,
        item,
        &["type", "id", "summary", "content", "encrypted_content", "status"],
    );
    findings.add_unless(item["summary"].is_array(), at, "reasoning needs a list of summaries");
    let own = item["encrypted_content"].as_str().is_some_and(|token| issued.has_token(token));
    findings.add_unless(own, at, "reasoning that this server has not encrypted");
    let led_to = next.is_some_and(|next| match next["type"].as_str().unwrap_or("message") {
        "message" => next["role"] == "assistant",
        "function_call" | "reasoning" => true,
        _ => false,
    });
    findings.add_unless(led_to, at, "reasoning without the item that follows from it");
}
