//! Decodes Ollama's answers: JSON objects, line by line or one as a whole.

use std::sync::Arc;

use gnoma_core::{ProviderError, StopReason, StreamEvent, Usage, stream::Slot};
use serde_json::Value;

use super::wire;
use crate::{
    Profile,
    arguments::{UnfilledCalls, text_of},
    dialect::{AnswerDecoder, Events, Frame},
    end_reason::EndReason,
    errors,
    names::NameMap,
};

/// The block that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenBlock {
    Thinking,
    Text,
}

/// A decoder for one answer of Ollama.
pub(super) struct OllamaDecoder {
    profile: Arc<Profile>,
    names: Arc<NameMap>,
    started: bool,
    open: Option<(OpenBlock, Slot)>,
    next_slot: Slot,
    called: bool,
    unfilled: UnfilledCalls,
    stopped: bool,
}

impl AnswerDecoder for OllamaDecoder {
    fn decode_frame(&mut self, frame: Frame<'_>, out: &mut Events) -> Result<(), ProviderError> {
        if self.stopped || frame.data.is_empty() || frame.data == "[DONE]" {
            return Ok(());
        }
        let line: wire::OllamaLine<'_> = serde_json::from_str(frame.data)
            .map_err(|error| errors::broken_record(&self.profile, &error, frame.data))?;
        if line.error.is_some() {
            let value: Value = serde_json::from_str(frame.data).unwrap_or_default();
            return Err(errors::from_value(&self.profile, None, &value));
        }
        if frame.whole && line.message.is_none() && line.done.is_none() {
            let message = "the answer has neither a message nor an end";
            return Err(errors::foreign_answer(&self.profile, message));
        }
        self.emit_started(&line, out);
        if let Some(said) = line.message {
            self.push_text(OpenBlock::Thinking, said.thinking.as_str(), out);
            self.push_text(OpenBlock::Text, said.content.as_str(), out);
            for call in said.tool_calls {
                self.push_call(call, out);
            }
        }
        if line.done == Some(true) {
            out.push_back(StreamEvent::Usage(Usage {
                input: line.prompt_eval_count.0.unwrap_or_default(),
                output: line.eval_count.0.unwrap_or_default(),
                ..Usage::default()
            }));
            let stop = self.resolve_stop(line.done_reason.as_str(), out)?;
            self.stopped = true;
            out.push_back(StreamEvent::Stop(stop));
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Events) -> Result<(), ProviderError> {
        if self.stopped { Ok(()) } else { Err(errors::truncated_answer(&self.profile)) }
    }
}

impl OllamaDecoder {
    pub(super) fn new(profile: Arc<Profile>, names: Arc<NameMap>) -> Self {
        Self {
            profile,
            names,
            started: false,
            open: None,
            next_slot: 0,
            called: false,
            unfilled: UnfilledCalls::default(),
            stopped: false,
        }
    }

    fn emit_started(&mut self, line: &wire::OllamaLine<'_>, out: &mut Events) {
        if !std::mem::replace(&mut self.started, true) {
            out.push_back(StreamEvent::Started {
                model: line.model.non_empty().map(str::to_owned),
                id: None,
            });
        }
    }

    fn push_text(&mut self, kind: OpenBlock, text: &str, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        let slot = match self.open {
            Some((open, slot)) if open == kind => slot,
            _ => self.new_slot(),
        };
        self.open = Some((kind, slot));
        let text = text.to_owned();
        out.push_back(match kind {
            OpenBlock::Thinking => StreamEvent::ThinkingDelta { slot, text },
            OpenBlock::Text => StreamEvent::TextDelta { slot, text },
        });
    }

    fn push_call(&mut self, call: wire::OllamaToolCall<'_>, out: &mut Events) {
        let function = call.function.unwrap_or_default();
        let Some(name) = function.name.non_empty() else {
            return;
        };
        let arguments = function.arguments.map(text_of).unwrap_or_default();
        let known = self.unfilled.take_slot((call.id.as_str(), name));
        let slot = known.unwrap_or_else(|| self.new_slot());
        if known.is_none() {
            self.open = None;
            self.called = true;
            self.unfilled.record_call((call.id.as_str(), name), &arguments, slot);
            out.push_back(StreamEvent::ToolCallStart {
                slot,
                id: call.id.as_str().to_owned(),
                name: self.names.tool_name(name).to_owned(),
            });
        }
        if !arguments.is_empty() {
            let fragment = arguments.into_owned();
            out.push_back(StreamEvent::ToolCallDelta { slot, fragment });
        }
        out.push_back(StreamEvent::ToolCallDone { slot });
    }

    fn new_slot(&mut self) -> Slot {
        let slot = self.next_slot;
        self.next_slot += 1;
        slot
    }

    /// `stop` is said of calls too.
    fn resolve_stop(&self, reason: &str, out: &mut Events) -> Result<StopReason, ProviderError> {
        let stop = match EndReason::from_word(reason) {
            Some(end) => end.resolve_stop(&self.profile, out)?,
            None => StopReason::EndTurn,
        };
        Ok(match stop {
            StopReason::EndTurn | StopReason::ToolUse if self.called => StopReason::ToolUse,
            StopReason::ToolUse => StopReason::EndTurn,
            stop => stop,
        })
    }
}
