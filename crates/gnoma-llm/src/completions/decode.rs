//! Decodes chat completion chunks: the part that all vendors share.
//!
//! [`CompletionsDecoder`] takes records; a [`Flavour`] takes the vendor's delta apart and hands what it finds to
//! [`Blocks`], which knows the calls and numbers everything. The stop is held back until the stream says that it is over:
//! usage comes after the finish reason, and so may an error.

use std::sync::Arc;

use gnoma_core::{ErrorKind, ProviderError, StopReason, StreamEvent};
use serde::Deserialize;
use serde_json::Value;

use super::{
    blocks::Blocks,
    usage::UsageTotals,
    wire::{ChatChoice, Chunk, GroqExtras, UsageReport, read_or_default},
};
use crate::{
    Profile,
    dialect::{AnswerDecoder, Ending, Events, Frame},
    end_reason::EndReason,
    errors,
    lenient_values::Text,
    names::NameMap,
};

/// The content of a vendor's deltas, and the way to read it.
pub(crate) trait Flavour: Send {
    /// The vendor's delta; the same shape is a whole answer's message.
    type Delta<'a>: Deserialize<'a>;

    /// Takes one delta of the answer.
    fn apply_delta(&mut self, delta: Self::Delta<'_>, blocks: &mut Blocks, out: &mut Events);

    /// The answer is over: the last chance to say something about it.
    fn finish(&mut self, _blocks: &mut Blocks, _out: &mut Events) {}
}

/// A decoder for one answer of the Chat Completions protocol.
pub(crate) struct CompletionsDecoder<F> {
    profile: Arc<Profile>,
    flavour: F,
    blocks: Blocks,
    tally: UsageTotals,
    has_model: bool,
    has_id: bool,
    /// The reason for the end, once it has come.
    end: Option<EndReason>,
    ended: bool,
}

impl<F: Flavour> CompletionsDecoder<F> {
    pub(crate) fn new(profile: Arc<Profile>, names: Arc<NameMap>, flavour: F) -> Self {
        Self {
            profile,
            flavour,
            blocks: Blocks::new(names),
            tally: UsageTotals::default(),
            has_model: false,
            has_id: false,
            end: None,
            ended: false,
        }
    }

    /// Says which model answers, and under which id, as soon as that is known.
    fn emit_started(&mut self, model: Text<'_>, id: Text<'_>, out: &mut Events) {
        let new = |known: &mut bool, text: Text<'_>| {
            let is_new = !*known && !text.is_empty();
            *known |= is_new;
            is_new.then(|| text.into_string())
        };
        let model = new(&mut self.has_model, model);
        let id = new(&mut self.has_id, id);
        if model.is_some() || id.is_some() {
            out.push_back(StreamEvent::Started { model, id });
        }
    }

    fn record_usage(&mut self, chunk: &Chunk<'_>, out: &mut Events) {
        let groq: GroqExtras = read_or_default(chunk.x_groq);
        self.merge_usage(read_or_default(chunk.usage), out);
        self.merge_usage(groq.usage, out);
    }

    fn merge_usage(&mut self, report: Option<UsageReport>, out: &mut Events) {
        if report.is_some_and(|report| self.tally.merge_report(&report)) {
            out.push_back(StreamEvent::Usage(self.tally.usage()));
        }
    }

    fn decode_choice(
        &mut self,
        choice: &ChatChoice<'_>,
        whole: bool,
        out: &mut Events,
    ) -> serde_json::Result<()> {
        self.merge_usage(read_or_default(choice.usage), out);
        let (first, second) =
            if whole { (choice.message, choice.delta) } else { (choice.delta, choice.message) };
        if let Some(said) = first.or(second) {
            let delta = serde_json::from_str(said.get())?;
            self.flavour.apply_delta(delta, &mut self.blocks, out);
        }
        let reason = EndReason::from_word(choice.finish_reason.as_str());
        self.end = reason.or(self.end.take());
        Ok(())
    }

    fn emit_stop(&mut self, out: &mut Events) -> Result<(), ProviderError> {
        self.flavour.finish(&mut self.blocks, out);
        let stop = match &self.end {
            Some(end) => end.resolve_stop(&self.profile, out)?,
            None => StopReason::Other,
        };
        self.ended = true;
        self.blocks.finish_calls(out);
        out.push_back(StreamEvent::Stop(self.blocks.stop_reason(stop)));
        Ok(())
    }

