//! Chat completions: OpenAI's, their imitators', and Mistral's.

use gnoma_core::{StopReason, Usage};
use serde_json::{Value, json};

use super::{
    protocol::{Wire, unnamed_event},
    script::{Script, ScriptCall},
};

pub(super) fn encode_stream(wire: Wire, script: &Script) -> String {
    let mut out = String::new();
    if wire == Wire::Compatible {
        out.push_str(": keep-alive\n\n");
    }
    out.push_str(&encode_delta(&json!({"role": "assistant", "content": ""})));
    for words in &script.thinking {
        match wire {
            Wire::Mistral => {
                let part = json!({"type": "text", "text": words});
                let content = json!([{"type": "thinking", "thinking": [part]}]);
                out.push_str(&encode_delta(&json!({"content": content})));
            }
            Wire::Compatible => out.push_str(&encode_delta(&json!({"reasoning_content": words}))),
            _ => (),
        }
    }
    for words in &script.text {
        out.push_str(&encode_delta(&json!({"content": words})));
    }
    for (index, call) in script.calls.iter().enumerate() {
        out.push_str(&match wire {
            Wire::Mistral => whole_call(index, call),
            _ => call_in_fragments(index, call),
        });
    }
    out.push_str(&encode_end(wire, script));
    out.push_str("data: [DONE]\n\n");
    out
}

/// The last chunks: Mistral's finish carries the usage, the others send it behind.
fn encode_end(wire: Wire, script: &Script) -> String {
    let mut finish = completion_chunk(&json!({}), Some(finish_reason(script.stop_reason())));
    let usage = usage_json(script.usage);
    if wire == Wire::Mistral {
        finish["usage"] = usage;
        return unnamed_event(&finish);
    }
    let mut last = completion_chunk(&json!({}), None);
    last["choices"] = json!([]);
    last["usage"] = usage;
    unnamed_event(&finish) + &unnamed_event(&last)
}

fn whole_call(index: usize, call: &ScriptCall) -> String {
    let function = json!({"name": call.name, "arguments": call.arguments});
    let call = json!({"index": index, "id": call.id, "function": function});
    encode_delta(&json!({"tool_calls": [call]}))
}

fn call_in_fragments(index: usize, call: &ScriptCall) -> String {
    let (first, second) = call.argument_fragments();
    let function = json!({"name": call.name, "arguments": ""});
    let start = json!({"index": index, "id": call.id, "type": "function", "function": function});
    let mut out = encode_delta(&json!({"tool_calls": [start]}));
    for fragment in [first, second] {
        let more = json!({"index": index, "function": {"arguments": fragment}});
        out.push_str(&encode_delta(&json!({"tool_calls": [more]})));
    }
    out
}

fn encode_delta(delta: &Value) -> String {
    unnamed_event(&completion_chunk(delta, None))
}

fn completion_chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::ContentFilter => "content_filter",
        StopReason::EndTurn
        | StopReason::StopSequence
        | StopReason::Refusal
        | StopReason::Pause
        | StopReason::Other => "stop",
    }
}

fn usage_json(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total_tokens(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
