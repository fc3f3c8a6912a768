//! Google's `streamGenerateContent`.
//!
//! Sources: the API reference, the guides on function calling and thought signatures, and the messages
//! of its errors.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    IssuedTokens,
    findings::{Findings, non_null_field},
};

const BODY: [&str; 7] = [
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
];
const GENERATION: [&str; 9] = [
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "stopSequences",
    "seed",
    "thinkingConfig",
    "responseMimeType",
    "responseJsonSchema",
];

/// What a part may be. Exactly one of them.
const KINDS: [&str; 4] = ["text", "inlineData", "functionCall", "functionResponse"];

/// What the guide allows in place of the signature of a call that Gemini has not made.
const STAND_INS: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// Longest name of a function.
const MAX_NAME_BYTES: usize = 64;

/// Checks one request; the model stands in `path`.
pub(super) fn check_request(
    path: &str,
    body: &Value,
    issued: &IssuedTokens,
    findings: &mut Findings,
) {
    findings.check_fields("body", body, &BODY);
    if let Some(config) = non_null_field(body, "generationConfig") {
        findings.check_fields("generationConfig", config, &GENERATION);
    }
    if let Some(system) = non_null_field(body, "systemInstruction") {
        for part in findings.require_list("systemInstruction", system, "parts") {
            findings.require_string("systemInstruction", part, "text");
        }
    }
    check_tools(body, findings);
    let contents = findings.require_list("body", body, "contents");
    for (nth, content) in contents.iter().enumerate() {
        self::check_content(&format!("contents[{nth}]"), content, issued, findings);
    }
    check_order(contents, findings);
    if path.contains("gemini-3") {
        check_turn_signatures(contents, findings);
    }
}

fn check_tools(body: &Value, findings: &mut Findings) {
    if non_null_field(body, "tools").is_none() {
        let chosen = non_null_field(body, "toolConfig").is_some();
        findings.add_unless(!chosen, "toolConfig", "there are no tools to choose from");
        return;
    }
    let mut names = Vec::new();
    for tool in findings.require_list("body", body, "tools") {
        findings.check_fields("tools", tool, &["functionDeclarations"]);
        for function in findings.require_list("tools", tool, "functionDeclarations") {
            let known = ["name", "description", "parameters", "parametersJsonSchema"];
            findings.check_fields("tools", function, &known);
            let name = function["name"].as_str().unwrap_or_default();
            findings.tool_name("tools", name, MAX_NAME_BYTES);
            findings.require_string("tools", function, "description");
            let schema = non_null_field(function, "parametersJsonSchema");
            findings.check_schema("tools", schema.unwrap_or(&function["parameters"]));
            names.push(name);
        }
    }
    findings.check_unique_names("tools", names);
}

fn check_content(at: &str, content: &Value, issued: &IssuedTokens, findings: &mut Findings) {
    findings.check_fields(at, content, &["role", "parts"]);
    let role = content["role"].as_str().unwrap_or_default();
    findings.add_unless(matches!(role, "user" | "model"), at, "the role must be `user` or `model`");
    for part in findings.require_list(at, content, "parts") {
        let known = [KINDS.as_slice(), &["thought", "thoughtSignature"]].concat();
        findings.check_fields(at, part, &known);
        let kinds: Vec<_> =
            KINDS.iter().filter(|kind| non_null_field(part, kind).is_some()).collect();
        let [kind] = kinds.as_slice() else {
            findings.add_violation(at, "a part must be exactly one thing");
            continue;
        };
        match **kind {
            "text" => check_text(at, part, issued, findings),
            "functionCall" => {
                findings.add_unless(role == "model", at, "only the model calls");
                check_call(at, &part["functionCall"], findings);
            }
            "functionResponse" => {
                findings.add_unless(role == "user", at, "only the user's side answers calls");
                check_response(at, &part["functionResponse"], findings);
            }
            _ => (),
        }
        check_signature(at, part, issued, findings);
    }
}

