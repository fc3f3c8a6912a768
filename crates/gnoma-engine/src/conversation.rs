//! The conversation of a session, and what models receive in place of its beginning. Only whole messages enter it, and
//! none ever leaves it.

use std::{
    collections::{HashSet, VecDeque},
    mem,
    sync::Arc,
};

use gnoma_core::{
    Message, Response,
    message::{CallId, Content},
};

use crate::prompt;

/// Compactions that can be undone.
const MAX_EARLIER_SUMMARIES: usize = 16;

/// The messages of a session, and the summary that models receive in place of the first of them.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Arc<Message>>,
    /// The ids of all calls of the conversation.
    call_ids: HashSet<CallId>,
    summary: Option<Arc<Message>>,
    /// The index of the first message after those that the summary replaces.
    summary_end: usize,
    /// The earlier summaries, which models received before, each with its index; the latest is last.
    earlier_summaries: VecDeque<(Option<Arc<Message>>, usize)>,
}

impl Conversation {
    /// Returns a conversation that continues `messages`. They begin with a summary, if there is one.
    pub(crate) fn new(messages: Vec<Arc<Message>>) -> Self {
        let summary = messages.first().filter(|first| prompt::summary_of(first).is_some()).cloned();
        let summary_end = usize::from(summary.is_some());
        let calls = messages.iter().flat_map(|message| message.tool_calls());
        let call_ids = calls.map(|call| call.id.clone()).collect();
        Self { messages, call_ids, summary, summary_end, ..Self::default() }
    }

    /// Returns all messages.
    pub(crate) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the conversation as models receive it: a summary if there is one, and the messages after those that
    /// the summary replaces.
    pub(crate) fn as_sent(&self) -> (Option<&Arc<Message>>, &[Arc<Message>]) {
        (self.summary.as_ref(), self.messages.get(self.summary_end..).unwrap_or_default())
    }

    /// Reports whether a call of the conversation has this id.
    pub(crate) fn has_call(&self, id: &CallId) -> bool {
        self.call_ids.contains(id)
    }

    /// Appends a message.
    pub(crate) fn append(&mut self, message: Message) -> Arc<Message> {
        let message = Arc::new(message);
        self.messages.push(Arc::clone(&message));
        message
    }

    /// Gives those calls of an answer another id whose id a call of the conversation has: some servers count from 0 in
    /// every answer, and others refuse a conversation in which two calls have the same name.
    pub(crate) fn claim_call_ids(&mut self, mut response: Response) -> Response {
        for block in &mut response.content {
            if let Content::ToolCall(call) = block {
                call.id = unique_id(&call.id, |id| !self.call_ids.contains(id));
                self.call_ids.insert(call.id.clone());
            }
        }
        response
    }

    /// Puts a summary in the place of the first `end` messages.
    pub(crate) fn replace_summary(&mut self, summary: Message, end: usize) {
        let was =
            (self.summary.replace(Arc::new(summary)), mem::replace(&mut self.summary_end, end));
        if self.earlier_summaries.len() == MAX_EARLIER_SUMMARIES {
            self.earlier_summaries.pop_front();
        }
        self.earlier_summaries.push_back(was);
    }

    /// Restores what models received before the last compaction. Returns `false` if that is unknown.
    pub(crate) fn undo_compaction(&mut self) -> bool {
        let Some(before) = self.earlier_summaries.pop_back() else { return false };
        (self.summary, self.summary_end) = before;
        true
    }

    /// Returns the number of messages that the summary replaces.
    pub(crate) fn summary_end(&self) -> usize {
        self.summary_end
    }
}

/// Returns the id, or the first of its numbered variants that is free.
pub(crate) fn unique_id(own: &CallId, is_free: impl Fn(&CallId) -> bool) -> CallId {
    let mut number = 2_u32;
    let mut id = own.clone();
    while !is_free(&id) {
        id = CallId::new(format!("{own}_{number}"));
        number = number.saturating_add(1);
    }
    id
}
