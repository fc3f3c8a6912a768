//! What models receive in place of the beginning of the history, and what they received before.

use std::{collections::VecDeque, mem, sync::Arc};

use gnoma_core::Message;

use crate::prompt;

/// Compactions that can be taken back.
const MAX_BEFORE: usize = 16;

/// The summary that models receive in place of the beginning of the history.
#[derive(Debug, Default)]
pub(super) struct SummarizedPrefix {
    pub(super) summary: Option<Arc<Message>>,
    /// The index in the history at which the verbatim part begins.
    pub(super) from: usize,
    /// The earlier states of this, which models received before; the latest is last.
    before: VecDeque<(Option<Arc<Message>>, usize)>,
}

impl SummarizedPrefix {
    /// A continued history begins with the summary, if there is one.
    pub(super) fn from_history(history: &[Arc<Message>]) -> Self {
        let summary = history.first().filter(|first| prompt::summary_of(first).is_some());
        let from = usize::from(summary.is_some());
        Self { summary: summary.cloned(), from, before: VecDeque::new() }
    }

    /// The words of the summary.
    pub(super) fn summary_text(&self) -> Option<String> {
        self.summary.as_ref().and_then(|summary| prompt::summary_of(summary))
    }

    /// They receive this instead.
    pub(super) fn replace_summary(&mut self, summary: Message, from: usize) {
        let was = (self.summary.replace(Arc::new(summary)), mem::replace(&mut self.from, from));
        if self.before.len() == MAX_BEFORE {
            self.before.pop_front();
        }
        self.before.push_back(was);
    }

    /// They receive what they received before. False if that is unknown.
    pub(super) fn undo(&mut self) -> bool {
        let Some((summary, from)) = self.before.pop_back() else { return false };
        (self.summary, self.from) = (summary, from);
        true
    }
}
