//! What servers have said of the requests of a conversation.
//!
//! A conversation is known by its first message, as where requests are encoded: what is remembered of it
//! goes with that, and no other session knows of it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use gnoma_core::{Message, ModelRequest};

use super::change::Adaptation;

/// Conversations of which something is remembered; the oldest go.
const MAX_KNOWN: usize = 256;

/// What is known of each conversation, the latest last.
#[derive(Default)]
pub(crate) struct AdaptationMemory(Mutex<Vec<KnownConversation>>);

struct KnownConversation {
    first: Weak<Message>,
    model: Arc<str>,
    changes: Vec<Adaptation>,
}

impl KnownConversation {
    fn is_of(&self, request: &ModelRequest) -> bool {
        let first = request.messages.first();
        self.model == request.model
            && first.is_some_and(|first| Arc::as_ptr(first) == self.first.as_ptr())
    }
}

impl AdaptationMemory {
    /// What is changed in such requests.
    pub(crate) fn of(&self, request: &ModelRequest) -> Vec<Adaptation> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.iter().find(|known| known.is_of(request));
        known.map(|known| known.changes.clone()).unwrap_or_default()
    }

    /// They are changed so from now on.
    pub(crate) fn keep(&self, request: &ModelRequest, changes: Vec<Adaptation>) {
        let Some(first) = request.messages.first() else { return };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.first.strong_count() > 0 && !known.is_of(request));
        if all.len() >= MAX_KNOWN {
            all.remove(0);
        }
        let (first, model) = (Arc::downgrade(first), Arc::clone(&request.model));
        all.push(KnownConversation { first, model, changes });
    }
}
