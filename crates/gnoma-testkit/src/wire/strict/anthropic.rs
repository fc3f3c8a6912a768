//! Anthropic's Messages.
//!
//! Sources: the API reference, the guides on tool use, extended thinking and prompt caching, and the
//! messages of its errors.

use serde_json::Value;

use super::{
    IssuedTokens,
    findings::{Findings, non_null_field},
    pairing::Pairing,
};

const BODY: [&str; 14] = [
    "model",
    "max_tokens",
    "messages",
    "system",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "thinking",
    "output_config",
    "tools",
    "tool_choice",
];

/// Longest name of a tool.
const MAX_NAME_BYTES: usize = 128;

/// Marks of what to keep in the cache, in a whole request.
const MAX_CACHE_MARKS: usize = 4;

/// Fewest tokens of thinking that can be granted.
const MIN_BUDGET: u64 = 1024;

/// Checks one request to Anthropic.
pub(super) fn check_request(body: &Value, issued: &IssuedTokens, findings: &mut Findings) {
    findings.check_fields("body", body, &BODY);
    findings.require_string("body", body, "model");
    findings.add_unless(body["max_tokens"].as_u64() >= Some(1), "max_tokens", "is required");
    check_system(body, findings);
    check_tools(body, findings);
    check_thinking(body, findings);
    if cache_marks(body) > MAX_CACHE_MARKS {
        findings.add_violation("cache_control", "more than four marks");
    }
    let turns = group_turns(findings.require_list("body", body, "messages"), findings);
    for (nth, turn) in turns.iter().enumerate() {
        let at = format!("turn {nth} ({})", turn.role);
        check_blocks(&at, turn, issued, findings);
    }
    check_order(body, &turns, findings);
}

fn check_system(body: &Value, findings: &mut Findings) {
    match non_null_field(body, "system") {
        None => (),
        Some(Value::String(text)) => text_is_filled("system", text, findings),
        Some(_) => {
            for block in findings.require_list("body", body, "system") {
                findings.check_fields("system", block, &["type", "text", "cache_control"]);
                text_is_filled("system", block["text"].as_str().unwrap_or_default(), findings);
            }
        }
    }
}

fn text_is_filled(at: &str, text: &str, findings: &mut Findings) {
    findings.add_unless(!text.trim().is_empty(), at, "a text must hold more than white space");
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
        findings.check_fields(&at, tool, &["name", "description", "input_schema", "cache_control"]);
        let name = tool["name"].as_str().unwrap_or_default();
        findings.tool_name(&at, name, MAX_NAME_BYTES);
        findings.check_schema(&at, &tool["input_schema"]);
        names.push(name);
    }
    if let Some(choice) = non_null_field(body, "tool_choice") {
        let legal = match choice["type"].as_str() {
            Some("auto" | "any" | "none") => true,
            Some("tool") => choice["name"].as_str().is_some_and(|name| names.contains(&name)),
            _ => false,
        };
        findings.add_unless(legal, "tool_choice", "must be a known word or a tool on offer");
    }
    findings.check_unique_names("tools", names);
}

/// Checks that the request asks for nothing that may not be asked together with thinking.
fn check_thinking(body: &Value, findings: &mut Findings) {
    let thinking = &body["thinking"];
    let kind = thinking["type"].as_str().unwrap_or("disabled");
    if kind == "disabled" {
        return;
    }
    let at = "thinking";
    let forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    findings.add_unless(!forced, at, "cannot go with a call that must be made");
    let plain = non_null_field(body, "temperature").is_none_or(|temperature| temperature == 1);
    findings.add_unless(plain, at, "cannot go with a temperature other than 1");
    match kind {
        "adaptive" => findings.check_fields(at, thinking, &["type", "display"]),
        "enabled" => {
            findings.check_fields(at, thinking, &["type", "budget_tokens", "display"]);
            let budget = thinking["budget_tokens"].as_u64().unwrap_or_default();
            let fits = budget >= MIN_BUDGET && Some(budget) < body["max_tokens"].as_u64();
            findings.add_unless(fits, at, "the budget must be 1024 or more and below `max_tokens`");
        }
        other => findings.add_violation(at, format_args!("there is no kind `{other}`")),
    }
}

/// Counts the cache marks, wherever they stand.
fn cache_marks(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let below: usize = fields.values().map(cache_marks).sum();
            below + usize::from(fields.contains_key("cache_control"))
        }
        Value::Array(items) => items.iter().map(cache_marks).sum(),
        _ => 0,
    }
}

/// Messages of one role in a row, which the server puts together.
struct RoleRun<'a> {
    role: &'a str,
    blocks: Vec<&'a Value>,
}

impl RoleRun<'_> {
    fn has_block(&self, kind: &str) -> bool {
        self.blocks.iter().any(|block| block["type"] == kind)
    }
}

