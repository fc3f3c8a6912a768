//! Compaction: because a person asks for it, because the window of the current arm is almost full, or because a
//! provider rejected the length. Pure.
//!
//! ```text
//! start ──► deciding ── Begun ──► summarizing ── Ended ──► Shortened | NotShortened
//!              └──────────── Ended ─────────────────────►  NotPossible
//! ```
//!
//! Nothing changes until the summary exists and is shorter; the history itself never changes. After
//! [`Effect::Summarize`], a compaction wants nothing any more but to tell its end, which comes once.

use gnoma_core::{Event, Message};

use crate::{
    compact::{CompactionSummary, FEW_MESSAGES, SummarizedRange},
    context::Strategy,
    effect::{CompactionRequest, Effect},
    turn_context::TurnContext,
};

/// After so many failures in a row only a person starts it.
const MAX_FAILURES: u32 = 3;

/// The reason why the conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionCause {
    /// A person asked for it, between turns.
    Asked,
    /// The window is about to be full.
    Filled,
    /// The provider has refused the conversation for its length.
    Refused,
}

/// The reason why the conversation was not compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompactionFailure {
    /// There is nothing to compact.
    NothingToShorten,
    /// No arm can be asked.
    NobodyToAsk,
    /// The arms that were asked gave no summary, for this reason.
    Failed(String),
    /// A hook forbids the compaction, for this reason.
    Blocked(String),
}

/// Facts for a compaction.
#[derive(Clone, Debug)]
pub(crate) enum CompactionInput {
    /// A summary of what the cut names was requested.
    Begun(SummarizedRange),
    /// The summary, or why there is none.
    Ended(Result<CompactionSummary, CompactionFailure>),
}

/// The end of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionEnd {
    /// Models receive less from now on.
    Shortened,
    /// It was tried, and nothing changed.
    NotShortened,
    /// There was nothing to try.
    NotPossible,
}

/// A compaction that is under way.
#[derive(Debug)]
pub(crate) struct Compaction {
    cause: CompactionCause,
    /// What is summarized, once a summary was requested.
    cut: Option<SummarizedRange>,
}

impl Compaction {
    /// Reports whether compaction may start by itself.
    pub(crate) fn may_start(cx: &TurnContext) -> bool {
        cx.limits.compaction != Strategy::Summarize || cx.compaction_failures < MAX_FAILURES
    }

    /// Starts a compaction whose summary should dwell on `focus`.
    pub(crate) fn start(cause: CompactionCause, focus: String, cx: &mut TurnContext) -> Self {
        let is_asked = cause == CompactionCause::Asked;
        let strategy = match (is_asked, cx.limits.compaction) {
            // A person asks for a summary, and gets one or nothing.
            (true, Strategy::Truncate) => Strategy::Full,
            (false, Strategy::Full) if cx.compaction_failures >= MAX_FAILURES => Strategy::Truncate,
            (_, configured) => configured,
        };
        let whatever_it_wins = cause != CompactionCause::Filled;
        let request = CompactionRequest { focus, whatever_it_wins, strategy, is_asked };
        cx.push(Effect::Summarize(request));
        Self { cause, cut: None }
    }

    /// Reports whether a summary was requested.
    pub(crate) fn is_begun(&self) -> bool {
        self.cut.is_some()
    }

    /// Takes one fact; returns the end of the compaction with the last one.
    pub(crate) fn handle_input(
        &mut self,
        input: CompactionInput,
        cx: &mut TurnContext,
    ) -> Option<CompactionEnd> {
        match input {
            // A second one is late.
            CompactionInput::Begun(_) if self.is_begun() => return None,
            CompactionInput::Begun(cut) => self.cut = Some(cut),
            CompactionInput::Ended(told) => return Some(self.end(told, cx)),
        }
        match self.cause {
            CompactionCause::Asked => (),
            CompactionCause::Filled => {
                cx.inform("the context window is almost full: compacting the conversation");
            }
            CompactionCause::Refused => {
                cx.inform("the conversation is too long for the model: compacting it");
            }
        }
        None
    }

    /// The words are there, or will not come.
    fn end(
        &self,
        told: Result<CompactionSummary, CompactionFailure>,
        cx: &mut TurnContext,
    ) -> CompactionEnd {
        let shorter = told.and_then(|told| {
            let cut = self.cut.as_ref().ok_or(CompactionFailure::NothingToShorten)?;
            cut.build_summary(&told).map_err(|why| CompactionFailure::Failed(why.to_owned()))
        });
        match shorter {
            Ok(told) => {
                cx.compaction_failures = 0;
                self.apply_summary(told, cx)
            }
            Err(CompactionFailure::Failed(why)) => self.end_without_summary(&why, cx),
            Err(CompactionFailure::Blocked(why)) => self.end_unchanged(&why, cx),
            Err(CompactionFailure::NobodyToAsk) => {
                if self.cause == CompactionCause::Asked {
                    cx.warn("could not compact the conversation: no model is available to summarize it; `gnoma route \"TASK\"` shows why each is excluded");
                }
                CompactionEnd::NotPossible
            }
            Err(CompactionFailure::NothingToShorten) => {
                if self.cause == CompactionCause::Asked {
                    cx.inform(format!(
                        "nothing to compact: the conversation has at most {FEW_MESSAGES} messages"
                    ));
                }
                CompactionEnd::NotPossible
            }
        }
    }

    /// Models receive this from now on.
    fn apply_summary(
        &self,
        (summary, message): (String, Message),
        cx: &mut TurnContext,
    ) -> CompactionEnd {
        let messages = self.cut.as_ref().map_or(0, |cut| cut.messages);
        cx.conversation.replace_summary(message, messages);
        cx.emit(Event::Compacted { summary, messages });
        CompactionEnd::Shortened
    }

    /// There is no summary. Unless a person waits for one, the past is left out, so that the turn can end.
    fn end_without_summary(&self, why: &str, cx: &mut TurnContext) -> CompactionEnd {
        let may_truncate =
            cx.limits.compaction == Strategy::Full && self.cause != CompactionCause::Asked;
        let left_out = self.cut.as_ref().filter(|_| may_truncate);
        let Some(Ok(told)) = left_out.map(|cut| cut.build_summary(&CompactionSummary::default()))
        else {
            return self.end_unchanged(why, cx);
        };
        let text = format!(
            "could not summarize the conversation: {why}; its oldest messages are left out \
             instead, except yours"
        );
        warn_failure(text, cx);
        self.apply_summary(told, cx)
    }

    fn end_unchanged(&self, why: &str, cx: &mut TurnContext) -> CompactionEnd {
        let text = format!("could not compact the conversation: {why}; nothing changed");
        if self.cause == CompactionCause::Asked {
            let remedy = "Retry with /compact, or choose another model with /model.";
            cx.warn(format!("{text}. {remedy}"));
        } else {
            warn_failure(text, cx);
        }
        CompactionEnd::NotShortened
    }
}

/// Counts a failure, and warns of it.
fn warn_failure(mut text: String, cx: &mut TurnContext) {
    cx.compaction_failures += 1;
    if cx.compaction_failures == MAX_FAILURES {
        text.push_str(". gnoma will not retry by itself; use /compact.");
    }
    cx.warn(text);
}

#[cfg(test)]
pub(crate) mod laws;
