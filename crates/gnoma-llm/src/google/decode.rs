//! Decodes Gemini's stream: text, thinking and tool calls (`functionCall`).

use std::{borrow::Cow, sync::Arc};

use gnoma_core::{ErrorKind, ProviderError, StopReason, StreamEvent, stream::Slot, usage::Usage};
use serde_json::Value;

use super::{
    arguments::PartialArguments,
    wire::{Chunk, GoogleCandidate, ReadCall, ReadPart, Tokens},
};
use crate::{
    Profile,
    arguments::{UnfilledCalls, text_of},
    dialect::{AnswerDecoder, Ending, Events, Frame, push_signature},
    end_reason::EndReason,
    errors,
    lenient_values::{Count, Text},
    names::NameMap,
};

/// A decoder for one answer of Gemini.
pub(super) struct GoogleDecoder {
    profile: Arc<Profile>,
    names: Arc<NameMap>,
    slots: Slot,
    /// The block that the next piece of its kind continues.
    growing: Option<(GoogleBlockKind, Slot)>,
    /// The call whose arguments are still arriving.
    partial: Option<(Slot, PartialArguments)>,
    started: ReportedHeader,
    usage: Usage,
    called: bool,
    unfilled: UnfilledCalls,
    /// Records that were not part of an event stream.
    bodies: usize,
    stop: Option<EndReason>,
    /// The message of the server about the reason to stop.
    finish_message: String,
    /// True if the answer was stopped for what it repeats.
    recited: bool,
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GoogleBlockKind {
    Text,
    Thought,
}

/// The facts about the answer itself that were already reported; they stand in every chunk.
#[derive(Default)]
struct ReportedHeader {
    model: bool,
    id: bool,
}

impl AnswerDecoder for GoogleDecoder {
    fn decode_frame(&mut self, frame: Frame<'_>, out: &mut Events) -> Result<(), ProviderError> {
        if self.ended || frame.data.is_empty() || frame.data == "[DONE]" {
            return Ok(());
        }
        let chunk = match serde_json::from_str::<Chunk<'_>>(frame.data) {
            Ok(chunk) if chunk.error.is_none() => chunk,
            Ok(_) => return Err(self.parse_failure(frame.data, None)),
            Err(error) => return Err(self.parse_failure(frame.data, Some(&error))),
        };
        self.bodies += usize::from(frame.whole);
        self.emit_started(chunk.model_version, chunk.response_id, out);
        let candidates = chunk.candidates.into_iter();
        for candidate in candidates.filter(|candidate| candidate.index.0.unwrap_or(0) == 0) {
            self.decode_candidate(candidate, out);
        }
        if chunk.prompt_feedback.is_some_and(|feedback| !feedback.block_reason.is_empty()) {
            self.stop = Some(EndReason::Stop(StopReason::ContentFilter));
        }
        self.record_usage(chunk.usage_metadata, out);
        Ok(())
    }

    /// No record is marked as the last one: after the reason to stop there may be more.
    fn finish(&mut self, out: &mut Events) -> Result<(), ProviderError> {
        if self.ended {
            return Ok(());
        }
        if self.recited {
            let said =
                "the provider stopped the answer because it repeats a known text (RECITATION)";
            return Err(ProviderError::new(ErrorKind::Garbled, &self.profile.name, said));
        }
        let Some(end) = self.stop.clone().or_else(|| self.unsaid_stop()) else {
            return Err(self.unfinished_error());
        };
        let end = match end {
            EndReason::Unknown(word) if !self.finish_message.is_empty() => {
                EndReason::Unknown(format!("{word}: {}", self.finish_message))
            }
            end => end,
        };
        let stop = end.resolve_stop(&self.profile, out).map_err(|error| self.with_words(error))?;
        self.close_partial(out);
        out.push_back(StreamEvent::Stop(match stop {
            StopReason::EndTurn if self.called => StopReason::ToolUse,
            stop => stop,
        }));
        self.ended = true;
        Ok(())
    }

    fn ending(&self) -> Option<Ending> {
        let has_usage = self.usage != Usage::default();
        let is_open = !self.ended && !self.recited;
        let end = self.stop.as_ref().filter(|_| is_open)?;
        Some(Ending { reason: end.stop_reason(), has_usage })
    }
}

