//! Turns an answer that comes as a tool call back into text, for structured output by tools.

use gnoma_core::{
    call_arguments::parse_call_arguments,
    stream::{Slot, StopReason, StreamEvent},
};
use serde_json::Value;

use super::{NAME, WRAPPED};
use crate::dialect::Events;

/// Longest answer that is held back, in bytes; the rest of a longer one is dropped, and it fits nothing.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Stands behind the decoder of an answer that was asked for as a call.
#[derive(Debug)]
pub(crate) struct AnswerCalls {
    /// The answer is the only property of the arguments.
    wrapped: bool,
    /// The block of the first call and its arguments so far. Others are dropped.
    call: Option<(Slot, String)>,
    /// The text was given.
    is_given: bool,
}

impl AnswerCalls {
    pub(crate) fn new(wrapped: bool) -> Self {
        Self { wrapped, call: None, is_given: false }
    }

    /// Replaces the calls among the decoder's new events.
    pub(crate) fn filter_events(&mut self, events: &mut Events) {
        for event in std::mem::take(events) {
            self.filter_event(event, events);
        }
    }

    fn filter_event(&mut self, event: StreamEvent, out: &mut Events) {
        match event {
            StreamEvent::ToolCallStart { slot, name, .. } => {
                if self.call.is_none() && name == NAME {
                    self.call = Some((slot, String::new()));
                }
            }
            StreamEvent::ToolCallDelta { slot, fragment } => {
                if let Some((own, text)) = &mut self.call
                    && *own == slot
                    && text.len() + fragment.len() <= MAX_ANSWER_BYTES
                {
                    text.push_str(&fragment);
                }
            }
            StreamEvent::ToolCallDone { slot } => {
                if self.call.as_ref().is_some_and(|(own, _)| *own == slot) {
                    self.emit_answer(out);
                }
            }
            StreamEvent::Stop(stop) => {
                self.emit_answer(out);
                let stop = if stop == StopReason::ToolUse { StopReason::EndTurn } else { stop };
                out.push_back(StreamEvent::Stop(stop));
            }
            // What belongs to a block that is no call any more.
            StreamEvent::Signature { slot, .. } | StreamEvent::Item { slot, .. }
                if self.call.as_ref().is_some_and(|(own, _)| *own == slot) => {}
            other => out.push_back(other),
        }
    }

    fn emit_answer(&mut self, out: &mut Events) {
        if let Some((slot, text)) = &self.call
            && !std::mem::replace(&mut self.is_given, true)
        {
            let (arguments, is_broken) = parse_call_arguments(text);
            let text = if is_broken || text.trim().is_empty() { text } else { arguments.get() };
            let inside = self.wrapped.then(|| unwrap_answer(text)).flatten();
            let text = inside.unwrap_or_else(|| text.to_owned());
            out.push_back(StreamEvent::TextDelta { slot: *slot, text });
        }
    }
}

/// The answer in its wrapping.
fn unwrap_answer(text: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(text).ok()?;
    arguments.get(WRAPPED).map(Value::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(wrapped: bool, fragments: &[&str]) -> Vec<StreamEvent> {
        let mut calls = AnswerCalls::new(wrapped);
        let start = |slot, name: &str| StreamEvent::ToolCallStart {
            slot,
            id: "c".into(),
            name: name.into(),
        };
        let mut events = Events::from([start(0, NAME)]);
        for fragment in fragments {
            let fragment = (*fragment).to_owned();
            events.push_back(StreamEvent::ToolCallDelta { slot: 0, fragment });
        }
        events.extend([
            StreamEvent::ToolCallDone { slot: 0 },
            start(1, "bash"),
            StreamEvent::ToolCallDone { slot: 1 },
            StreamEvent::Stop(StopReason::ToolUse),
        ]);
        calls.filter_events(&mut events);
        events.into()
    }

    #[test]
    fn structured_output_tool_call_becomes_answer_text() {
        let text = |text: &str| {
            let text = text.to_owned();
            vec![StreamEvent::TextDelta { slot: 0, text }, StreamEvent::Stop(StopReason::EndTurn)]
        };
        assert_eq!(heard(false, &[r#"{"a""#, ":1}"]), text(r#"{"a":1}"#));
        assert_eq!(heard(true, &[r#"{"answer":[1,"#, "2]}"]), text("[1,2]"));
        // What does not look as it should is given as it is: the check says what is wrong.
        assert_eq!(heard(true, &["[1]"]), text("[1]"));
    }
}
