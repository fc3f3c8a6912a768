//! OpenAI's Responses.

use gnoma_core::{StopReason, Usage};
use serde_json::{Value, json};

use super::{
    protocol::named_event,
    script::{Script, ScriptCall},
};

/// Numbers the events and collects the items.
#[derive(Default)]
struct EventWriter {
    out: String,
    events: usize,
    items: Vec<Value>,
}

impl EventWriter {
    fn write_event(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.events);
        self.events += 1;
        self.out.push_str(&named_event(&data));
    }

    fn begin_item(&mut self, item: &Value) {
        let data = json!({"output_index": self.items.len(), "item": item});
        self.write_event("response.output_item.added", data);
    }

    fn end_item(&mut self, item: Value) {
        let data = json!({"output_index": self.items.len(), "item": item});
        self.write_event("response.output_item.done", data);
        self.items.push(item);
    }
}

pub(super) fn encode_stream(script: &Script) -> String {
    let mut writer = EventWriter::default();
    let begun = json!({"response": response_json("in_progress", &[], None)});
    writer.write_event("response.created", begun.clone());
    writer.write_event("response.in_progress", begun);
    if !script.thinking.is_empty() {
        write_reasoning(&mut writer, script);
    }
    if !script.text.is_empty() {
        write_message(&mut writer, &script.text);
    }
    for call in &script.calls {
        function_call(&mut writer, call);
    }
    let cut = match script.stop_reason() {
        StopReason::MaxTokens => Some("max_output_tokens"),
        StopReason::ContentFilter => Some("content_filter"),
        _ => None,
    };
    let status = if cut.is_some() { "incomplete" } else { "completed" };
    let mut last = response_json(status, &writer.items, Some(script.usage));
    last["incomplete_details"] = cut.map_or(Value::Null, |reason| json!({"reason": reason}));
    writer.write_event(&format!("response.{status}"), json!({"response": last}));
    writer.out
}

fn write_reasoning(writer: &mut EventWriter, script: &Script) {
    let id = "rs_1";
    let at = writer.items.len();
    writer.begin_item(&json!({"id": id, "type": "reasoning", "summary": []}));
    let place = json!({"item_id": id, "output_index": at, "summary_index": 0});
    let with = |key: &str, value: Value| {
        let mut data = place.clone();
        data[key] = value;
        data
    };
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    writer.write_event("response.reasoning_summary_part.added", with("part", part("")));
    for words in &script.thinking {
        writer.write_event("response.reasoning_summary_text.delta", with("delta", json!(words)));
    }
    let whole = script.thinking.concat();
    writer.write_event("response.reasoning_summary_text.done", with("text", json!(whole)));
    writer.write_event("response.reasoning_summary_part.done", with("part", part(&whole)));
    writer.end_item(json!({
        "id": id,
        "type": "reasoning",
        "summary": [part(&whole)],
        "encrypted_content": script.signature,
    }));
}

fn write_message(writer: &mut EventWriter, pieces: &[String]) {
    let id = "msg_1";
    let at = writer.items.len();
    let item = |status: &str, content: Value| {
        json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        })
    };
    writer.begin_item(&item("in_progress", json!([])));
    let place = json!({"item_id": id, "output_index": at, "content_index": 0});
    let with = |key: &str, value: Value| {
        let mut data = place.clone();
        data[key] = value;
        data
    };
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    writer.write_event("response.content_part.added", with("part", part("")));
    for words in pieces {
        writer.write_event("response.output_text.delta", with("delta", json!(words)));
    }
    let whole = pieces.concat();
    writer.write_event("response.output_text.done", with("text", json!(whole)));
    writer.write_event("response.content_part.done", with("part", part(&whole)));
    writer.end_item(item("completed", json!([part(&whole)])));
}

fn function_call(writer: &mut EventWriter, call: &ScriptCall) {
    let at = writer.items.len();
    let id = format!("fc_{at}");
    let item = |status: &str, arguments: &str| {
        json!({
            "id": id,
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments,
            "status": status,
        })
    };
    writer.begin_item(&item("in_progress", ""));
    let (first, second) = call.argument_fragments();
    for fragment in [first, second] {
        let data = json!({"item_id": id, "output_index": at, "delta": fragment});
        writer.write_event("response.function_call_arguments.delta", data);
    }
    let done = json!({"item_id": id, "output_index": at, "arguments": call.arguments});
    writer.write_event("response.function_call_arguments.done", done);
    writer.end_item(item("completed", &call.arguments));
}

fn response_json(status: &str, output: &[Value], usage: Option<Usage>) -> Value {
    let usage = usage.map(|usage| {
        json!({
            "input_tokens": usage.prompt_tokens(),
            "input_tokens_details": {"cached_tokens": usage.cache_read},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.total_tokens(),
        })
    });
    json!({
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": "test-model",
        "output": output,
        "usage": usage,
    })
}