impl GoogleDecoder {
    pub(super) fn new(profile: Arc<Profile>, names: Arc<NameMap>) -> Self {
        Self {
            profile,
            names,
            slots: 0,
            growing: None,
            partial: None,
            started: ReportedHeader::default(),
            usage: Usage::default(),
            called: false,
            unfilled: UnfilledCalls::default(),
            bodies: 0,
            stop: None,
            finish_message: String::new(),
            recited: false,
            ended: false,
        }
    }

    /// Returns the error for a record that is no chunk: the failure that it tells of, or that it cannot be read.
    fn parse_failure(&self, data: &str, unread: Option<&serde_json::Error>) -> ProviderError {
        match (serde_json::from_str::<Value>(data), unread) {
            (Ok(value), None) => errors::from_value(&self.profile, None, &value),
            (Ok(value), Some(_)) if value.get("error").is_some() => {
                errors::from_value(&self.profile, None, &value)
            }
            (Ok(_), Some(error)) => errors::broken_record(&self.profile, error, data),
            (Err(error), _) => errors::broken_record(&self.profile, &error, data),
        }
    }

    /// The stop of an answer that came in one piece and gives no reason: nothing of it can be missing.
    fn unsaid_stop(&self) -> Option<EndReason> {
        let is_whole = self.bodies == 1 && self.slots > 0;
        is_whole.then_some(EndReason::Stop(StopReason::EndTurn))
    }

    /// The failure with the server's own words for it.
    fn with_words(&self, mut error: ProviderError) -> ProviderError {
        if !self.finish_message.is_empty() {
            error.message = format!("{}: {}", error.message, self.finish_message);
        }
        error
    }

    fn unfinished_error(&self) -> ProviderError {
        if self.bodies == 1 {
            let message = "the answer has no content from a model";
            let is_of_model = self.started.model || self.started.id;
            if is_of_model {
                errors::protocol_error(&self.profile, message)
            } else {
                errors::foreign_answer(&self.profile, message)
            }
        } else {
            errors::truncated_answer(&self.profile)
        }
    }

    fn emit_started(&mut self, model: Text<'_>, id: Text<'_>, out: &mut Events) {
        let new_model = !self.started.model && !model.is_empty();
        let new_id = !self.started.id && !id.is_empty();
        if new_model || new_id {
            self.started.model |= new_model;
            self.started.id |= new_id;
            out.push_back(StreamEvent::Started {
                model: model.into_filled(),
                id: id.into_filled(),
            });
        }
    }

    fn decode_candidate(&mut self, candidate: GoogleCandidate<'_>, out: &mut Events) {
        for part in candidate.content.unwrap_or_default().parts {
            self.decode_part(part, out);
        }
        if !candidate.finish_message.is_empty() {
            self.finish_message = errors::quote_text(candidate.finish_message.as_str());
        }
        self.record_stop_reason(&candidate.finish_reason);
    }

    fn decode_part(&mut self, part: ReadPart<'_>, out: &mut Events) {
        if let Some(call) = part.function_call {
            self.growing = None;
            self.decode_gemini_tool_call(call, part.thought_signature, out);
        } else if let Some(text) = part.text {
            let kind = if part.thought == Some(true) {
                GoogleBlockKind::Thought
            } else {
                GoogleBlockKind::Text
            };
            self.push_text(kind, text, part.thought_signature, out);
        } else {
            // A part of a kind that gnoma takes no part in; the thought before it still counts.
            self.growing = None;
            if !part.thought_signature.is_empty() {
                let slot = self.next_slot();
                push_signature(slot, part.thought_signature, out);
            }
        }
    }

    /// A signed text is a block of its own: the signature says where the model thought, and Google
    /// asks not to merge what is signed with what is not. It may be empty.
    fn push_text(
        &mut self,
        kind: GoogleBlockKind,
        text: Text<'_>,
        signature: Text<'_>,
        out: &mut Events,
    ) {
        let signed = !signature.is_empty();
        if text.is_empty() && !signed {
            return;
        }
        let slot = match self.growing {
            Some((growing, slot)) if growing == kind && !signed => slot,
            _ => self.next_slot(),
        };
        let text = text.into_string();
        out.push_back(match kind {
            GoogleBlockKind::Text => StreamEvent::TextDelta { slot, text },
            GoogleBlockKind::Thought => StreamEvent::ThinkingDelta { slot, text },
        });
        push_signature(slot, signature, out);
        self.growing = (!signed).then_some((kind, slot));
    }

