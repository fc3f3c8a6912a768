//! Compaction: because a person asks for it, because the window of the current arm is almost full, or because a
//! provider rejected the length.
//!
//! Nothing changes until the summary exists and is shorter; the history itself never changes. Messages that people
//! send during a compaction they asked for wait until it ends.

use std::mem;

use gnoma_core::{
    Event, Message,
    session::{NoticeLevel, SessionState},
    text_truncation,
};

use super::{
    Effects, Turn,
    phase::{Cause, Phase},
    protocol::{CompactionFailure, CompactionRequest, Effect},
};
use crate::{
    compact::{CompactionSummary, FEW_MESSAGES, SummarizedRange},
    context::Strategy,
    prompt,
};

/// After so many failures in a row only a person starts it.
const MAX_FAILURES: u32 = 3;
/// Most bytes of a summary that a person wrote.
const MAX_EDITED_BYTES: usize = 256 << 10;

impl Turn {
    /// Reports whether compaction may start by itself: once for each round.
    pub(super) fn may_compact(&self) -> bool {
        let may_truncate = self.limits.compaction != Strategy::Summarize;
        !self.has_compacted && (may_truncate || self.compaction_failures < MAX_FAILURES)
    }

    /// A person asks for it.
    pub(super) fn compact_as_asked(
        &mut self,
        phase: Phase,
        focus: String,
        fx: &mut Effects,
    ) -> Phase {
        match phase {
            Phase::Idle if !self.is_closing => self.start_compaction(Cause::Asked, focus, fx),
            Phase::Idle => Phase::Idle,
            Phase::Compacting { .. } => {
                emit_info("already compacting the conversation", fx);
                phase
            }
            busy => {
                let text = "cannot compact during a turn; wait for it to finish, or stop it first";
                emit_warning(text.to_owned(), fx);
                busy
            }
        }
    }

    pub(super) fn start_compaction(
        &mut self,
        cause: Cause,
        focus: String,
        fx: &mut Effects,
    ) -> Phase {
        let is_asked = matches!(cause, Cause::Asked);
        let strategy = match (is_asked, self.limits.compaction) {
            // A person asks for a summary, and gets one or nothing.
            (true, Strategy::Truncate) => Strategy::Full,
            (false, Strategy::Full) if self.compaction_failures >= MAX_FAILURES => {
                Strategy::Truncate
            }
            (_, configured) => configured,
        };
        let whatever_it_wins = !matches!(cause, Cause::Filled { .. });
        fx.push(Effect::Compact(CompactionRequest { focus, whatever_it_wins, strategy, is_asked }));
        Phase::Compacting { cause, cut: None }
    }

    /// Waits for the summary that the session has begun to make.
    pub(super) fn compaction_begun(
        &mut self,
        cause: Cause,
        cut: SummarizedRange,
        fx: &mut Effects,
    ) -> Phase {
        self.has_compacted = true;
        match &cause {
            Cause::Asked => self.enter_state(SessionState::Active, fx),
            Cause::Filled { .. } => {
                emit_info("the context window is almost full: compacting the conversation", fx);
            }
            Cause::Refused { .. } => {
                emit_info("the conversation is too long for the model: compacting it", fx);
            }
        }
        Phase::Compacting { cause, cut: Some(cut) }
    }

    /// The words are there, or will not come.
    pub(super) fn on_compaction(
        &mut self,
        cause: Cause,
        cut: Option<&SummarizedRange>,
        told: Result<CompactionSummary, CompactionFailure>,
        fx: &mut Effects,
    ) -> Phase {
        let shorter = told.and_then(|told| {
            let cut = cut.ok_or(CompactionFailure::NothingToShorten)?;
            cut.build_summary(&told).map_err(|why| CompactionFailure::Failed(why.to_owned()))
        });
        match shorter {
            Ok(told) => {
                self.compaction_failures = 0;
                self.apply_summary(&cause, cut, told, fx)
            }
            Err(CompactionFailure::Failed(why)) => self.not_summarized(cause, cut, &why, fx),
            Err(CompactionFailure::Blocked(why)) => self.not_compacted(cause, &why, fx),
            Err(
                not_begun @ (CompactionFailure::NothingToShorten | CompactionFailure::NobodyToAsk),
            ) => self.cannot_compact(cause, &not_begun, fx),
        }
    }

    /// Models receive this from now on.
    fn apply_summary(
        &mut self,
        cause: &Cause,
        cut: Option<&SummarizedRange>,
        (summary, message): (String, Message),
        fx: &mut Effects,
    ) -> Phase {
        let messages = cut.map_or(0, |cut| cut.messages);
        self.told.replace_summary(message, messages);
        fx.push(Effect::Emit(Event::Compacted { summary, messages }));
        match cause {
            Cause::Asked => self.become_idle(fx),
            Cause::Filled { attempt } => self.reserve_call(*attempt, fx),
            Cause::Refused { attempt, .. } => self.reserve_call(*attempt + 1, fx),
        }
    }

