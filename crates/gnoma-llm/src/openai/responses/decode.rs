//! Decodes the stream of the Responses API.

use std::sync::Arc;

use gnoma_core::{ErrorKind, ProviderError, StopReason, StreamEvent, Usage};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    items::{ItemPartKind, Items, parse_list},
    wire,
};
use crate::{
    Profile,
    dialect::{AnswerDecoder, Events, Frame},
    end_reason::EndReason,
    errors,
    lenient_values::Count,
    names::NameMap,
};

/// A decoder for one answer of the Responses API.
pub(super) struct ResponsesDecoder {
    profile: Arc<Profile>,
    items: Items,
    /// Id of the answer, once it was told.
    id: Option<String>,
    stopped: bool,
}

impl AnswerDecoder for ResponsesDecoder {
    fn decode_frame(&mut self, frame: Frame<'_>, out: &mut Events) -> Result<(), ProviderError> {
        if self.stopped || frame.data.is_empty() {
            return Ok(());
        }
        if frame.data == "[DONE]" {
            self.finish_on_done(out);
            return Ok(());
        }
        let event: wire::Event<'_> = self.parse(frame.data)?;
        match event.kind.non_empty().unwrap_or(frame.event) {
            "" if event.error.is_some() => Err(self.parse_failure(frame.data)),
            "" if frame.whole => self.finish_response("", frame.data, out),
            "" => Ok(()),
            kind => self.decode_event(kind, &event, frame.data, out),
        }
    }

    fn finish(&mut self, _out: &mut Events) -> Result<(), ProviderError> {
        if self.stopped { Ok(()) } else { Err(errors::truncated_answer(&self.profile)) }
    }
}

impl ResponsesDecoder {
    pub(super) fn new(profile: Arc<Profile>, names: Arc<NameMap>) -> Self {
        Self { profile, items: Items::new(names), id: None, stopped: false }
    }

    /// A record of the kind `name`, such as `response.output_text.delta`.
    fn decode_event(
        &mut self,
        name: &str,
        event: &wire::Event<'_>,
        data: &str,
        out: &mut Events,
    ) -> Result<(), ProviderError> {
        let name = name.strip_prefix("response.").unwrap_or(name);
        let (what, step) = name.rsplit_once('.').unwrap_or((name, ""));
        let at = event.output_index.0.unwrap_or(self.items.latest_index());
        if let Some(kind) = piece_kind(what) {
            self.decode_piece(kind, step, at, event, out);
            return Ok(());
        }
        match (what, step) {
            ("function_call_arguments" | "custom_tool_call_input", "delta") => {
                self.items.more_arguments(at, event.delta.as_str(), out);
            }
            ("function_call_arguments", "done") => {
                self.items.whole_arguments(at, event.arguments.as_str(), out);
            }
            ("custom_tool_call_input", "done") => {
                self.items.whole_arguments(at, event.input.as_str(), out);
            }
            ("output_item", "added") => {
                let at = event.output_index.0.unwrap_or(self.items.next());
                self.items.begin_item(at, &self.parse_raw(event.item)?, out);
            }
            ("output_item", "done") => {
                self.items.complete_item(at, &self.parse_raw(event.item)?, out);
            }
            ("created" | "queued" | "in_progress", "") => {
                self.emit_started(&self.parse_raw(event.response)?, out);
            }
            ("completed" | "incomplete" | "failed" | "cancelled" | "done", "") => {
                let response = event.response.map_or("{}", RawValue::get);
                return self.finish_response(what, response, out);
            }
            ("error", "") => return Err(self.parse_failure(data)),
            _ => (),
        }
        Ok(())
    }

    fn decode_piece(
        &mut self,
        kind: ItemPartKind,
        step: &str,
        at: u64,
        event: &wire::Event<'_>,
        out: &mut Events,
    ) {
        let (index, whole) = match kind {
            ItemPartKind::Text | ItemPartKind::RawReasoning => (event.content_index, &event.text),
            ItemPartKind::Summary => (event.summary_index, &event.text),
            ItemPartKind::Refusal => (event.content_index, &event.refusal),
        };
        let index = index.0.unwrap_or_default();
        match step {
            "delta" => self.items.push_delta(at, kind, index, event.delta.as_str(), out),
            "done" => self.items.complete_part(at, kind, index, whole.as_str(), out),
            _ => (),
        }
    }

    /// Tells who answers; again when the id has changed.
    fn emit_started(&mut self, response: &wire::Response<'_>, out: &mut Events) {
        let (id, model) = (response.id.non_empty(), response.model.non_empty());
        if (id.is_none() && model.is_none()) || (self.id.is_some() && self.id.as_deref() == id) {
            return;
        }
        self.id = Some(id.unwrap_or_default().to_owned());
        out.push_back(StreamEvent::Started {
            model: model.map(str::to_owned),
            id: id.map(str::to_owned),
        });
    }

