//! Tools on offer in the form that OpenAI invented, and calls in it.

use serde_json::Value;

use super::findings::{Findings, given, is_object};

/// Longest name of a tool.
const MAX_NAME_BYTES: usize = 64;

/// The tools, and the choice among them.
pub(super) fn check(body: &Value, choices: &[&str], findings: &mut Findings) {
    if given(body, "tools").is_none() {
        let chosen = given(body, "tool_choice").is_some();
        findings.demand(!chosen, "tool_choice", "there are no tools to choose from");
        return;
    }
    let mut names = Vec::new();
    for (nth, tool) in findings.list("body", body, "tools").iter().enumerate() {
        let at = format!("tools[{nth}]");
        findings.fields(&at, tool, &["type", "function"]);
        findings.demand(tool["type"] == "function", &at, "`type` must be `function`");
        let function = &tool["function"];
        findings.fields(&at, function, &["name", "description", "parameters", "strict"]);
        let name = function["name"].as_str().unwrap_or_default();
        findings.tool_name(&at, name, MAX_NAME_BYTES);
        findings.schema(&at, &function["parameters"]);
        names.push(name);
    }
    choice(body, choices, &names, findings);
    findings.distinct("tools", names);
}

fn choice(body: &Value, choices: &[&str], names: &[&str], findings: &mut Findings) {
    let legal = match given(body, "tool_choice") {
        None => true,
        Some(Value::String(word)) => choices.contains(&word.as_str()),
        Some(choice) => {
            let name = choice["function"]["name"].as_str();
            choice["type"] == "function" && name.is_some_and(|name| names.contains(&name))
        }
    };
    findings.demand(legal, "tool_choice", "must be a known word or a tool on offer");
}

/// One call of a message, whose id is judged by `legal_id`; gives the id.
pub(super) fn called<'a>(
    at: &str,
    call: &'a Value,
    legal_id: impl Fn(&str) -> bool,
    findings: &mut Findings,
) -> &'a str {
    findings.fields(at, call, &["id", "type", "function", "index"]);
    let id = findings.word(at, call, "id");
    findings.demand(legal_id(id), at, "the id of the call is not legal");
    findings.demand(call["type"] == "function", at, "`type` must be `function`");
    let function = &call["function"];
    findings.fields(at, function, &["name", "arguments"]);
    findings.tool_name(at, function["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
    let object = function["arguments"].as_str().is_some_and(is_object);
    findings.demand(object, at, "`arguments` must be the text of a JSON object");
    id
}
