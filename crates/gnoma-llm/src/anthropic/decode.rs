//! Decodes Anthropic's stream events.

use std::sync::Arc;

use gnoma_core::{
    ProviderError, StopReason, StreamEvent, call_arguments::is_stand_in, stream::Slot, usage::Usage,
};
use serde_json::{Value, value::RawValue};

use super::wire::{Delta, ReadBlock, Record, Tokens, WholeAnswer};
use crate::{
    Profile,
    arguments::text_of,
    dialect::{AnswerDecoder, Ending, Events, Frame, push_signature},
    end_reason::EndReason,
    errors,
    lenient_values::{Count, Text},
    names::NameMap,
};

/// A decoder for one answer of the Messages protocol.
pub(super) struct AnthropicDecoder {
    profile: Arc<Profile>,
    names: Arc<NameMap>,
    /// Blocks begun and not ended; nearly always one.
    open: Vec<OpenBlock>,
    slots: Slot,
    usage: Usage,
    called: bool,
    /// The reason for the end, once it has come.
    stop: Option<EndReason>,
    ended: bool,
}

struct OpenBlock {
    index: Count,
    slot: Slot,
    kind: AnthropicBlockKind,
}

enum AnthropicBlockKind {
    /// A block of text or thinking.
    Words,
    /// A call; its arguments, where they came with its beginning and no fragment has replaced them.
    Call(Option<String>),
    /// A block of a kind that gnoma takes no part in.
    Foreign,
}

impl AnswerDecoder for AnthropicDecoder {
    fn decode_frame(&mut self, frame: Frame<'_>, out: &mut Events) -> Result<(), ProviderError> {
        // Gateways append `[DONE]`, which is no JSON.
        if self.ended || frame.data.is_empty() || frame.data == "[DONE]" {
            return Ok(());
        }
        let record = match serde_json::from_str::<Record<'_>>(frame.data) {
            Ok(record) => record,
            Err(error) => return self.skip_unknown_record(&error, frame.data),
        };
        if record.kind.as_str() == "error" || record.error.is_some() {
            return self.unread_error(frame.data);
        }
        match record.kind.as_str() {
            "content_block_delta" => {
                self.apply_delta(record.index, record.delta.unwrap_or_default(), out);
            }
            "content_block_start" => {
                self.begin_block(record.index, *record.content_block.unwrap_or_default(), out);
            }
            "content_block_stop" => self.end_block(record.index, out),
            "message_start" => self.emit_started(&mut record.message.unwrap_or_default(), out),
            "message_delta" => {
                self.record_usage(record.usage.map(|usage| *usage), out);
                self.record_stop_reason(&record.delta.unwrap_or_default().stop_reason);
            }
            "message_stop" => self.emit_stop(out)?,
            "message" => self.decode_whole_answer(frame.data, out)?,
            "" if frame.whole => self.decode_whole_answer(frame.data, out)?,
            _ => (),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Events) -> Result<(), ProviderError> {
        if self.ended {
            return Ok(());
        }
        if self.stop.is_none() {
            return Err(errors::truncated_answer(&self.profile));
        }
        self.emit_stop(out)
    }

    /// The tokens come in the record of the reason.
    fn ending(&self) -> Option<Ending> {
        let end = self.stop.as_ref().filter(|_| !self.ended)?;
        Some(Ending { reason: end.stop_reason(), has_usage: true })
    }
}

impl AnthropicDecoder {
    pub(super) fn new(profile: Arc<Profile>, names: Arc<NameMap>) -> Self {
        Self {
            profile,
            names,
            open: Vec::new(),
            slots: 0,
            usage: Usage::default(),
            called: false,
            stop: None,
            ended: false,
        }
    }

    /// A record of a shape that is not ours: one of a kind we do not know is read over.
    fn skip_unknown_record(
        &self,
        error: &serde_json::Error,
        data: &str,
    ) -> Result<(), ProviderError> {
        const KNOWN: [&str; 7] = [
            "message",
            "message_start",
            "message_delta",
            "message_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
        ];
        let kind = serde_json::from_str::<Value>(data)
            .ok()
            .map(|value| value.get("type").and_then(Value::as_str).map(str::to_owned));
        match kind {
            Some(Some(kind)) if kind == "error" => self.unread_error(data),
            Some(Some(kind)) if !KNOWN.contains(&kind.as_str()) => Ok(()),
            _ => Err(errors::broken_record(&self.profile, error, data)),
        }
    }

