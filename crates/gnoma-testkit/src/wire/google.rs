//! Google's `streamGenerateContent`, as server-sent events with CRLF.

use gnoma_core::StopReason;
use serde_json::{Value, json};

use super::script::Script;

pub(super) fn encode_stream(script: &Script) -> String {
    let mut parts: Vec<Value> = Vec::new();
    let thinking = script.thinking.iter();
    parts.extend(thinking.map(|words| json!({"text": words, "thought": true})));
    parts.extend(script.text.iter().map(|words| json!({"text": words})));
    for (nth, call) in script.calls.iter().enumerate() {
        let called = json!({"id": call.id, "name": call.name, "args": call.argument_value()});
        let mut part = json!({"functionCall": called});
        if let (0, Some(token)) = (nth, &script.signature) {
            part["thoughtSignature"] = json!(token);
        }
        parts.push(part);
    }
    let mut out: String = parts.iter().map(|part| encode_chunk(script, part, None)).collect();
    let finish = finish_reason(script.stop_reason());
    out.push_str(&encode_chunk(script, &json!({"text": ""}), Some(finish)));
    out
}

fn encode_chunk(script: &Script, part: &Value, finish: Option<&str>) -> String {
    let usage = script.usage;
    let mut candidate = json!({"content": {"parts": [part], "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    let data = json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": usage.prompt_tokens(),
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
            "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": usage.total_tokens(),
        },
        "modelVersion": "test-model",
        "responseId": "resp-1",
    });
    format!("data: {data}\r\n\r\n")
}

fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => "STOP",
        StopReason::MaxTokens => "MAX_TOKENS",
        StopReason::Refusal | StopReason::ContentFilter => "SAFETY",
        StopReason::Pause | StopReason::Other => "OTHER",
    }
}