    /// A call, whole or a piece of one: a piece without a name belongs to the call before it.
    fn decode_gemini_tool_call(
        &mut self,
        call: ReadCall<'_>,
        signature: Text<'_>,
        out: &mut Events,
    ) {
        let continues = call.will_continue == Some(true);
        if !call.name.is_empty() {
            self.close_partial(out);
            let arguments = call.args.map_or(Cow::Borrowed("{}"), text_of);
            let named = (call.id.as_str(), call.name.as_str());
            let known = self.unfilled.take_slot(named);
            let slot = known.unwrap_or_else(|| self.start_call(&call, out));
            push_signature(slot, signature, out);
            if continues || call.partial_args.is_some() {
                self.partial = Some((slot, PartialArguments::default()));
            } else {
                self.unfilled.record_call(named, &arguments, slot);
                finish_call(slot, arguments.into_owned(), out);
            }
        }
        if let Some((_, arguments)) = &mut self.partial {
            for piece in call.partial_args.unwrap_or_default() {
                arguments.apply_piece(piece);
            }
            if !continues {
                self.close_partial(out);
            }
        }
    }

    fn start_call(&mut self, call: &ReadCall<'_>, out: &mut Events) -> Slot {
        let slot = self.next_slot();
        self.called = true;
        out.push_back(StreamEvent::ToolCallStart {
            slot,
            id: call.id.as_str().to_owned(),
            name: self.names.tool_name(call.name.as_str()).to_owned(),
        });
        slot
    }

    fn close_partial(&mut self, out: &mut Events) {
        if let Some((slot, arguments)) = self.partial.take() {
            finish_call(slot, arguments.into_json(), out);
        }
    }

    fn next_slot(&mut self) -> Slot {
        let slot = self.slots;
        self.slots += 1;
        slot
    }

    fn record_stop_reason(&mut self, reason: &Text<'_>) {
        // What is written the next time is often something else.
        if reason.as_str() == "RECITATION" {
            self.recited = true;
            return;
        }
        self.stop = EndReason::from_word(reason.as_str()).or(self.stop.take());
    }

    /// Counts come with nearly every chunk, each time all that are not zero: the last ones hold. Vertex
    /// sends the same object without any count in between.
    fn record_usage(&mut self, tokens: Option<Tokens>, out: &mut Events) {
        let usage = usage_from_tokens(tokens.unwrap_or_default());
        if usage != Usage::default() && usage != self.usage {
            self.usage = usage;
            out.push_back(StreamEvent::Usage(usage));
        }
    }
}

/// Google counts cached tokens into the prompt, and thoughts beside the answer.
fn usage_from_tokens(tokens: Tokens) -> Usage {
    let count = |count: Count| count.0.unwrap_or(0);
    let cached = count(tokens.cached_content_token_count);
    let thoughts = count(tokens.thoughts_token_count);
    Usage {
        input: count(tokens.prompt_token_count).saturating_sub(cached),
        output: count(tokens.candidates_token_count).saturating_add(thoughts),
        cache_read: cached,
        cache_write: 0,
        reasoning: thoughts,
    }
}