    fn unread_error(&self, data: &str) -> Result<(), ProviderError> {
        Err(match serde_json::from_str::<Value>(data) {
            Ok(value) => errors::from_value(&self.profile, None, &value),
            Err(error) => errors::broken_record(&self.profile, &error, data),
        })
    }

    /// An answer in one piece.
    fn decode_whole_answer(&mut self, data: &str, out: &mut Events) -> Result<(), ProviderError> {
        let mut answer: WholeAnswer<'_> = serde_json::from_str(data)
            .map_err(|error| errors::broken_record(&self.profile, &error, data))?;
        let Some(content) = answer.content.take() else {
            return Err(errors::foreign_answer(&self.profile, "the answer contains no message"));
        };
        self.emit_started(&mut answer, out);
        for block in content {
            self.begin_block(Count(None), block, out);
            self.end_block(Count(None), out);
        }
        self.record_stop_reason(&answer.stop_reason);
        self.emit_stop(out)
    }

    fn emit_started(&mut self, answer: &mut WholeAnswer<'_>, out: &mut Events) {
        let model = std::mem::take(&mut answer.model).into_filled();
        let id = std::mem::take(&mut answer.id).into_filled();
        out.push_back(StreamEvent::Started { model, id });
        self.record_usage(answer.usage.take(), out);
    }

    fn begin_block(&mut self, index: Count, block: ReadBlock<'_>, out: &mut Events) {
        let slot = self.slots;
        let kind = match block.kind.as_str() {
            "text" => {
                push_text(slot, block.text, out);
                AnthropicBlockKind::Words
            }
            "thinking" => {
                let text = block.thinking.into_string();
                out.push_back(StreamEvent::ThinkingDelta { slot, text });
                push_signature(slot, block.signature, out);
                AnthropicBlockKind::Words
            }
            "redacted_thinking" => {
                let data = block.data.into_string();
                out.push_back(StreamEvent::Redacted { slot, data });
                AnthropicBlockKind::Words
            }
            "tool_use" => {
                self.called = true;
                out.push_back(StreamEvent::ToolCallStart {
                    slot,
                    id: block.id.into_string(),
                    name: self.names.tool_name(block.name.as_str()).to_owned(),
                });
                AnthropicBlockKind::Call(block.input.and_then(initial_arguments))
            }
            _ => AnthropicBlockKind::Foreign,
        };
        self.slots += 1;
        self.open.push(OpenBlock { index, slot, kind });
    }

    fn apply_delta(&mut self, index: Count, delta: Delta<'_>, out: &mut Events) {
        let Some(at) = self.open.iter().rposition(|open| open.index == index) else {
            return self.delta_without_block(index, delta, out);
        };
        let open = &mut self.open[at];
        let slot = open.slot;
        match (&mut open.kind, delta.kind.as_str()) {
            (AnthropicBlockKind::Words, "text_delta") => push_text(slot, delta.text, out),
            (AnthropicBlockKind::Words, "thinking_delta") => {
                if let Some(text) = delta.thinking.into_filled() {
                    out.push_back(StreamEvent::ThinkingDelta { slot, text });
                }
            }
            (AnthropicBlockKind::Words, "signature_delta") => {
                push_signature(slot, delta.signature, out);
            }
            (AnthropicBlockKind::Call(at_once), "input_json_delta") => {
                if let Some(fragment) = delta.partial_json.into_filled() {
                    *at_once = None;
                    out.push_back(StreamEvent::ToolCallDelta { slot, fragment });
                }
            }
            _ => (),
        }
    }

    /// Words of a block whose beginning a gateway has swallowed. A call without its beginning has no
    /// name and cannot be helped.
    fn delta_without_block(&mut self, index: Count, delta: Delta<'_>, out: &mut Events) {
        if matches!(delta.kind.as_str(), "text_delta" | "thinking_delta") {
            let slot = self.slots;
            self.slots += 1;
            let kind = AnthropicBlockKind::Words;
            self.open.push(OpenBlock { index, slot, kind });
            self.apply_delta(index, delta, out);
        }
    }

    fn end_block(&mut self, index: Count, out: &mut Events) {
        if let Some(at) = self.open.iter().rposition(|open| open.index == index) {
            self.open.remove(at).close(out);
        }
    }

    /// Later counts replace earlier ones; what a record leaves out, or counts as 0, stays as it was: some proxies end
    /// a stream with zeros.
    fn record_usage(&mut self, tokens: Option<Tokens>, out: &mut Events) {
        let Some(tokens) = tokens else { return };
        let thinking = tokens.output_tokens_details.unwrap_or_default();
        for (part, count) in [
            (&mut self.usage.input, tokens.input_tokens),
            (&mut self.usage.output, tokens.output_tokens),
            (&mut self.usage.cache_read, tokens.cache_read_input_tokens),
            (&mut self.usage.cache_write, tokens.cache_creation_input_tokens),
            (&mut self.usage.reasoning, thinking.thinking_tokens),
        ] {
            *part = count.0.filter(|count| *count > 0).unwrap_or(*part);
        }
        out.push_back(StreamEvent::Usage(self.usage));
    }

