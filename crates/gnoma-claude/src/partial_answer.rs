//! An answer while it is written, as the events of that wire's streams. Pure.

use std::collections::HashMap;

use gnoma_core::{CallId, StopReason, Usage, json_value::json};
use gnoma_extend::claude::{RenameDirection, Renamer, their_name};
use serde_json::Value;

use super::blocks;

/// The kind of the piece that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Text,
    Thinking,
    Call,
}

/// An answer that is being written.
#[derive(Default)]
pub(super) struct PartialAnswer {
    has_begun: bool,
    open: Option<PieceKind>,
    next_index: u64,
    calls: HashMap<CallId, (u64, Renamer)>,
}

impl PartialAnswer {
    /// The events by which an answer begins, where it has not.
    fn push_message_start(&mut self, id: &str, model: &str, out: &mut Vec<Value>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let usage = blocks::usage_to_json(Usage::default());
            out.push(json!({"type": "message_start", "message": {"id": id, "type": "message",
                "role": "assistant", "model": model, "content": [], "stop_reason": null,
                "stop_sequence": null, "usage": usage}}));
        }
    }

    /// More text or thinking.
    pub(super) fn text_events(
        &mut self,
        is_thinking: bool,
        text: &str,
        id: &str,
        model: &str,
    ) -> Vec<Value> {
        let mut out = Vec::new();
        self.push_message_start(id, model, &mut out);
        let (kind, block, delta) = if is_thinking {
            let block = json!({"type": "thinking", "thinking": "", "signature": ""});
            (PieceKind::Thinking, block, json!({"type": "thinking_delta", "thinking": text}))
        } else {
            let block = json!({"type": "text", "text": ""});
            (PieceKind::Text, block, json!({"type": "text_delta", "text": text}))
        };
        if self.open != Some(kind) {
            self.open(kind, &block, &mut out);
        }
        let index = self.next_index.saturating_sub(1);
        out.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        out
    }

    /// Returns the stream events for the beginning of a call.
    pub(super) fn call_start_events(
        &mut self,
        call: &CallId,
        name: &str,
        id: &str,
        model: &str,
    ) -> Vec<Value> {
        let mut out = Vec::new();
        self.push_message_start(id, model, &mut out);
        let block = json!({"type": "tool_use", "id": call, "name": their_name(name), "input": {}});
        self.open(PieceKind::Call, &block, &mut out);
        let index = self.next_index.saturating_sub(1);
        self.calls.insert(call.clone(), (index, Renamer::new(name, RenameDirection::Out)));
        out
    }

    /// More of a call's arguments.
    pub(super) fn argument_events(&mut self, call: &CallId, fragment: &str) -> Vec<Value> {
        let Some((index, renamer)) = self.calls.get_mut(call) else { return Vec::new() };
        let text = renamer.push(fragment);
        if text.is_empty() { Vec::new() } else { vec![argument_delta(*index, &text)] }
    }

    fn open(&mut self, kind: PieceKind, block: &Value, out: &mut Vec<Value>) {
        self.close_block(out);
        out.push(
            json!({"type": "content_block_start", "index": self.next_index, "content_block": block}),
        );
        self.open = Some(kind);
        self.next_index += 1;
    }

    fn close_block(&mut self, out: &mut Vec<Value>) {
        let index = self.next_index.saturating_sub(1);
        match self.open.take() {
            None => return,
            Some(PieceKind::Call) => {
                let last = self.calls.values_mut().find(|(at, _)| *at == index);
                let rest = last.map(|(_, renamer)| renamer.finish()).unwrap_or_default();
                if !rest.is_empty() {
                    out.push(argument_delta(index, &rest));
                }
            }
            Some(PieceKind::Text | PieceKind::Thinking) => (),
        }
        out.push(json!({"type": "content_block_stop", "index": index}));
    }

    /// The answer is whole, or counts no more.
    pub(super) fn end_events(&mut self, stop: Option<StopReason>, usage: Usage) -> Vec<Value> {
        let mut out = Vec::new();
        if self.has_begun {
            self.close_block(&mut out);
            out.push(json!({"type": "message_delta", "delta":
                {"stop_reason": stop.map(stop_reason), "stop_sequence": null},
                "usage": {"output_tokens": usage.output}}));
            out.push(json!({"type": "message_stop"}));
        }
        *self = Self::default();
        out
    }
}

fn argument_delta(index: u64, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index,
        "delta": {"type": "input_json_delta", "partial_json": text}})
}

/// Returns the reason why a model stopped, in the words of the wire.
pub(super) fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal | StopReason::ContentFilter => "refusal",
        StopReason::Pause => "pause_turn",
        StopReason::EndTurn | StopReason::Other => "end_turn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(events: &[Value]) -> Vec<String> {
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn partial_answer_opens_and_closes_each_content_block_once() {
        let mut partial = PartialAnswer::default();
        let mut all = partial.text_events(true, "hm", "m", "x");
        all.extend(partial.text_events(false, "a", "m", "x"));
        all.extend(partial.text_events(false, "b", "m", "x"));
        let call = CallId::new("c");
        all.extend(partial.call_start_events(&call, "fs.read", "m", "x"));
        all.extend(partial.argument_events(&call, r#"{"path":"a","#));
        all.extend(partial.argument_events(&call, r#""offset":3}"#));
        all.extend(partial.end_events(Some(StopReason::ToolUse), Usage::default()));
        let count = |kind: &str| kinds(&all).iter().filter(|it| *it == kind).count();
        assert_eq!((count("content_block_start"), count("content_block_stop")), (3, 3));
        assert_eq!((count("message_start"), count("message_stop")), (1, 1));
        let json: String =
            all.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
        assert_eq!(json, r#"{"file_path":"a","offset":4}"#);
        assert!(partial.end_events(None, Usage::default()).is_empty());
    }
}