fn check_text(at: &str, part: &Value, issued: &IssuedTokens, findings: &mut Findings) {
    let text = part["text"].as_str().unwrap_or_default();
    let signed = non_null_field(part, "thoughtSignature").is_some();
    findings.add_unless(signed || !text.is_empty(), at, "a text is empty");
    if part["thought"] == true {
        findings.add_unless(issued.has_thought(text), at, "a thought that this model has not had");
    }
}

fn check_call(at: &str, call: &Value, findings: &mut Findings) {
    findings.check_fields(at, call, &["id", "name", "args"]);
    findings.tool_name(at, call["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
    findings.add_unless(call["args"].is_object(), at, "`args` must be an object");
}

fn check_response(at: &str, response: &Value, findings: &mut Findings) {
    findings.check_fields(at, response, &["id", "name", "response", "parts"]);
    findings.tool_name(at, response["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
    findings.add_unless(response["response"].is_object(), at, "`response` must be an object");
}

fn check_signature(at: &str, part: &Value, issued: &IssuedTokens, findings: &mut Findings) {
    let Some(signature) = non_null_field(part, "thoughtSignature") else { return };
    let signature = signature.as_str().unwrap_or_default();
    if STAND_INS.contains(&signature) {
        let call = non_null_field(part, "functionCall").is_some();
        findings.add_unless(call, at, "only a call may go with a stand-in for a signature");
        return;
    }
    findings.add_unless(STANDARD.decode(signature).is_ok(), at, "the signature is no base64");
    findings.add_unless(
        issued.has_token(signature),
        at,
        "a signature that this server has not made",
    );
}

/// A call's name and, where it has one, its id.
type CallName<'a> = (&'a str, Option<&'a str>);

fn named_parts<'a>(content: &'a Value, kind: &'a str) -> Vec<CallName<'a>> {
    let parts = content["parts"].as_array().into_iter().flatten();
    parts
        .filter_map(|part| non_null_field(part, kind))
        .map(|one| (one["name"].as_str().unwrap_or_default(), one["id"].as_str()))
        .collect()
}

/// Calls come right after the user's side, and all their answers, in their order, right after them.
fn check_order(contents: &[Value], findings: &mut Findings) {
    let first = contents.first().is_some_and(|content| content["role"] == "user");
    findings.add_unless(first, "contents", "the first one must be the user's");
    let last = contents.last().is_some_and(|content| content["role"] == "user");
    findings.add_unless(last, "contents", "the last one must be the user's");
    let nothing = Value::Null;
    let mut before = &nothing;
    for (nth, content) in contents.iter().enumerate() {
        let at = format!("contents[{nth}]");
        let calls = named_parts(content, "functionCall");
        let after_user = before["role"] == "user";
        findings.add_unless(
            calls.is_empty() || after_user,
            &at,
            "calls must come right after the user or an answer to calls",
        );
        if named_parts(before, "functionCall") != named_parts(content, "functionResponse") {
            findings.add_violation(&at, "the answers are not those to the calls right before them");
        }
        before = content;
    }
    let unanswered = named_parts(before, "functionCall");
    findings.add_unless(unanswered.is_empty(), "contents", "calls without answers");
}

/// In the turn that is going on, the first call of each answer is signed.
fn check_turn_signatures(contents: &[Value], findings: &mut Findings) {
    let asks = |content: &&Value| {
        content["role"] == "user" && named_parts(content, "functionResponse").is_empty()
    };
    let going = contents.iter().rev().take_while(|content| !asks(content));
    for content in going {
        let parts = content["parts"].as_array().into_iter().flatten();
        let first = parts.into_iter().find(|part| non_null_field(part, "functionCall").is_some());
        let signed = first.is_none_or(|part| non_null_field(part, "thoughtSignature").is_some());
        findings.add_unless(signed, "contents", "a call is missing its thought signature");
    }
}