fn group_turns<'a>(messages: &'a [Value], findings: &mut Findings) -> Vec<RoleRun<'a>> {
    let mut turns: Vec<RoleRun<'a>> = Vec::new();
    for (nth, message) in messages.iter().enumerate() {
        let at = format!("messages[{nth}]");
        findings.check_fields(&at, message, &["role", "content"]);
        let role = message["role"].as_str().unwrap_or_default();
        findings.add_unless(matches!(role, "user" | "assistant"), &at, "there is no such role");
        if let Some(text) = message["content"].as_str() {
            text_is_filled(&at, text, findings);
        } else {
            findings.require_list(&at, message, "content");
        }
        let blocks = message["content"].as_array().into_iter().flatten();
        let calls = blocks.clone().map(|block| block["type"] == "tool_use");
        findings.add_unless(calls.is_sorted(), &at, "calls must be the last blocks of a message");
        let ends_thinking = blocks.clone().last().is_some_and(is_thinking);
        findings.add_unless(!ends_thinking, &at, "a message must not end with thinking");
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.blocks.extend(blocks),
            _ => turns.push(RoleRun { role, blocks: blocks.collect() }),
        }
    }
    turns
}

fn is_thinking(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn check_blocks(at: &str, turn: &RoleRun<'_>, issued: &IssuedTokens, findings: &mut Findings) {
    for block in &turn.blocks {
        let kind = block["type"].as_str().unwrap_or_default();
        match (turn.role, kind) {
            (_, "text") => {
                findings.check_fields(at, block, &["type", "text", "cache_control"]);
                text_is_filled(at, block["text"].as_str().unwrap_or_default(), findings);
            }
            ("user", "image") => {
                findings.check_fields(at, block, &["type", "source", "cache_control"]);
            }
            ("user", "tool_result") => tool_result(at, block, findings),
            ("assistant", "tool_use") => tool_use(at, block, findings),
            ("assistant", "thinking") => {
                findings.check_fields(at, block, &["type", "thinking", "signature"]);
                findings.add_unless(block["thinking"].is_string(), at, "thinking without a text");
                check_signature(at, &block["signature"], issued, findings);
            }
            ("assistant", "redacted_thinking") => {
                findings.check_fields(at, block, &["type", "data"]);
                check_signature(at, &block["data"], issued, findings);
            }
            (role, kind) => {
                findings.add_violation(at, format_args!("no block `{kind}` from `{role}`"));
            }
        }
    }
}

fn check_signature(at: &str, token: &Value, issued: &IssuedTokens, findings: &mut Findings) {
    let own = token.as_str().is_some_and(|token| issued.has_token(token));
    findings.add_unless(own, at, "thinking with a signature that this server has not made");
}

fn tool_use(at: &str, block: &Value, findings: &mut Findings) {
    findings.check_fields(at, block, &["type", "id", "name", "input", "cache_control"]);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let id = findings.require_string(at, block, "id");
    findings.add_unless(id.bytes().all(fits), at, "the id of the call is not legal");
    findings.tool_name(at, block["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
    findings.add_unless(block["input"].is_object(), at, "`input` must be an object");
}

fn tool_result(at: &str, block: &Value, findings: &mut Findings) {
    let known = ["type", "tool_use_id", "content", "is_error", "cache_control"];
    findings.check_fields(at, block, &known);
    for part in block["content"].as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("text") => {
                text_is_filled(at, part["text"].as_str().unwrap_or_default(), findings);
            }
            Some("image") => (),
            _ => findings.add_violation(at, "a result holds texts and pictures only"),
        }
    }
}

/// Checks the rules that depend on more than one message.
fn check_order(body: &Value, turns: &[RoleRun<'_>], findings: &mut Findings) {
    let first = turns.first().map(|turn| turn.role);
    findings.add_unless(first == Some("user"), "messages", "the first one must be the user's");
    let last = turns.last().map(|turn| turn.role);
    findings.add_unless(last == Some("user"), "messages", "the last one must be the user's");
    let called =
        turns.iter().any(|turn| turn.has_block("tool_use") || turn.has_block("tool_result"));
    let offered = non_null_field(body, "tools").is_some();
    findings.add_unless(offered || !called, "tools", "a conversation with calls needs its tools");
    check_pairing(turns, findings);
    if body["thinking"]["type"] == "enabled" {
        opens_with_thinking(turns, findings);
    }
}

fn check_pairing(turns: &[RoleRun<'_>], findings: &mut Findings) {
    let mut pairing = Pairing::default();
    for (nth, turn) in turns.iter().enumerate() {
        let at = format!("turn {nth} ({})", turn.role);
        let mut words = false;
        for block in &turn.blocks {
            match block["type"].as_str() {
                Some("tool_result") => {
                    findings.add_unless(!words, &at, "results must come before other content");
                    let id = findings.require_string(&at, block, "tool_use_id");
                    pairing.close_call(&at, id, findings);
                }
                _ => words = true,
            }
        }
        pairing.require_none_open(&at, findings);
        for block in turn.blocks.iter().filter(|block| block["type"] == "tool_use") {
            pairing.open_call(&at, block["id"].as_str().unwrap_or_default(), findings);
        }
    }
    pairing.require_none_open("messages", findings);
}

/// With a budget for thinking, an answer that is still being made (results were the last thing it
/// got) must open with thinking.
fn opens_with_thinking(turns: &[RoleRun<'_>], findings: &mut Findings) {
    let asks = |turn: &&RoleRun<'_>| turn.role == "user" && !turn.has_block("tool_result");
    let going: Vec<_> = turns.iter().rev().take_while(|turn| !asks(turn)).collect();
    let Some(opening) = going.iter().rev().find(|turn| turn.role == "assistant") else {
        return;
    };
    let thinks = opening.blocks.first().is_some_and(|block| is_thinking(block));
    findings.add_unless(
        thinks,
        "thinking",
        "the answer that is going on does not open with thinking",
    );
}
