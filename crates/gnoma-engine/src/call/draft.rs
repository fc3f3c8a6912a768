//! An answer that is being written.

use std::collections::{HashMap, HashSet};

use gnoma_core::{
    Accumulator, Response, StopReason, StreamEvent, Usage, message::CallId, stream::Slot,
};

use crate::conversation::{Conversation, unique_id};

/// An answer of so few tokens has used up no output limit.
const FEW_TOKENS: u64 = 16;

/// The parts of an answer that have come so far, and the ids that its calls will have in the history.
#[derive(Debug, Default)]
pub(super) struct AnswerDraft {
    parts: Accumulator,
    drafts: HashMap<Slot, CallId>,
    drafted: HashSet<CallId>,
}

impl AnswerDraft {
    pub(super) fn push(&mut self, event: &StreamEvent) {
        self.parts.push(event);
    }

    pub(super) fn has_content(&self) -> bool {
        self.parts.has_content()
    }

    /// Reports whether the answer says something, or has begun a call.
    pub(super) fn has_words(&self) -> bool {
        self.parts.has_words()
    }

    pub(super) fn has_call(&self) -> bool {
        self.parts.has_call()
    }

    /// Reports whether the answer contains nothing but white space although the output limit was not spent on
    /// hidden reasoning. If such an answer was ended by its length, the window has no room.
    pub(super) fn is_without_room(&self) -> bool {
        let is_spent = |usage: Usage| usage.output > FEW_TOKENS;
        self.parts.is_blank() && !self.is_full() && !self.parts.usage().is_some_and(is_spent)
    }

    /// The provider's word for the end, where gnoma does not know it.
    pub(super) fn unknown_stop(&self) -> Option<&str> {
        self.parts.unknown_stop()
    }

    /// Reports whether the provider's word for the end names a call, such as `MALFORMED_FUNCTION_CALL`: the model wrote one
    /// that the provider could not read.
    pub(super) fn lacks_call(&self) -> bool {
        self.unknown_stop().is_some_and(|word| {
            let word = word.to_ascii_lowercase();
            ["call", "tool", "function"].iter().any(|part| word.contains(part))
        })
    }

    /// The stop reason in the light of what has come.
    pub(super) fn effective_stop(&self, stop: StopReason) -> StopReason {
        self.parts.effective_stop_reason(stop)
    }

    pub(super) fn is_full(&self) -> bool {
        self.parts.is_full()
    }

    /// A call was begun: its id, apart from those of all calls of the conversation. `None` where the block is not a
    /// new call.
    pub(super) fn begin_draft(
        &mut self,
        slot: Slot,
        conversation: &Conversation,
    ) -> Option<CallId> {
        if self.drafts.contains_key(&slot) {
            return None;
        }
        let own = self.parts.call_id(slot)?;
        let is_free = |id: &CallId| !conversation.has_call(id) && !self.drafted.contains(id);
        let id = unique_id(own, is_free);
        self.drafted.insert(id.clone());
        self.drafts.insert(slot, id.clone());
        Some(id)
    }

    /// The call that is written in this block.
    pub(super) fn draft_id(&self, slot: Slot) -> Option<&CallId> {
        self.drafts.get(&slot)
    }

    /// All that has come.
    pub(super) fn finish(self) -> Response {
        self.parts.into_response()
    }
}
