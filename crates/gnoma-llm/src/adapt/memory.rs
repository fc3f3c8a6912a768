//! Remembers the refusals of a server for the next requests of a conversation.
//!
//! A conversation is known by its first message, as where requests are encoded: what is remembered of it
//! goes with that, and no other session knows of it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use gnoma_core::{Message, ModelRequest};

use super::change::Adaptation;

/// Conversations of which something is remembered; the oldest go.
const MAX_KNOWN: usize = 256;

/// The changes that are known for each conversation, the latest last.
#[derive(Default)]
pub(crate) struct AdaptationMemory(Mutex<Vec<KnownConversation>>);

struct KnownConversation {
    first: Weak<Message>,
    model: Arc<str>,
    changes: Vec<Adaptation>,
    /// Pictures that the server has taken.
    accepted: Vec<Arc<str>>,
    /// Tools of tool servers that the server has taken.
    accepted_tools: Vec<String>,
}

impl KnownConversation {
    fn is_of(&self, request: &ModelRequest) -> bool {
        let first = request.messages.first();
        self.model == request.model
            && first.is_some_and(|first| Arc::as_ptr(first) == self.first.as_ptr())
    }
}

impl AdaptationMemory {
    /// Returns the changes that apply to requests of this conversation.
    pub(crate) fn changes_for(&self, request: &ModelRequest) -> Vec<Adaptation> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.iter().find(|known| known.is_of(request));
        known.map(|known| known.changes.clone()).unwrap_or_default()
    }

    /// The pictures of the conversation that the server has taken.
    pub(crate) fn accepted_pictures(&self, request: &ModelRequest) -> Vec<Arc<str>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.iter().find(|known| known.is_of(request));
        known.map(|known| known.accepted.clone()).unwrap_or_default()
    }

    /// The tools of tool servers that the server has taken in the conversation.
    pub(crate) fn accepted_tools(&self, request: &ModelRequest) -> Vec<String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.iter().find(|known| known.is_of(request));
        known.map(|known| known.accepted_tools.clone()).unwrap_or_default()
    }

    /// Such requests are changed so from now on.
    pub(crate) fn record_changes(&self, request: &ModelRequest, changes: Vec<Adaptation>) {
        self.update_conversation(request, |known| known.changes = changes);
    }

    /// The server has taken these pictures: trials go on with the next ones.
    pub(crate) fn accept_pictures(&self, request: &ModelRequest, pictures: Vec<Arc<str>>) {
        let is_tried = self
            .changes_for(request)
            .iter()
            .any(|change| matches!(change, Adaptation::RefusedPictures(_)));
        if pictures.is_empty() && !is_tried {
            return;
        }
        self.update_conversation(request, |known| {
            for change in &mut known.changes {
                if let Adaptation::RefusedPictures(refused) = change {
                    refused.record_accepted(&pictures);
                }
            }
            if !pictures.is_empty() {
                known.accepted = pictures;
            }
        });
    }

    /// The server has taken these tools of tool servers: trials go on with the next group.
    pub(crate) fn accept_tools(&self, request: &ModelRequest, tools: Vec<String>) {
        let is_tried = self
            .changes_for(request)
            .iter()
            .any(|change| matches!(change, Adaptation::ToolTrials(_)));
        if tools.is_empty() && !is_tried {
            return;
        }
        self.update_conversation(request, |known| {
            known.accepted_tools = tools;
            for change in &mut known.changes {
                if let Adaptation::ToolTrials(trials) = change {
                    trials.record_accepted();
                }
            }
        });
    }

    fn update_conversation(
        &self,
        request: &ModelRequest,
        change: impl FnOnce(&mut KnownConversation),
    ) {
        let Some(first) = request.messages.first() else { return };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.first.strong_count() > 0);
        let place = all.iter().position(|known| known.is_of(request));
        let mut known = match place {
            Some(at) => all.remove(at),
            None => KnownConversation {
                first: Arc::downgrade(first),
                model: Arc::clone(&request.model),
                changes: Vec::new(),
                accepted: Vec::new(),
                accepted_tools: Vec::new(),
            },
        };
        if all.len() >= MAX_KNOWN {
            all.remove(0);
        }
        change(&mut known);
        all.push(known);
    }
}
