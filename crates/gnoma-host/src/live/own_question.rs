//! A question of gnoma's own, which front ends show and answer like one of a model.

use gnoma_core::{CallId, Event, RawJson, ToolCall, ToolResult, session::Inquiry};

/// The name of the call under which a question is shown.
const CALL: &str = "ask";

/// The question that is open, if there is one.
#[derive(Default)]
pub(super) struct OwnQuestion(Option<ToolCall>);

impl OwnQuestion {
    /// Opens a question and returns the event that shows it. No other call of the session has this id.
    pub(super) fn open(&mut self, id: String, text: String, choices: Vec<String>) -> Event {
        let call = ToolCall::new(CallId::new(id), CALL, RawJson::empty_object());
        self.0 = Some(call.clone());
        Event::PermissionAsked {
            call,
            reason: text,
            preview: None,
            always: None,
            inquiry: Some(Inquiry { choices }),
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
            dangers: Vec::new(),
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether a call is the open question.
    pub(super) fn has_id(&self, call: &CallId) -> bool {
        self.0.as_ref().is_some_and(|question| question.id == *call)
    }

    /// Closes the question and returns the events that show it, none if no question is open. Without `answer` it counts
    /// as denied; with one it gets its result, or front ends would show it as interrupted.
    pub(super) fn close(&mut self, answer: Option<&str>, reason: &str) -> Vec<Event> {
        let Some(call) = self.0.take() else { return Vec::new() };
        let (allowed, reason) = (answer.is_some(), reason.to_owned());
        let mut events = vec![Event::PermissionDecided { call: call.id.clone(), allowed, reason }];
        events.extend(answer.map(|text| {
            let result = ToolResult::from_text(&call, text, false);
            Event::ToolEnded { call, result, diff: None, command: None, duration_ms: 0 }
        }));
        events
    }
}