    fn record_stop_reason(&mut self, reason: &Text<'_>) {
        self.stop = EndReason::from_word(reason.as_str()).or(self.stop.take());
    }

    /// The answer is over.
    fn emit_stop(&mut self, out: &mut Events) -> Result<(), ProviderError> {
        let stop = match &self.stop {
            Some(end) => end.resolve_stop(&self.profile, out)?,
            None => StopReason::EndTurn,
        };
        self.ended = true;
        for open in self.open.drain(..) {
            open.close(out);
        }
        let stop = match stop {
            StopReason::EndTurn if self.called => StopReason::ToolUse,
            stop => stop,
        };
        out.push_back(StreamEvent::Stop(stop));
        Ok(())
    }
}

impl OpenBlock {
    fn close(self, out: &mut Events) {
        let slot = self.slot;
        match self.kind {
            AnthropicBlockKind::Call(at_once) => {
                if let Some(fragment) = at_once {
                    out.push_back(StreamEvent::ToolCallDelta { slot, fragment });
                }
                out.push_back(StreamEvent::ToolCallDone { slot });
            }
            AnthropicBlockKind::Words | AnthropicBlockKind::Foreign => (),
        }
    }
}

fn push_text(slot: Slot, text: Text<'_>, out: &mut Events) {
    if let Some(text) = text.into_filled() {
        out.push_back(StreamEvent::TextDelta { slot, text });
    }
}

