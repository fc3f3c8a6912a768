//! A person's message while it is prepared, and where the machine stops for extensions.

use std::collections::VecDeque;

use gnoma_core::{
    Message,
    lifecycle::{PromptCall, PromptPart},
};

use super::batch::Batch;

/// The points at which the machine stops for extensions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExtensionStops {
    /// All that a person says is prepared.
    pub(crate) prompts: bool,
    /// True if every message that begins with a slash is prepared.
    pub(crate) commands: bool,
    /// True if extensions are asked before the model may stop.
    pub(crate) end: bool,
}

/// Messages that are made ready, one after the other.
#[derive(Debug)]
pub(super) struct PromptPreparation {
    pub(super) ready: Vec<Message>,
    pub(super) current: Message,
    pub(super) left: VecDeque<Message>,
    pub(super) filling: Option<PromptPartCall>,
    /// The turn begins with them.
    pub(super) begins: bool,
    /// A model answers them; otherwise the turn ends once they are in the history.
    pub(super) is_answered: bool,
}

/// The parts that a message is made of, while some are still commands.
#[derive(Debug)]
pub(super) struct PromptTemplate {
    pub(super) parts: Vec<PromptPart>,
    /// The call that is made with the parts once all of them are text.
    pub(super) call: Option<PromptCall>,
    pub(super) context: Vec<String>,
    pub(super) shell: String,
    /// The time limit of its commands in seconds, if they are a step of a task.
    pub(super) step_timeout_s: Option<u64>,
}

/// The call for a part of a message that is under way.
#[derive(Debug)]
pub(super) struct PromptPartCall {
    pub(super) of: PromptTemplate,
    pub(super) at: usize,
    /// The text before a result, and the text before the reason why there is none.
    pub(super) told: (String, String),
    pub(super) batch: Batch,
}

impl PromptPreparation {
    /// The call that is judged, asked for or run.
    pub(super) fn batch(&self) -> Option<&Batch> {
        self.filling.as_ref().map(|filling| &filling.batch)
    }

    /// The call that runs, and what was said and has not reached the history.
    pub(super) fn given_up(self) -> (Option<Batch>, Vec<Message>) {
        let Self { ready, current, left, filling, begins: _, is_answered } = self;
        // The line above a command that was stopped was said by nobody: it stays with the command.
        let current = Some(current).filter(|_| is_answered);
        let said = ready.into_iter().chain(current).chain(left).collect();
        let batch = filling.map(|PromptPartCall { of, mut batch, .. }| {
            if !is_answered && let Some(PromptPart::Text(head)) = of.parts.into_iter().next() {
                batch.stopped_step = Some(head);
            }
            batch
        });
        (batch, said)
    }
}
