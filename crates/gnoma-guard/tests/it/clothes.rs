//! A secret that a session knows leaves in no clothes and by no door.

use std::sync::Arc;

use gnoma_core::{
    ErrorKind, ModelRequest, ProviderError, RawJson, StopReason, ToolCall, ToolChoice, ToolOutcome,
    message::{CallId, Content, Message, ToolResult},
    tool::{CommandReport, ToolOutput},
};
use gnoma_guard::firewall::{Firewall, FirewallOptions, Policy, ProviderFacts};
use gnoma_secrets::{Scanner, ScannerOptions};
use gnoma_testkit::value_encodings::{encoded_variants, longest_readable_part};

/// So many letters of the secret may be left: no more than chance would show.
const MAX_READABLE: usize = 4;

fn token() -> String {
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()
}

fn firewall() -> Firewall {
    Firewall::new(FirewallOptions {
        scanner: Scanner::new(ScannerOptions::default()).unwrap(),
        policy: Policy::default(),
        allowed: Vec::new(),
        first_placeholder: 604_117_300,
    })
}

fn exchange(command: &str, result: &str) -> Vec<Arc<Message>> {
    let arguments = RawJson::from_value(&serde_json::json!({ "command": command })).unwrap();
    let call = ToolCall::new(CallId::new("c1"), "bash", arguments);
    let result = ToolResult::from_text(&call, result, false);
    let asking = Message::assistant(vec![Content::ToolCall(call)], None, Some(StopReason::ToolUse));
    [asking.unwrap(), Message::results(vec![result]).unwrap()].map(Arc::new).to_vec()
}

fn sent(firewall: &Firewall, messages: Vec<Arc<Message>>) -> String {
    let cloud = ProviderFacts { name: "cloud".into(), local: false };
    let request = ModelRequest {
        model: "m".into(),
        system: "you help".into(),
        messages,
        tools: Arc::new([]),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        temperature: None,
        effort: None,
        context_window: None,
        format: None,
        thinking: None,
    };
    let messages = firewall.redact_request(&cloud, request).unwrap().request.messages;
    messages
        .iter()
        .map(|message| {
            let results: String = message.tool_results().map(ToolResult::joined_text).collect();
            let calls: String =
                message.tool_calls().map(|call| call.arguments.get().to_owned()).collect();
            format!("{} {results} {calls}", message.text_content())
        })
        .collect()
}

#[test]
fn session_secret_is_redacted_in_every_encoding() {
    let token = token();
    let firewall = firewall();
    // It becomes known as most do: a file was read.
    sent(&firewall, exchange("cat config", &format!("token = {token}\n")));
    let mut left = Vec::new();
    for (way, written) in encoded_variants(&token) {
        let text = format!("first line\n{written}\nlast line\n");
        let diff: String = written.lines().map(|line| format!("-  old\n+  {line}\n")).collect();
        let diff = format!("@@ -1,3 +1,3 @@\n context\n{diff} context\n");
        let error = ProviderError::new(ErrorKind::BadRequest, "cloud", &text);
        let report =
            CommandReport { command: text.clone(), exit_code: Some(1), walled: None, trial: None };
        let failed = ToolOutcome::Failed(ToolOutput {
            diff: Some(diff.clone()),
            report: Some(report),
            ..ToolOutput::from_text(&text)
        });
        for (door, shown) in [
            ("result", sent(&firewall, exchange("look", &text))),
            ("arguments", sent(&firewall, exchange(&text, "done"))),
            ("diff", sent(&firewall, exchange("git diff", &diff))),
            ("log, preview or title", firewall.redact_text(&text).into_owned()),
            ("error", firewall.redact_error(error).message),
            (
                "refusal",
                format!("{:?}", firewall.redact_outcome(ToolOutcome::Denied(text.clone()))),
            ),
            ("outcome", format!("{:?}", firewall.redact_outcome(failed))),
        ] {
            if longest_readable_part(&token, &shown) > MAX_READABLE {
                left.push(format!("{way}, {door}: {shown}"));
            }
            if !shown.contains("{{secret:") {
                left.push(format!("{way}, {door}, nothing hidden: {shown}"));
            }
        }
    }
    assert!(left.is_empty(), "{} left\n{}", left.len(), left.join("\n---\n"));
}

#[test]
fn newly_found_secret_is_redacted_in_earlier_messages() {
    let token = token();
    let backwards: String = token.chars().rev().collect();
    let firewall = firewall();
    let mut messages = exchange("rev config", &backwards);
    // Nobody knows what this is, as long as the secret itself was not seen.
    assert!(sent(&firewall, messages.clone()).contains(&backwards));
    messages.extend(exchange("cat config", &token));
    let shown = sent(&firewall, messages);
    assert!(!shown.contains(&backwards) && !shown.contains(&token), "{shown}");
}

#[test]
fn redacted_encoded_secrets_are_restored_byte_for_byte() {
    let token = token();
    let firewall = firewall();
    let _known = firewall.redact_text(&token).into_owned();
    for (way, written) in encoded_variants(&token) {
        let shown = firewall.redact_text(&written).into_owned();
        assert_eq!(firewall.vault().restore(&shown).text, written, "{way}");
    }
}