/// Arguments that came with the beginning of a call. A stream has an empty value there, which says
/// nothing.
fn initial_arguments(input: &RawValue) -> Option<String> {
    let text = text_of(input);
    (!is_stand_in(&text)).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, Content, ErrorKind, Redacted, Response, Thinking, ToolCall};

    use super::*;
    use crate::{Protocol, testing::answer};

    fn read_as(records: &[&str], whole: bool) -> Result<Response, ProviderError> {
        let profile = Profile::new("anthropic", Protocol::Anthropic, "http://x");
        let mut decoder = AnthropicDecoder::new(Arc::new(profile), Arc::new(NameMap::default()));
        answer(&mut decoder, records, whole)
    }

    fn read(records: &[&str]) -> Response {
        read_as(records, false).unwrap()
    }

    const START: &str = r#"{"type":"message_start","message":{"id":"m1","model":"claude-x","content":[],
        "usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":null,
                 "output_tokens":1}}}"#;
    const END_TURN: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#;
    const TOOL_USE: &str = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#;
    const STOP: &str = r#"{"type":"message_stop"}"#;

    fn thinking(text: &str, signature: &str) -> Content {
        Content::Thinking(Thinking {
            text: text.into(),
            signature: Some(signature.into()),
            item: None,
        })
    }

    fn call(id: &str, name: &str, arguments: &str) -> Content {
        let arguments = gnoma_core::RawJson::parse(arguments).unwrap();
        Content::ToolCall(ToolCall::new(CallId::new(id), name, arguments))
    }

    #[test]
    fn anthropic_stream_decodes_thinking_text_and_tool_call_deltas() {
        let response = read(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h\u00e9"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sg=="}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\n"}    }"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"bash","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
            r#"{"type":"content_block_stop","index":2}"#,
            TOOL_USE,
            STOP,
        ]);
        let expected =
            [thinking("hé", "Sg=="), Content::from_text("a\nb"), call("t1", "bash", r#"{"a":1}"#)];
        assert_eq!(response.content, expected);
        assert_eq!(response.stop, Some(StopReason::ToolUse));
        assert_eq!(response.model.as_deref(), Some("claude-x"));
        assert_eq!(response.id.as_deref(), Some("m1"));
    }

    #[test]
    fn anthropic_non_streamed_answer_decodes_like_a_stream() {
        let body = r#"{"type":"message","id":"m1","model":"claude-x","stop_reason":"tool_use",
            "content":[{"type":"thinking","thinking":"so","signature":"Sg=="},
                {"type":"redacted_thinking","data":"xx"},
                {"type":"text","text":"I look"},
                {"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":1}},
                {"type":"tool_use","id":"t1","name":"bash","input":{"b": 1.0}},
                {"type":"tool_use","id":"t2","name":"fs_ls","input":{}}],
            "usage":{"input_tokens":3,"output_tokens":4,"output_tokens_details":{"thinking_tokens":2}}}"#;
        let response = read_as(&[body], true).unwrap();
        let expected = [
            thinking("so", "Sg=="),
            Content::RedactedThinking(Redacted { data: "xx".into() }),
            Content::from_text("I look"),
            call("t1", "bash", r#"{"b": 1.0}"#),
            call("t2", "fs_ls", "{}"),
        ];
        assert_eq!(response.content, expected);
        let usage = response.usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.reasoning), (3, 4, 2));
    }

    #[test]
    fn anthropic_redacted_thinking_keeps_its_signature() {
        let response = read(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sg=="}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"r1"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            END_TURN,
            STOP,
        ]);
        let redacted = Content::RedactedThinking(Redacted { data: "r1".into() });
        assert_eq!(response.content, [thinking("", "Sg=="), redacted]);
    }

    #[test]
    fn anthropic_unknown_blocks_and_events_are_skipped() {
        let response = read(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","content":[{"text":"no"}]}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"something_new","delta":"of another shape","index":{}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"yes","citations":[]}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}"#,
            r#"{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":" indeed"}}"#,
            END_TURN,
            STOP,
            "[DONE]",
        ]);
        assert_eq!(response.content, [Content::from_text("yes"), Content::from_text(" indeed")]);
    }

    #[test]
    fn anthropic_tool_arguments_may_come_in_content_block_start() {
        let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash","input":{"a":1}}}"#;
        let more = r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"b\":2}"}}"#;
        let end = r#"{"type":"content_block_stop","index":0}"#;
        let once = read(&[START, begin, end, TOOL_USE, STOP]);
        assert_eq!(once.content, [call("t", "bash", r#"{"a":1}"#)]);
        let replaced = read(&[START, begin, more, end, TOOL_USE, STOP]);
        assert_eq!(replaced.content, [call("t", "bash", r#"{"b":2}"#)]);
    }

    #[test]
    fn anthropic_later_usage_replaces_earlier_usage_except_zeros() {
        let usage = read(&[START, END_TURN, STOP]).usage.unwrap();
        let parts = (usage.input, usage.cache_read, usage.cache_write, usage.output);
        assert_eq!(parts, (10, 5, 0, 7));
        let grown = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":30,"output_tokens":8}}"#;
        assert_eq!(read(&[START, grown, STOP]).usage.unwrap().input, 30);
        let zeros = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":8}}"#;
        let usage = read(&[START, zeros, STOP]).usage.unwrap();
        assert_eq!((usage.input, usage.cache_read, usage.output), (10, 5, 8));
    }

    #[test]
    fn anthropic_stop_reasons_are_mapped() {
        for (wire, stop) in [
            ("end_turn", StopReason::EndTurn),
            ("max_tokens", StopReason::MaxTokens),
            ("stop_sequence", StopReason::StopSequence),
            ("pause_turn", StopReason::Pause),
            ("refusal", StopReason::Refusal),
            ("of_tomorrow", StopReason::Other),
        ] {
            let delta = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{wire}"}}}}"#);
            assert_eq!(read(&[START, &delta, STOP]).stop, Some(stop), "{wire}");
            assert_eq!(read(&[START, &delta]).stop, Some(stop), "{wire}, cut");
        }
    }

    #[test]
    fn anthropic_context_window_exceeded_stop_is_a_context_overflow() {
        let delta =
            r#"{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}"#;
        for records in [&[START, delta, STOP][..], &[START, delta]] {
            assert_eq!(read_as(records, false).unwrap_err().kind, ErrorKind::ContextTooLong);
        }
    }

    #[test]
    fn anthropic_error_events_and_broken_records_are_errors() {
        let overloaded =
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        for whole in [false, true] {
            let error = read_as(&[overloaded], whole).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Overloaded);
            assert_eq!(error.code.as_deref(), Some("overloaded_error"));
        }
        let cut = read_as(&[START], false).unwrap_err();
        assert_eq!(cut.kind, ErrorKind::Network);
        for (broken, kind) in [
            ("{\"type\":\"message_del", ErrorKind::Garbled),
            (r#"{"type":"message_delta","delta":3}"#, ErrorKind::Protocol),
        ] {
            let error = read_as(&[broken], false).unwrap_err();
            assert_eq!(error.kind, kind, "{broken}");
        }
        let nothing = read_as(&[r#"{"status":"ok"}"#], true).unwrap_err();
        assert_eq!(nothing.kind, ErrorKind::WrongServer);
    }
}