    fn parse_failure(&self, data: &str) -> ProviderError {
        let value: Value =
            serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        errors::from_value(&self.profile, None, &value)
    }
}

impl<F: Flavour> AnswerDecoder for CompletionsDecoder<F> {
    fn decode_frame(&mut self, frame: Frame<'_>, out: &mut Events) -> Result<(), ProviderError> {
        let data = frame.data.trim();
        if self.ended || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.emit_stop(out);
        }
        if frame.event == "error" {
            return Err(self.parse_failure(data));
        }
        let chunk: Chunk<'_> = serde_json::from_str(data)
            .map_err(|error| errors::broken_record(&self.profile, &error, data))?;
        let is_failure = chunk.is_failure();
        self.record_usage(&chunk, out);
        self.emit_started(chunk.model, chunk.id, out);
        if is_failure {
            return Err(self.parse_failure(data));
        }
        let has_choices = chunk.choices.is_some();
        let mut choices = chunk.choices.unwrap_or_default().into_iter();
        let Some(choice) = choices.find(|choice| choice.index.0.unwrap_or_default() == 0) else {
            if frame.whole && self.blocks.is_empty() {
                let message = "the answer has no choices, so it is not a chat completion";
                let error = errors::protocol_error(&self.profile, message);
                // A model server may have failed to answer; one without a list of choices is none.
                let kind = if has_choices { error.kind } else { ErrorKind::WrongServer };
                return Err(ProviderError { kind, ..error });
            }
            return Ok(());
        };
        // Some proxies send the records of a stream as lines or as a list.
        let is_piece = choice.delta.is_some() && choice.message.is_none();
        self.decode_choice(&choice, frame.whole, out)
            .map_err(|error| errors::broken_record(&self.profile, &error, data))?;
        if frame.whole && !is_piece {
            self.emit_stop(out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Events) -> Result<(), ProviderError> {
        if self.ended {
            return Ok(());
        }
        // Some servers send no `[DONE]`: Perplexity, Hugging Face, GPUStack.
        if self.end.is_some() {
            return self.emit_stop(out);
        }
        Err(errors::truncated_answer(&self.profile))
    }

    fn ending(&self) -> Option<Ending> {
        let has_usage = self.tally.has_counts();
        let end = self.end.as_ref().filter(|_| !self.ended)?;
        Some(Ending { reason: end.stop_reason(), has_usage })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use gnoma_core::{Content, Response, Usage};

    use super::*;
    use crate::{
        Protocol,
        completions::{
            content_text::ContentText,
            wire::{CallPiece, ContentPart},
        },
        lenient_values::SmallList,
        testing,
    };

    /// A flavour with nothing of its own.
    struct Plain;

    #[derive(Deserialize)]
    struct PlainDelta<'a> {
        #[serde(borrow, default)]
        content: ContentText<'a, ContentPart<'a>>,
        #[serde(borrow, default)]
        tool_calls: SmallList<CallPiece<'a>>,
    }

    impl Flavour for Plain {
        type Delta<'a> = PlainDelta<'a>;

        fn apply_delta(&mut self, delta: PlainDelta<'_>, blocks: &mut Blocks, out: &mut Events) {
            blocks.push_content(delta.content, out);
            blocks.push_calls(delta.tool_calls, out);
        }
    }

    /// What `flavour` makes of a stream of records, or of one whole body.
    pub(crate) fn read<F: Flavour>(
        flavour: F,
        records: &[&str],
        whole: bool,
    ) -> (Response, Option<ProviderError>) {
        let profile = Arc::new(Profile::new("test", Protocol::OpenAi, ""));
        let mut decoder = CompletionsDecoder::new(profile, Arc::new(NameMap::default()), flavour);
        testing::read(&mut decoder, records, whole)
    }

    /// The answer to a stream whose deltas are `deltas`, ended by `finish`.
    pub(crate) fn stream<F: Flavour>(flavour: F, deltas: &[&str], finish: &str) -> Response {
        let delta = |delta: &&str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
        let mut records: Vec<String> = deltas.iter().map(delta).collect();
        records.push(format!(
            r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{finish}"}}]}}"#
        ));
        records.push("[DONE]".to_owned());
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let (response, error) = read(flavour, &records, false);
        assert_eq!(error, None);
        response
    }

    fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
        let call = |call| {
            let call: &gnoma_core::ToolCall = call;
            (call.id.as_str(), call.name.as_str(), call.arguments.get())
        };
        response.tool_calls().map(call).collect()
    }

