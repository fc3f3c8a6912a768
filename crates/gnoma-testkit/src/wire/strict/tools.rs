//! Tools on offer in the form that OpenAI invented, and calls in it.

use serde_json::Value;

use super::findings::{Findings, is_object, non_null_field};

/// Longest name of a tool.
const MAX_NAME_BYTES: usize = 64;

/// The tools, and the choice among them.
pub(super) fn check_tools(body: &Value, choices: &[&str], findings: &mut Findings) {
    if non_null_field(body, "tools").is_none() {
        let chosen = non_null_field(body, "tool_choice").is_some();
        findings.add_unless(!chosen, "tool_choice", "there are no tools to choose from");
        return;
    }
    let mut names = Vec::new();
    for (nth, tool) in findings.require_list("body", body, "tools").iter().enumerate() {
        let at = format!("tools[{nth}]");
        findings.check_fields(&at, tool, &["type", "function"]);
        findings.add_unless(tool["type"] == "function", &at, "`type` must be `function`");
        let function = &tool["function"];
        findings.check_fields(&at, function, &["name", "description", "parameters", "strict"]);
        let name = function["name"].as_str().unwrap_or_default();
        findings.tool_name(&at, name, MAX_NAME_BYTES);
        findings.check_schema(&at, &function["parameters"]);
        names.push(name);
    }
    check_choice(body, choices, &names, findings);
    findings.check_unique_names("tools", names);
}

fn check_choice(body: &Value, choices: &[&str], names: &[&str], findings: &mut Findings) {
    let legal = match non_null_field(body, "tool_choice") {
        None => true,
        Some(Value::String(word)) => choices.contains(&word.as_str()),
        Some(choice) => {
            let name = choice["function"]["name"].as_str();
            choice["type"] == "function" && name.is_some_and(|name| names.contains(&name))
        }
    };
    findings.add_unless(legal, "tool_choice", "must be a known word or a tool on offer");
}

/// One call of a message, whose id is judged by `legal_id`; gives the id.
pub(super) fn check_call<'a>(
    at: &str,
    call: &'a Value,
    legal_id: impl Fn(&str) -> bool,
    findings: &mut Findings,
) -> &'a str {
    findings.check_fields(at, call, &["id", "type", "function", "index"]);
    let id = findings.require_string(at, call, "id");
    findings.add_unless(legal_id(id), at, "the id of the call is not legal");
    findings.add_unless(call["type"] == "function", at, "`type` must be `function`");
    let function = &call["function"];
    findings.check_fields(at, function, &["name", "arguments"]);
    findings.tool_name(at, function["name"].as_str().unwrap_or_default(), MAX_NAME_BYTES);
    let object = function["arguments"].as_str().is_some_and(is_object);
    findings.add_unless(object, at, "`arguments` must be the text of a JSON object");
    id
}
