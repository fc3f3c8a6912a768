//! Compaction between turns, because a person asks for it, and the person's changes to its summary. Messages that
//! people send meanwhile wait until it ends.

use std::mem;

use gnoma_core::{Event, Message, session::SessionState, text_truncation};

use super::{Phase, Turn, protocol::SummaryCommand};
use crate::{
    compaction::{Compaction, CompactionCause},
    prompt,
};

/// Most bytes of a summary that a person wrote.
const MAX_EDITED_BYTES: usize = 256 << 10;

impl Turn {
    pub(super) fn on_summary_command(&mut self, phase: Phase, command: SummaryCommand) -> Phase {
        let is_free = matches!(phase, Phase::Idle) && !self.is_closing;
        match command {
            SummaryCommand::Compact { focus } => return self.compact_as_asked(phase, focus),
            SummaryCommand::Edit { .. } if !is_free => {
                self.cx.warn("cannot edit the summary during a turn; wait for it to finish");
            }
            SummaryCommand::Undo if !is_free => {
                self.cx.warn("cannot undo a compaction during a turn; wait for it to finish");
            }
            SummaryCommand::Edit { summary } => self.edit_summary(&summary),
            SummaryCommand::Undo => self.undo_compaction(),
        }
        phase
    }

    fn compact_as_asked(&mut self, phase: Phase, focus: String) -> Phase {
        match phase {
            Phase::Idle if !self.is_closing => {
                let cause = CompactionCause::Asked;
                return Phase::Compacting(Compaction::start(cause, focus, &mut self.cx));
            }
            Phase::Idle => (),
            Phase::Compacting(_) => self.cx.inform("already compacting the conversation"),
            Phase::Calling(ref call) if call.is_compacting() => {
                self.cx.inform("already compacting the conversation");
            }
            _ => {
                let text = "cannot compact during a turn; wait for it to finish, or stop it first";
                self.cx.warn(text);
            }
        }
        phase
    }

    fn edit_summary(&mut self, words: &str) {
        let words = text_truncation::word_prefix(words.trim(), MAX_EDITED_BYTES);
        if self.cx.conversation.as_sent().0.is_none() {
            self.cx.warn("there is no summary to edit; /compact makes one");
        } else if words.is_empty() {
            self.cx.warn(
                "an empty summary would lose the conversation; /compact undo undoes the \
                 compaction",
            );
        } else {
            let message = Message::user_text(prompt::summary_note(words));
            let messages = self.cx.conversation.summary_end();
            self.cx.conversation.replace_summary(message, messages);
            self.cx.emit(Event::Compacted { summary: words.to_owned(), messages });
        }
    }

    /// Undoes the last compaction, or the last edit of its summary.
    fn undo_compaction(&mut self) {
        let is_undone = self.cx.conversation.undo_compaction();
        let summary = self.cx.conversation.as_sent().0;
        if is_undone {
            let summary = summary.and_then(|summary| prompt::summary_of(summary));
            let messages = self.cx.conversation.summary_end();
            self.cx.emit(Event::Uncompacted { summary, messages });
        } else if summary.is_none() {
            self.cx.warn("nothing to undo: the conversation is not compacted");
        } else {
            self.cx.warn(
                "this compaction was made before the session was opened and cannot be undone \
                 here; /compact edit changes its summary",
            );
        }
    }

    /// Ends a compaction that a person asked for, and starts a turn with the messages that arrived in the meantime.
    pub(super) fn become_idle(&mut self) -> Phase {
        self.enter_state(SessionState::Idle);
        let mut waiting = mem::take(&mut self.queued).into_iter();
        match waiting.next().filter(|_| !self.is_closing) {
            None => Phase::Idle,
            Some(first) => {
                self.queued = waiting.collect();
                self.start_with_message(first)
            }
        }
    }
}