    #[test]
    fn chat_completion_decodes_the_same_streamed_or_whole() {
        let usage = r#""usage":{"prompt_tokens":5,"completion_tokens":2}"#;
        let (streamed, _) = read(
            Plain,
            &[
                r#"{"id":"a1","model":"m","choices":[{"delta":{"role":"assistant","content":"Hel"}}],"usage":null}"#,
                r#"{"id":"a1","model":"m","choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}"#,
                &format!(r#"{{"id":"a1","model":"m","choices":[],{usage}}}"#),
                "[DONE]",
            ],
            false,
        );
        let (in_choice, _) = read(
            Plain,
            &[
                r#"{"id":"a1","model":"m","choices":[{"delta":{"content":"Hello"}}]}"#,
                &format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop",{usage}}}]}}"#),
                "[DONE]",
            ],
            false,
        );
        assert_eq!(in_choice, streamed, "Moonshot's place of the counts");
        let (whole, error) = read(
            Plain,
            &[&format!(
                r#"{{"id":"a1","model":"m","choices":[{{"message":{{"content":"Hello","tool_calls":null}},"finish_reason":"stop"}}],{usage}}}"#
            )],
            true,
        );
        assert_eq!(error, None);
        assert_eq!(streamed, whole);
        assert_eq!(whole.content, [Content::from_text("Hello")]);
        assert_eq!(whole.stop, Some(StopReason::EndTurn));
        let usage = Usage { input: 5, output: 2, ..Usage::default() };
        assert_eq!(whole.usage, Some(usage));
    }

    #[test]
    fn tool_call_deltas_are_matched_by_index() {
        let response = stream(
            Plain,
            &[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"","function":{"name":"","arguments":":2}"}}]}"#,
            ],
            "tool_calls",
        );
        assert_eq!(calls(&response), [("a", "f", r#"{"x":1}"#), ("b", "g", r#"{"y":2}"#)]);
        assert_eq!(response.stop, Some(StopReason::ToolUse));
    }

    #[test]
    fn tool_calls_with_shared_or_missing_index_are_separated() {
        let shared = stream(
            Plain,
            &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},
                   {"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}"#],
            "stop",
        );
        assert_eq!(calls(&shared), [("a", "f", "{}"), ("b", "f", "{}")]);
        assert_eq!(shared.stop, Some(StopReason::ToolUse));
        let none = stream(
            Plain,
            &[
                r#"{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{\"x\""}}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":":2}"}}]}"#,
            ],
            "tool_calls",
        );
        let arguments: Vec<_> = calls(&none).into_iter().map(|call| call.2).collect();
        assert_eq!(arguments, [r#"{"x":1}"#, r#"{"x":2}"#]);
    }

    #[test]
    fn repeated_id_and_name_in_deltas_are_one_tool_call() {
        let piece = |arguments| {
            format!(
                r#"{{"tool_calls":[{{"index":0,"id":"0","function":{{"name":"f","arguments":"{arguments}"}}}}]}}"#
            )
        };
        let response = stream(Plain, &[&piece(""), &piece("{}")], "tool_calls");
        assert_eq!(calls(&response), [("0", "f", "{}")]);
    }

    #[test]
    fn tool_call_arguments_may_be_a_json_object_or_null() {
        let response = stream(
            Plain,
            &[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1}}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":null}}]}"#,
                r#"{"tool_calls":[{"index":2,"id":"c","function":{"name":"f","arguments":"null"}}]}"#,
            ],
            "tool_calls",
        );
        assert_eq!(
            calls(&response),
            [("a", "f", r#"{"x": 1}"#), ("b", "f", "{}"), ("c", "f", "{}")]
        );
    }

    #[test]
    fn tool_calls_without_list_or_function_wrapper_are_decoded() {
        for call in [
            r#"{"tool_calls":{"id":"a","function":{"name":"f","arguments":"{}"}}}"#,
            r#"{"tool_calls":[{"id":"a","type":"function","name":"f","arguments":"{}"}]}"#,
        ] {
            assert_eq!(calls(&stream(Plain, &[call], "tool_calls")), [("a", "f", "{}")], "{call}");
        }
    }

    #[test]
    fn tool_name_split_across_deltas_is_joined() {
        let tools = testing::tools();
        let profile = Arc::new(Profile::new("test", Protocol::OpenAi, ""));
        let names = Arc::new(NameMap::new(&tools));
        let mut decoder = CompletionsDecoder::new(profile, names, Plain);
        let call = |id: &str, name: &str, arguments: &str| {
            format!(
                r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"{id}","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}}}}]}}"#
            )
        };
        let records = [call("a", "fs_", ""), call("", "read", "{}")];
        let records = [&*records[0], &*records[1], "[DONE]"];
        let (response, error) = testing::read(&mut decoder, &records, false);
        assert_eq!(error, None);
        assert_eq!(calls(&response), [("a", "fs.read", "{}")]);
    }

    #[test]
    fn reasoning_content_part_is_decoded_as_thinking() {
        let part =
            r#"{"content":[{"type":"reasoning","text":"because"},{"type":"text","text":"4"}]}"#;
        let response = stream(Plain, &[part], "stop");
        assert!(matches!(&response.content[0], Content::Thinking(it) if it.text == "because"));
        assert_eq!(response.content[1], Content::from_text("4"));
    }

    #[test]
    fn empty_tool_call_is_ignored() {
        let nothing = r#"{"content":"4","tool_calls":[{"function":{"name":"","arguments":""}}]}"#;
        let response = stream(Plain, &[nothing], "stop");
        assert_eq!(response.stop, Some(StopReason::EndTurn));
    }

    #[test]
    fn truncated_tool_call_keeps_the_length_stop_reason() {
        let response = stream(
            Plain,
            &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#],
            "length",
        );
        assert_eq!(response.stop, Some(StopReason::MaxTokens));
    }

    #[test]
    fn text_after_a_call_is_a_block_of_its_own() {
        let response = stream(
            Plain,
            &[
                r#"{"content":"a"}"#,
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}"#,
                r#"{"content":"b"}"#,
            ],
            "tool_calls",
        );
        let text = |block: &Content| matches!(block, Content::Text(_));
        let kinds: Vec<bool> = response.content.iter().map(text).collect();
        assert_eq!(kinds, [true, false, true]);
    }

    #[test]
    fn only_the_first_completion_choice_is_decoded() {
        let (response, error) = read(
            Plain,
            &[
                r#"{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}"#,
                r#"{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}"#,
                r#"{"choices":[{"index":0,"content_filter_results":{}}]}"#,
                r#"{"choices":[{"index":0,"delta":null,"finish_reason":"stop"}]}"#,
            ],
            false,
        );
        assert_eq!(error, None);
        assert_eq!(response.content, [Content::from_text("yes")]);
        assert_eq!(response.stop, Some(StopReason::EndTurn));
    }

    #[test]
    fn cumulative_message_beside_a_delta_is_not_duplicated() {
        let (response, _) = read(
            Plain,
            &[
                r#"{"choices":[{"delta":{"content":"a"},"message":{"content":"a"}}]}"#,
                r#"{"choices":[{"delta":{"content":"b"},"message":{"content":"ab"},"finish_reason":"stop"}]}"#,
            ],
            false,
        );
        assert_eq!(response.content, [Content::from_text("ab")]);
    }

    #[test]
    fn completion_error_records_of_every_shape_are_errors() {
        let failing = [
            r#"{"error":{"message":"boom","code":503}}"#,
            r#"{"error":"boom"}"#,
            r#"{"object":"error","message":"boom","code":"3505"}"#,
            r#"{"detail":"boom"}"#,
            r#"{"choices":[{"delta":{"content":""}}],"error":{"message":"boom"}}"#,
        ];
        for record in failing {
            let begun = r#"{"choices":[{"delta":{"content":"so far"},"finish_reason":"stop"}]}"#;
            for whole in [false, true] {
                let records = if whole { vec![record] } else { vec![begun, record] };
                let (response, error) = read(Plain, &records, whole);
                assert!(error.unwrap().message.contains("boom"), "{record}");
                assert_eq!(response.content.is_empty(), whole);
            }
        }
        let (_, none) = read(Plain, &[r#"{"error":null,"choices":[]}"#, "[DONE]"], false);
        assert_eq!(none, None);
    }

    #[test]
    fn completion_stream_without_done_or_finish_reason_is_truncated() {
        let record = r#"{"choices":[{"delta":{"content":"so far"}}]}"#;
        let (response, error) = read(Plain, &[record], false);
        assert_eq!(error.unwrap().kind, ErrorKind::Network);
        assert_eq!(response.content, [Content::from_text("so far")]);
        let (response, error) = read(Plain, &[record, "[DONE]"], false);
        assert_eq!((error, response.stop), (None, Some(StopReason::Other)));
    }

    #[test]
    fn finish_reason_error_fails_but_keeps_the_partial_text() {
        let part = r#"{"choices":[{"delta":{"content":"part"}}]}"#;
        for word in ["error", "network_error", "insufficient_system_resource", "abort"] {
            let end = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{word}"}}]}}"#);
            for records in [&[part, &end, "[DONE]"][..], &[part, &end]] {
                let (response, error) = read(Plain, records, false);
                let error = error.unwrap();
                assert_eq!(error.kind, ErrorKind::ServerError, "{word}");
                assert!(error.message.contains(word), "{error:?}");
                assert_eq!(
                    (response.content, response.stop),
                    (vec![Content::from_text("part")], None)
                );
            }
        }
    }

    #[test]
    fn non_completion_body_is_reported_as_wrong_server() {
        let (_, error) = read(Plain, &[r#"{"models":[]}"#], true);
        assert_eq!(error.unwrap().kind, ErrorKind::WrongServer);
        let (_, error) = read(Plain, &["{broken"], false);
        assert_eq!(error.unwrap().kind, ErrorKind::Garbled);
    }

    #[test]
    fn completion_chunks_without_sse_framing_are_decoded() {
        let (response, error) = read(
            Plain,
            &[
                r#"{"object":"chat.completion.chunk","choices":[{"delta":{"content":"a"}}]}"#,
                r#"{"object":"chat.completion.chunk","choices":[{"delta":{"content":"b"},"finish_reason":"STOP"}]}"#,
                r#"{"object":"chat.completion.chunk","choices":[],"usage":{"completion_tokens":2}}"#,
            ],
            true,
        );
        assert_eq!(error, None);
        assert_eq!(response.content, [Content::from_text("ab")]);
        assert_eq!(response.stop, Some(StopReason::EndTurn));
        assert_eq!(response.usage.map(|usage| usage.output), Some(2));
    }

    #[test]
    fn malformed_field_of_a_completion_chunk_is_skipped() {
        let (response, error) = read(
            Plain,
            &[
                r#"{"error":{},"choices":[{"delta":{"content":"a","tool_calls":{}}}]}"#,
                r#"{"choices":[{"delta":{"content":[{"text":"b","summary":7}]}}],"usage":"none"}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"y","function":{"name":"f","arguments":"{"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"arguments":"}"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"y","function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}]}"#,
            ],
            false,
        );
        assert_eq!(error, None);
        assert_eq!(response.content[0], Content::from_text("ab"));
        assert_eq!(calls(&response), [("x", "f", "{}"), ("y", "f", "{}")]);
    }

    #[test]
    fn first_non_empty_model_and_id_of_a_completion_are_kept() {
        let (response, _) = read(
            Plain,
            &[
                r#"{"id":"","model":"","choices":[],"prompt_filter_results":[]}"#,
                r#"{"id":"a1","model":null,"choices":[{"delta":{"content":"x"}}]}"#,
                r#"{"id":"a2","model":"m","choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            ],
            false,
        );
        assert_eq!(response.id.as_deref(), Some("a1"));
        assert_eq!(response.model.as_deref(), Some("m"));
    }
}