    /// The answer's last record, or the whole of one that was not streamed. `event` is what the record
    /// says of itself; empty for a whole answer.
    fn finish_response(
        &mut self,
        event: &str,
        data: &str,
        out: &mut Events,
    ) -> Result<(), ProviderError> {
        let response: wire::Response<'_> = self.parse(data)?;
        if event.is_empty() && response.output.is_none() && response.status.is_empty() {
            let message = "the answer has neither a status nor output";
            return Err(errors::foreign_answer(&self.profile, message));
        }
        self.emit_started(&response, out);
        let status = match event {
            "" | "done" => response.status.non_empty().unwrap_or("completed"),
            event => event,
        };
        if status == "failed" {
            return Err(self.failure_from_error(response.error));
        }
        self.items.take_output(&parse_list(response.output), out);
        // Counts that cannot be read are no reason to lose an answer.
        let counted = response.usage.and_then(|raw| serde_json::from_str(raw.get()).ok());
        out.extend(counted.map(|counted| StreamEvent::Usage(usage_from_counts(&counted))));
        let reason = response.incomplete_details.unwrap_or_default().reason;
        let stop = match (status, EndReason::from_word(reason.as_str())) {
            ("completed", Some(EndReason::WindowFull)) => {
                EndReason::WindowFull.resolve_stop(&self.profile, out)?
            }
            ("completed", _) => self.items.natural_stop(),
            ("incomplete", Some(end)) => end.resolve_stop(&self.profile, out)?,
            // Only an answer that is complete has the status of one.
            (status, _) => match EndReason::from_word(status) {
                Some(end @ EndReason::BrokenOff(_)) => end.resolve_stop(&self.profile, out)?,
                _ => EndReason::Unknown(errors::quote_text(status))
                    .resolve_stop(&self.profile, out)?,
            },
        };
        self.emit_stop(stop, out);
        Ok(())
    }

    /// `[DONE]`: the end, where a server left out the record that says so.
    fn finish_on_done(&mut self, out: &mut Events) {
        if !self.items.is_empty() {
            self.emit_stop(self.items.natural_stop(), out);
        }
    }

    fn emit_stop(&mut self, reason: StopReason, out: &mut Events) {
        self.stopped = true;
        out.push_back(StreamEvent::Stop(reason));
    }

    fn parse<'a, T: Deserialize<'a>>(&self, data: &'a str) -> Result<T, ProviderError> {
        serde_json::from_str(data)
            .map_err(|error| errors::broken_record(&self.profile, &error, data))
    }

    fn parse_raw<'a, T: Deserialize<'a>>(
        &self,
        raw: Option<&'a RawValue>,
    ) -> Result<T, ProviderError> {
        self.parse(raw.map_or("{}", RawValue::get))
    }

    fn parse_failure(&self, data: &str) -> ProviderError {
        let value: Value = serde_json::from_str(data).unwrap_or_default();
        errors::from_value(&self.profile, None, &value)
    }

    fn failure_from_error(&self, error: Option<&RawValue>) -> ProviderError {
        match error {
            Some(error) => self.parse_failure(error.get()),
            None => ProviderError::new(
                ErrorKind::ServerError,
                &self.profile.name,
                "the provider says that the answer failed, but not why",
            ),
        }
    }
}

/// Their counts, made disjoint. xAI counts reasoning beside the output; its total tells.
fn usage_from_counts(counted: &wire::Usage) -> Usage {
    let count = |count: Count| count.0.unwrap_or_default();
    let details = counted.input_tokens_details.as_ref();
    let cache_read = details.map_or(0, |details| count(details.cached_tokens));
    let cache_write = details.map_or(0, |details| count(details.cache_write_tokens));
    let details = counted.output_tokens_details.as_ref();
    let reasoning = details.map_or(0, |details| count(details.reasoning_tokens));
    let input = count(counted.input_tokens);
    let output = count(counted.output_tokens);
    let all = input.saturating_add(output).saturating_add(reasoning);
    let is_apart = reasoning > 0 && counted.total_tokens.0 == Some(all);
    Usage {
        input: input.saturating_sub(cache_read.saturating_add(cache_write)),
        output: if is_apart { output.saturating_add(reasoning) } else { output },
        cache_read,
        cache_write,
        reasoning,
    }
}

fn piece_kind(name: &str) -> Option<ItemPartKind> {
    Some(match name {
        "output_text" => ItemPartKind::Text,
        "refusal" => ItemPartKind::Refusal,
        "reasoning_summary_text" => ItemPartKind::Summary,
        "reasoning_text" => ItemPartKind::RawReasoning,
        _ => return None,
    })
}