    /// There is no summary. Unless a person waits for one, the past is left out, so that the turn can end.
    fn not_summarized(
        &mut self,
        cause: Cause,
        cut: Option<&SummarizedRange>,
        why: &str,
        fx: &mut Effects,
    ) -> Phase {
        let may_truncate = self.limits.compaction == Strategy::Full;
        let left_out = cut.filter(|_| may_truncate && !matches!(cause, Cause::Asked));
        let Some(Ok(told)) = left_out.map(|cut| cut.build_summary(&CompactionSummary::default()))
        else {
            return self.not_compacted(cause, why, fx);
        };
        self.compaction_failures += 1;
        let mut text = format!(
            "could not summarize the conversation: {why}; its oldest messages are left out \
             instead, except yours"
        );
        if self.compaction_failures == MAX_FAILURES {
            text.push_str(". gnoma will not retry by itself; use /compact.");
        }
        emit_warning(text, fx);
        self.apply_summary(&cause, cut, told, fx)
    }

    fn cannot_compact(&mut self, cause: Cause, why: &CompactionFailure, fx: &mut Effects) -> Phase {
        match (cause, why) {
            (Cause::Asked, CompactionFailure::NobodyToAsk) => {
                let text = "could not compact the conversation: no model is available to summarize it; `gnoma route \"TASK\"` shows why each is excluded";
                emit_warning(text.to_owned(), fx);
                self.become_idle(fx)
            }
            (Cause::Asked, _) => {
                let text = format!(
                    "nothing to compact: the conversation has at most {FEW_MESSAGES} messages"
                );
                emit_info(&text, fx);
                self.become_idle(fx)
            }
            (Cause::Filled { attempt }, _) => self.reserve_with(attempt, false, fx),
            (Cause::Refused { attempt, error }, _) => self.on_call_failed(attempt, None, error, fx),
        }
    }

    fn not_compacted(&mut self, cause: Cause, why: &str, fx: &mut Effects) -> Phase {
        let mut text = format!("could not compact the conversation: {why}; nothing changed");
        if matches!(cause, Cause::Asked) {
            text.push_str(". Retry with /compact, or choose another model with /model.");
            emit_warning(text, fx);
            return self.become_idle(fx);
        }
        self.compaction_failures += 1;
        if self.compaction_failures == MAX_FAILURES {
            text.push_str(". gnoma will not retry by itself; use /compact.");
        }
        emit_warning(text, fx);
        match cause {
            Cause::Asked => self.become_idle(fx),
            Cause::Filled { attempt } => self.reserve_call(attempt, fx),
            Cause::Refused { attempt, error } => {
                let hint = "Use /compact, switch to a model with a larger window, or start over with /clear.";
                let error = if error.hint.is_some() { error } else { error.with_hint(hint) };
                self.on_call_failed(attempt, None, error, fx)
            }
        }
    }

    /// A person puts other words in the place of the summary.
    pub(super) fn edit_summary(&mut self, phase: Phase, words: &str, fx: &mut Effects) -> Phase {
        let words = text_truncation::word_prefix(words.trim(), MAX_EDITED_BYTES);
        if !matches!(phase, Phase::Idle) || self.is_closing {
            emit_warning(
                "cannot edit the summary during a turn; wait for it to finish".to_owned(),
                fx,
            );
        } else if self.told.summary.is_none() {
            emit_warning("there is no summary to edit; /compact makes one".to_owned(), fx);
        } else if words.is_empty() {
            let text = "an empty summary would lose the conversation; /compact undo undoes the \
                        compaction";
            emit_warning(text.to_owned(), fx);
        } else {
            let (message, messages) =
                (Message::user_text(prompt::summary_note(words)), self.told.from);
            self.told.replace_summary(message, messages);
            fx.push(Effect::Emit(Event::Compacted { summary: words.to_owned(), messages }));
        }
        phase
    }

    /// A person takes the last compaction back, or the last edit of its summary.
    pub(super) fn undo_compaction(&mut self, phase: Phase, fx: &mut Effects) -> Phase {
        if !matches!(phase, Phase::Idle) || self.is_closing {
            emit_warning(
                "cannot undo a compaction during a turn; wait for it to finish".to_owned(),
                fx,
            );
        } else if self.told.undo() {
            let (summary, messages) = (self.told.summary_text(), self.told.from);
            fx.push(Effect::Emit(Event::Uncompacted { summary, messages }));
        } else {
            let text = match self.told.summary {
                None => "nothing to undo: the conversation is not compacted",
                Some(_) => {
                    "this compaction was made before the session was opened and cannot be undone \
                     here; /compact edit changes its summary"
                }
            };
            emit_warning(text.to_owned(), fx);
        }
        phase
    }

    /// Ends a compaction that a person has stopped.
    pub(super) fn stop_compacting(&mut self, fx: &mut Effects) -> Phase {
        emit_info("stopped; the conversation is unchanged", fx);
        self.become_idle(fx)
    }

    /// Ends a compaction that a person asked for, and starts a turn with the messages that arrived in the meantime.
    fn become_idle(&mut self, fx: &mut Effects) -> Phase {
        self.enter_state(SessionState::Idle, fx);
        let mut waiting = mem::take(&mut self.queued).into_iter();
        match waiting.next().filter(|_| !self.is_closing) {
            None => Phase::Idle,
            Some(first) => {
                self.queued = waiting.collect();
                self.start_with_message(first, fx)
            }
        }
    }
}

fn emit_info(text: &str, fx: &mut Effects) {
    let level = NoticeLevel::Info;
    fx.push(Effect::Emit(Event::Notice { level, text: text.to_owned() }));
}

pub(super) fn emit_warning(text: String, fx: &mut Effects) {
    fx.push(Effect::Emit(Event::Notice { level: NoticeLevel::Warning, text }));
}
