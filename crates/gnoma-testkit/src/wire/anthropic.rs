//! Anthropic's Messages.

use gnoma_core::StopReason;
use serde_json::{Value, json};

use super::{protocol::named_event, script::Script};

pub(super) fn encode_stream(script: &Script) -> String {
    let usage = script.usage;
    let mut out = named_event(&json!({"type": "message_start", "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": 1,
        },
    }}));
    out.push_str(&named_event(&json!({"type": "ping"})));
    for (index, (start, deltas)) in content_blocks(script).iter().enumerate() {
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        out.push_str(&named_event(&start));
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            out.push_str(&named_event(&delta));
        }
        let stop = json!({"type": "content_block_stop", "index": index});
        out.push_str(&named_event(&stop));
    }
    out.push_str(&named_event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(script.stop_reason()), "stop_sequence": null},
        "usage": {"output_tokens": usage.output},
    })));
    out.push_str(&named_event(&json!({"type": "message_stop"})));
    out
}

/// Each block's start and its deltas.
fn content_blocks(script: &Script) -> Vec<(Value, Vec<Value>)> {
    let mut blocks = Vec::new();
    if !script.thinking.is_empty() {
        let words = script.thinking.iter();
        let mut deltas: Vec<Value> =
            words.map(|words| json!({"type": "thinking_delta", "thinking": words})).collect();
        let signature = script.signature.iter();
        deltas
            .extend(signature.map(|token| json!({"type": "signature_delta", "signature": token})));
        let start = json!({"type": "thinking", "thinking": "", "signature": ""});
        blocks.push((start, deltas));
    }
    if !script.text.is_empty() {
        let words = script.text.iter();
        let deltas = words.map(|words| json!({"type": "text_delta", "text": words}));
        blocks.push((json!({"type": "text", "text": ""}), deltas.collect()));
    }
    for call in &script.calls {
        let (first, second) = call.argument_fragments();
        let deltas = ["", first, second]
            .map(|fragment| json!({"type": "input_json_delta", "partial_json": fragment}));
        let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        blocks.push((start, deltas.to_vec()));
    }
    blocks
}

fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::Other => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal | StopReason::ContentFilter => "refusal",
        StopReason::Pause => "pause_turn",
    }
}
