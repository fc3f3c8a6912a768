//! Google's `streamGenerateContent`.
//!
//! Sources: the API reference, the guides on function calling and thought signatures, and the messages
//! of its errors.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    Issued,
    findings::{Findings, given},
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
pub(super) fn check(path: &str, body: &Value, issued: &Issued, findings: &mut Findings) {
    findings.fields("body", body, &BODY);
    if let Some(config) = given(body, "generationConfig") {
        findings.fields("generationConfig", config, &GENERATION);
    }
    if let Some(system) = given(body, "systemInstruction") {
        for part in findings.list("systemInstruction", system, "parts") {
            findings.word("systemInstruction", part, "text");
        }
    }
    tools(body, findings);
    let contents = findings.list("body", body, "contents");
    for (nth, content) in contents.iter().enumerate() {
        self::content(&format!("contents[{nth}]"), content, issued, findings);
    }
    order(contents, findings);
    if path.contains("gemini-3") {
        signatures(contents, findings);
    }
}

fn tools(body: &Value, findings: &mut Findings) {
    if given(body, "tools").is_none() {
        let chosen = given(body, "toolConfig").is_some();
        findings.demand(!chosen, "toolConfig", "there are no tools to choose from");
        return;
    }
    let mut names = Vec::new();
    for tool in findings.list("body", body, "tools") {
        findings.fields("tools", tool, &["functionDeclarations"]);
        for function in findings.list("tools", tool, "functionDeclarations") {
            let known = ["name", "description", "parameters", "parametersJsonSchema"];
            findings.fields("tools", function, &known);
            let name = function["name"].as_str().unwrap_or_default();
            findings.tool_name("tools", name, MAX_NAME_BYTES);
            findings.word("tools", function, "description");
            let schema = given(function, "parametersJsonSchema");
            findings.schema("tools", schema.unwrap_or(&function["parameters"]));
            names.push(name);
        }
    }
    findings.distinct("tools", names);
}

fn content(at: &str, content: &Value, issued: &Issued, findings: &mut Findings) {
    findings.fields(at, content, &["role", "parts"]);
    let role = content["role"].as_str().unwrap_or_default();
    findings.demand(matches!(role, "user" | "model"), at, "the role must be `user` or `model`");
    for part in findings.list(at, content, "parts") {
        let known = [KINDS.as_slice(), &["thought", "thoughtSignature"]].concat();
        findings.fields(at, part, &known);
        let kinds: Vec<_> = KINDS.iter().filter(|kind| given(part, kind).is_some()).collect();
        let [kind] = kinds.as_slice() else {
            findings.note(at, "a part must be exactly one thing");
            continue;
        };
        match **kind {
            "text" => text(at, part, issued, findings),
            "functionCall" => {
                findings.demand(role == "model", at, "only the model calls");
                call(at, &part["functionCall"], findings);
            }
            "functionResponse" => {
                findings.demand(role == "user", at, "only the user's side answers calls");
                response(at, &part["functionResponse"], findings);
            }
            _ => (),
        }
        signature(at, part, issued, findings);
    }
}

fn text(at: &str, part: &Value, issued: &Issued, findings: &mut Findings) {
    let text = part["text"].as_str().unwrap_or_default();
    let signed = given(part, "thoughtSignature").is_some();
    findings.demand(signed || !text.is_empty(), at, "a text is empty");
    if part["thought"] == true {
        findings.demand(issued.thought(text), at, "a thought that this model has not had");
    }
}

fn call(at: &str, call: &Value, findings: &mut Findings) {
    findings.fields(at, call, &["id", "name", "args"]);
    findings.tool_name(at, call["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
    findings.demand(call["args"].is_object(), at, "`args` must be an object");
}

fn response(at: &str, response: &Value, findings: &mut Findings) {
    findings.fields(at, response, &["id", "name", "response", "parts"]);
    findings.tool_name(at, response["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
    findings.demand(response["response"].is_object(), at, "`response` must be an object");
}

fn signature(at: &str, part: &Value, issued: &Issued, findings: &mut Findings) {
    let Some(signature) = given(part, "thoughtSignature") else { return };
    let signature = signature.as_str().unwrap_or_default();
    if STAND_INS.contains(&signature) {
        let call = given(part, "functionCall").is_some();
        findings.demand(call, at, "only a call may go with a stand-in for a signature");
        return;
    }
    findings.demand(STANDARD.decode(signature).is_ok(), at, "the signature is no base64");
    findings.demand(issued.token(signature), at, "a signature that this server has not made");
}

/// A call's name and, where it has one, its id.
type Named<'a> = (&'a str, Option<&'a str>);

fn all<'a>(content: &'a Value, kind: &'a str) -> Vec<Named<'a>> {
    let parts = content["parts"].as_array().into_iter().flatten();
    parts
        .filter_map(|part| given(part, kind))
        .map(|one| (one["name"].as_str().unwrap_or_default(), one["id"].as_str()))
        .collect()
}

/// Calls come right after the user's side, and all their answers, in their order, right after them.
fn order(contents: &[Value], findings: &mut Findings) {
    let first = contents.first().is_some_and(|content| content["role"] == "user");
    findings.demand(first, "contents", "the first one must be the user's");
    let last = contents.last().is_some_and(|content| content["role"] == "user");
    findings.demand(last, "contents", "the last one must be the user's");
    let nothing = Value::Null;
    let mut before = &nothing;
    for (nth, content) in contents.iter().enumerate() {
        let at = format!("contents[{nth}]");
        let calls = all(content, "functionCall");
        let after_user = before["role"] == "user";
        findings.demand(
            calls.is_empty() || after_user,
            &at,
            "calls must come right after the user or an answer to calls",
        );
        if all(before, "functionCall") != all(content, "functionResponse") {
            findings.note(&at, "the answers are not those to the calls right before them");
        }
        before = content;
    }
    let unanswered = all(before, "functionCall");
    findings.demand(unanswered.is_empty(), "contents", "calls without answers");
}

/// In the turn that is going on, the first call of each answer is signed.
fn signatures(contents: &[Value], findings: &mut Findings) {
    let asks =
        |content: &&Value| content["role"] == "user" && all(content, "functionResponse").is_empty();
    let going = contents.iter().rev().take_while(|content| !asks(content));
    for content in going {
        let parts = content["parts"].as_array().into_iter().flatten();
        let first = parts.into_iter().find(|part| given(part, "functionCall").is_some());
        let signed = first.is_none_or(|part| given(part, "thoughtSignature").is_some());
        findings.demand(signed, "contents", "a call is missing its thought signature");
    }
}
