//! Ollama's own chat: one JSON object to a line.

use gnoma_core::StopReason;
use serde_json::{Value, json};

use super::script::Script;

pub(super) fn encode_stream(script: &Script) -> String {
    let mut messages: Vec<Value> = Vec::new();
    for words in &script.thinking {
        messages.push(json!({"role": "assistant", "content": "", "thinking": words}));
    }
    for words in &script.text {
        messages.push(json!({"role": "assistant", "content": words}));
    }
    for (index, call) in script.calls.iter().enumerate() {
        let function =
            json!({"index": index, "name": call.name, "arguments": call.argument_value()});
        let call = json!({"id": call.id, "function": function});
        messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
    }
    let mut out: String = messages.iter().map(|message| encode_line(message, None)).collect();
    let last = json!({"role": "assistant", "content": ""});
    out.push_str(&encode_line(&last, Some(script)));
    out
}

fn encode_line(message: &Value, end: Option<&Script>) -> String {
    let mut data = json!({
        "model": "test-model",
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": end.is_some(),
    });
    if let Some(script) = end {
        let cut = script.stop_reason() == StopReason::MaxTokens;
        data["done_reason"] = json!(if cut { "length" } else { "stop" });
        data["prompt_eval_count"] = json!(script.usage.prompt_tokens());
        data["eval_count"] = json!(script.usage.output);
    }
    format!("{data}\n")
}
