//! The turn that runs, as a front end sees it.

use serde::{Deserialize, Serialize};

use super::TextTail;
use crate::{
    message::{CallId, Content, Message, ModelRef, Role, ToolCall},
    session::{Event, Inquiry, NotableChange},
    usage::Usage,
};

/// Bytes of an answer that are kept while it is written.
const MAX_ANSWER_BYTES: usize = 256 << 10;
/// Bytes of thinking that are kept while it is written.
const MAX_THINKING_BYTES: usize = 64 << 10;
/// Bytes of arguments that are kept while a call is written.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;
/// Bytes of output that are kept of a call that runs.
const MAX_OUTPUT_BYTES: usize = 8 << 10;
/// Calls that are kept of an answer, drafted or running; more are left out of the view.
const MAX_CALLS: usize = 256;
/// Messages that are kept of those that wait.
const MAX_QUEUED: usize = 64;

/// A turn that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningTurn {
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// Number of the model call, from 1.
    pub round: u32,
    /// Why this arm was called, in one line.
    pub why: String,
    /// The answer so far.
    pub text: TextTail,
    /// The visible reasoning so far.
    pub thinking: TextTail,
    /// Calls that the model is writing.
    pub drafts: Vec<DraftedCall>,
    /// Calls that run.
    pub calls: Vec<RunningCall>,
    /// Questions that wait for a person.
    pub questions: Vec<Question>,
    /// Messages that were sent and wait for the next safe boundary.
    pub queue: Vec<Vec<Content>>,
    /// Tokens of its calls so far.
    #[serde(default)]
    pub usage: Usage,
}

/// A call that the model is writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DraftedCall {
    /// The id that it will have.
    pub id: CallId,
    /// Name of the tool.
    pub name: String,
    /// Its arguments so far.
    pub arguments: TextTail,
}

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunningCall {
    /// The call.
    pub call: ToolCall,
    /// The end of its output.
    pub output: TextTail,
}

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    /// What would run.
    pub call: ToolCall,
    /// Why it needs approval, in one line.
    pub reason: String,
    /// What it would change, as a unified diff.
    pub preview: Option<String>,
    /// The rule that a permanent approval would add.
    pub always: Option<String>,
    /// The reason is a question that is answered with words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inquiry: Option<Inquiry>,
    /// The running call that asks, where the question comes up in the middle of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<CallId>,
    /// What a partial approval may choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// Of these what must be seen by name, the most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notable: Vec<NotableChange>,
    /// The parts of the reason that say what is lost, what leaves the machine, and what is not what it seems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dangers: Vec<String>,
}

impl Question {
    /// The question that an event asks.
    #[must_use]
    pub fn from_event(event: &Event) -> Option<Self> {
        let Event::PermissionAsked {
            call,
            reason,
            preview,
            always,
            inquiry,
            during,
            parts,
            notable,
            dangers,
        } = event
        else {
            return None;
        };
        Some(Self {
            call: call.clone(),
            reason: reason.clone(),
            preview: preview.clone(),
            always: always.clone(),
            inquiry: inquiry.clone(),
            during: during.clone(),
            parts: parts.clone(),
            notable: notable.clone(),
            dangers: dangers.clone(),
        })
    }

    /// The event that asks it.
    pub(super) fn to_event(&self) -> Event {
        Event::PermissionAsked {
            call: self.call.clone(),
            reason: self.reason.clone(),
            preview: self.preview.clone(),
            always: self.always.clone(),
            inquiry: self.inquiry.clone(),
            during: self.during.clone(),
            parts: self.parts.clone(),
            notable: self.notable.clone(),
            dangers: self.dangers.clone(),
        }
    }
}

impl RunningTurn {
    /// Takes in what happened.
    pub(super) fn apply_event(&mut self, event: &Event) {
        match event {
            Event::RoundStarted { round, why, .. } => {
                (self.round, self.why) = (*round, why.clone());
                self.begin_answer();
            }
            Event::ArmChanged { .. } | Event::Retrying { .. } => self.begin_answer(),
            Event::Text { text } => self.text.push(text, MAX_ANSWER_BYTES),
            Event::Thinking { text } => self.thinking.push(text, MAX_THINKING_BYTES),
            Event::ToolCallDrafted { call, name } if self.drafts.len() < MAX_CALLS => {
                let (id, name) = (call.clone(), name.clone());
                self.drafts.push(DraftedCall { id, name, arguments: TextTail::default() });
            }
            Event::ToolCallDelta { call, fragment } => {
                if let Some(draft) = self.drafts.iter_mut().rev().find(|draft| draft.id == *call) {
                    draft.arguments.push(fragment, MAX_ARGUMENT_BYTES);
                }
            }
            Event::Appended(message) => self.on_appended(message),
            Event::Queued { queue } => {
                self.queue.clear();
                self.queue.extend(queue.iter().take(MAX_QUEUED).cloned());
            }
            Event::PermissionAsked { .. } => self.questions.extend(Question::from_event(event)),
            Event::PermissionDecided { call, .. } => {
                self.questions.retain(|it| it.call.id != *call);
            }
            Event::ToolStarted { call } if self.calls.len() < MAX_CALLS => {
                let output = TextTail::default();
                self.calls.push(RunningCall { call: call.clone(), output });
            }
            Event::ToolProgress { call, text } => {
                if let Some(running) = self.calls.iter_mut().find(|it| it.call.id == *call) {
                    running.output.push(text, MAX_OUTPUT_BYTES);
                }
            }
            Event::ToolEnded { result, .. } => self.remove_call(&result.call_id),
            Event::Usage { turn, .. } => self.usage = *turn,
            _ => (),
        }
    }

    fn remove_call(&mut self, id: &CallId) {
        self.calls.retain(|running| running.call.id != *id);
        self.questions.retain(|question| question.call.id != *id);
    }

    fn begin_answer(&mut self) {
        self.text = TextTail::default();
        self.thinking = TextTail::default();
        self.drafts.clear();
    }

    fn on_appended(&mut self, message: &Message) {
        if message.role() == Role::Assistant {
            self.begin_answer();
        }
    }

    /// The events that lead to where the turn is.
    pub(super) fn replay_events(&self, arm: Option<&ModelRef>) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(arm) = arm.filter(|_| self.round > 0) {
            let (round, why) = (self.round, self.why.clone());
            events.push(Event::RoundStarted { round, arm: arm.clone(), why });
        }
        if !self.thinking.text.is_empty() {
            events.push(Event::Thinking { text: self.thinking.text.clone() });
        }
        if !self.text.text.is_empty() {
            events.push(Event::Text { text: self.text.text.clone() });
        }
        for draft in &self.drafts {
            let call = draft.id.clone();
            events.push(Event::ToolCallDrafted { call: call.clone(), name: draft.name.clone() });
            if !draft.arguments.text.is_empty() {
                let fragment = draft.arguments.text.clone();
                events.push(Event::ToolCallDelta { call, fragment });
            }
        }
        if !self.queue.is_empty() {
            events.push(Event::Queued { queue: self.queue.clone() });
        }
        for running in &self.calls {
            events.push(Event::ToolStarted { call: running.call.clone() });
            if !running.output.text.is_empty() {
                let (call, text) = (running.call.id.clone(), running.output.text.clone());
                events.push(Event::ToolProgress { call, text });
            }
        }
        events.extend(self.questions.iter().map(Question::to_event));
        events
    }
}