fn finish_call(slot: Slot, fragment: String, out: &mut Events) {
    out.push_back(StreamEvent::ToolCallDelta { slot, fragment });
    out.push_back(StreamEvent::ToolCallDone { slot });
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, Content, RawJson, Response, Text as Words, Thinking, ToolCall};

    use super::*;
    use crate::{Protocol, testing::answer};

    fn read_all(records: &[&str]) -> Result<Response, ProviderError> {
        read_as(records, false)
    }

    fn read_as(records: &[&str], whole: bool) -> Result<Response, ProviderError> {
        let profile = Profile::new("google", Protocol::Google, "http://x");
        let mut decoder = GoogleDecoder::new(Arc::new(profile), Arc::new(NameMap::default()));
        answer(&mut decoder, records, whole)
    }

    fn chunk(parts: &str) -> String {
        format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}}}}]}}"#)
    }

    /// An answer of one chunk for each list of parts, and a stop.
    fn read(parts: &[&str]) -> Response {
        let mut chunks: Vec<String> = parts.iter().map(|parts| chunk(parts)).collect();
        chunks.push(r#"{"candidates":[{"finishReason":"STOP"}]}"#.to_owned());
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        read_all(&chunks).unwrap()
    }

    fn signed(text: &str, signature: &str) -> Content {
        Content::Text(Words { text: text.into(), signature: Some(signature.into()) })
    }

    fn thought(text: &str, signature: Option<&str>) -> Content {
        Content::Thinking(Thinking {
            text: text.into(),
            signature: signature.map(str::to_owned),
            item: None,
        })
    }

    fn call(id: &str, name: &str, arguments: &str, signature: Option<&str>) -> Content {
        let arguments = RawJson::parse(arguments).unwrap();
        let mut call = ToolCall::new(CallId::new(id), name, arguments);
        call.signature = signature.map(str::to_owned);
        Content::ToolCall(call)
    }

    #[test]
    fn google_repeated_function_call_fills_empty_arguments() {
        let response = read(&[
            r#"{"functionCall":{"id":"x","name":"bash","args":{}}}"#,
            r#"{"functionCall":{"id":"x","name":"bash","args":{"command":"ls"}}}"#,
        ]);
        assert_eq!(response.content, [call("x", "bash", r#"{"command":"ls"}"#, None)]);
    }

    #[test]
    fn google_snake_case_field_names_are_decoded() {
        let record = r#"{"candidates":[{"content":{"parts":[{"function_call":{"name":"bash","arguments":{"command":"ls"}},
            "thought_signature":"U0lH"}]},"finish_reason":"STOP"}],"usage_metadata":{"promptTokenCount":3}}"#;
        let response = read_all(&[record]).unwrap();
        assert_eq!(response.content, [call("call_0", "bash", r#"{"command":"ls"}"#, Some("U0lH"))]);
        assert_eq!(response.stop, Some(StopReason::ToolUse));
        assert_eq!(response.usage.map(|usage| usage.input), Some(3));
    }

    #[test]
    fn google_parts_of_one_kind_are_joined_into_one_block() {
        let response = read(&[
            r#"{"text":"I wo","thought":true}"#,
            r#"{"text":"nder","thought":true}"#,
            r#"{"text":"y\u00e9"}, {"text":""}"#,
            r#"{"text":"s"}"#,
        ]);
        let expected = [thought("I wonder", None), Content::from_text("yés")];
        assert_eq!(response.content, expected);
        assert_eq!(response.stop, Some(StopReason::EndTurn));
    }

    #[test]
    fn google_part_with_thought_signature_stays_a_separate_block() {
        let response = read(&[
            r#"{"text":"a"}"#,
            r#"{"text":"b","thoughtSignature":"s1"}"#,
            r#"{"text":"c"}"#,
            r#"{"text":"","thoughtSignature":"s2"}"#,
        ]);
        let (a, c) = (Content::from_text("a"), Content::from_text("c"));
        assert_eq!(response.content, [a, signed("b", "s1"), c, signed("", "s2")]);
    }

    #[test]
    fn google_several_function_calls_in_one_chunk_are_decoded() {
        let response = read(&[
            r#"{"functionCall":{"name":"bash","args":{"b": 1.0}},"thoughtSignature":"s"},
               {"functionCall":{"id":"x1","name":"ls"}}, {"functionCall":{"name":"pwd","args":null}}"#,
        ]);
        let expected = [
            call("call_0", "bash", r#"{"b": 1.0}"#, Some("s")),
            call("x1", "ls", "{}", None),
            call("call_2", "pwd", "{}", None),
        ];
        assert_eq!(response.content, expected);
        assert_eq!(response.stop, Some(StopReason::ToolUse));
    }

    #[test]
    fn google_partial_args_of_several_chunks_are_assembled() {
        let response = read(&[
            r#"{"functionCall":{"name":"a","willContinue":true},"thoughtSignature":"s"}"#,
            r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.p","stringValue":"x","willContinue":true}],"willContinue":true}}"#,
            r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.p","stringValue":"y"}],"willContinue":true}}"#,
            r#"{"functionCall":{}}"#,
            r#"{"functionCall":{"name":"b","partialArgs":[{"jsonPath":"$.n","numberValue":2}],"willContinue":true}}"#,
            r#"{"functionCall":{"name":"c","willContinue":true}}"#,
        ]);
        let expected = [
            call("call_0", "a", r#"{"p":"xy"}"#, Some("s")),
            call("call_1", "b", r#"{"n":2}"#, None),
            call("call_2", "c", "{}", None),
        ];
        assert_eq!(response.content, expected);
    }

    #[test]
    fn google_unknown_parts_keep_only_their_thought_signature() {
        let response = read(&[
            r#"{"executableCode":{"code":"1"},"thoughtSignature":"s"}, {"codeExecutionResult":{}}"#,
            r#"{"text":"1"}"#,
        ]);
        let expected = [thought("", Some("s")), Content::from_text("1")];
        assert_eq!(response.content, expected);
    }

    #[test]
    fn google_only_the_first_candidate_is_decoded() {
        let two = r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]}},
            {"index":0,"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}]}"#;
        assert_eq!(read_all(&[two]).unwrap().content, [Content::from_text("yes")]);
    }

    #[test]
    fn google_usage_counts_thoughts_as_output_and_excludes_cached_input() {
        let counts = r#"{"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,
            "candidatesTokenCount":3,"thoughtsTokenCount":2},"modelVersion":"g","responseId":"r"}"#;
        let stop = r#"{"candidates":[{"finishReason":"MAX_TOKENS"}],
            "usageMetadata":{"trafficType":"ON_DEMAND"},"modelVersion":"g","responseId":"r"}"#;
        let response = read_all(&[counts, stop]).unwrap();
        let usage = response.usage.unwrap();
        let parts = (usage.input, usage.cache_read, usage.output, usage.reasoning);
        assert_eq!(parts, (6, 4, 5, 2));
        let (model, id) = (response.model.as_deref(), response.id.as_deref());
        assert_eq!((model, id), (Some("g"), Some("r")));
    }

    #[test]
    fn google_finish_reasons_are_mapped() {
        for (wire, stop) in [
            ("STOP", StopReason::EndTurn),
            ("MAX_TOKENS", StopReason::MaxTokens),
            ("SAFETY", StopReason::ContentFilter),
            ("PROHIBITED_CONTENT", StopReason::ContentFilter),
            ("OTHER", StopReason::Other),
        ] {
            let record = format!(r#"{{"candidates":[{{"finishReason":"{wire}","index":0}}]}}"#);
            assert_eq!(read_all(&[&record]).unwrap().stop, Some(stop), "{wire}");
        }
        let blocked = r#"{"promptFeedback":{"blockReason":"SAFETY"},"candidates":null}"#;
        let stop = read_all(&[blocked]).unwrap().stop;
        assert_eq!(stop, Some(StopReason::ContentFilter));
    }

    #[test]
    fn google_malformed_function_call_stop_is_unknown_and_keeps_the_text() {
        let record = r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","index":0,
            "finishMessage":"the call is empty","content":{"parts":[{"text":"I look."}]}}]}"#;
        let response = read_all(&[record]).unwrap();
        assert_eq!(response.stop, Some(StopReason::Other));
        assert_eq!(response.content, [Content::from_text("I look.")]);
    }

    #[test]
    fn google_non_streamed_answer_needs_no_finish_reason() {
        let words = chunk(r#"{"text":"so"}"#);
        let called = chunk(r#"{"functionCall":{"name":"ls"}}"#);
        let stop = |records: &[&str]| read_as(records, true).map(|response| response.stop);
        assert_eq!(stop(&[&words]).unwrap(), Some(StopReason::EndTurn));
        assert_eq!(stop(&[&called]).unwrap(), Some(StopReason::ToolUse));
        assert_eq!(stop(&[&words, &words]).unwrap_err().kind, ErrorKind::Network);
        let foreign = r#"{"choices":[]}"#;
        assert_eq!(stop(&[foreign]).unwrap_err().kind, ErrorKind::WrongServer);
    }

    #[test]
    fn google_error_records_and_truncated_streams_are_errors() {
        let busy = r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#;
        let words = chunk(r#"{"text":"so"}"#);
        let error = read_all(&[&words, busy]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Overloaded);
        assert_eq!(read_all(&[&words]).unwrap_err().kind, ErrorKind::Network);
        for (broken, kind) in
            [(r#"{"candid"#, ErrorKind::Garbled), (r#"{"candidates":[7]}"#, ErrorKind::Protocol)]
        {
            let error = read_all(&[broken]).unwrap_err();
            assert_eq!(error.kind, kind, "{broken}");
        }
    }
}
