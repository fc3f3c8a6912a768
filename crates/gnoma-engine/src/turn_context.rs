//! The state that a turn, its calls to models and compaction share, and the effects that they want.

use std::sync::Arc;

use gnoma_core::{Event, Message, ModelRef, Response, Usage, session::NoticeLevel};

use crate::{
    answer_form::AnswerFormProgress,
    conversation::Conversation,
    effect::{Effect, Effects},
    limits::Limits,
};

/// The state of a session that its machines share. Turns and calls come and go.
#[derive(Debug, Default)]
pub(crate) struct TurnContext {
    pub(crate) conversation: Conversation,
    pub(crate) limits: Limits,
    /// The form that answers must have.
    pub(crate) answer_form: Option<AnswerFormProgress>,
    /// Tokens that the turn has taken.
    pub(crate) usage: Usage,
    /// The number of compactions in a row that failed without a person having asked for them.
    pub(crate) compaction_failures: u32,
    /// The state of the jitter of waits.
    pub(crate) jitter: u64,
    /// The effects that follow from the fact that is being handled.
    pub(crate) effects: Effects,
}

impl TurnContext {
    pub(crate) fn new(history: Vec<Arc<Message>>, limits: Limits) -> Self {
        let (conversation, jitter) = (Conversation::new(history), limits.seed);
        Self { conversation, limits, jitter, ..Self::default() }
    }

    /// Adds an effect.
    pub(crate) fn push(&mut self, effect: impl Into<Effect>) {
        self.effects.push(effect.into());
    }

    /// Tells the front ends.
    pub(crate) fn emit(&mut self, event: Event) {
        self.effects.push(Effect::Emit(event));
    }

    pub(crate) fn inform(&mut self, text: impl Into<String>) {
        self.emit(Event::Notice { level: NoticeLevel::Info, text: text.into() });
    }

    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.emit(Event::Notice { level: NoticeLevel::Warning, text: text.into() });
    }

    /// Appends a message to the conversation, and tells the front ends of it.
    pub(crate) fn append(&mut self, message: Message) -> Arc<Message> {
        let message = self.conversation.append(message);
        self.emit(Event::Appended(Arc::clone(&message)));
        message
    }

    /// Appends an answer, as far as it may stand in a conversation.
    pub(crate) fn append_answer(
        &mut self,
        response: Response,
        origin: Option<ModelRef>,
    ) -> Option<Arc<Message>> {
        let message = self.conversation.claim_call_ids(response).into_message(origin)?;
        Some(self.append(message))
    }
}
