//! The past of the conversation is told in fewer words: because a person asks for it, because the
//! window of the arm in charge is about to be full, or because a provider refused the length.
//!
//! Nothing changes until the words are there and are fewer; the history itself never does. What people
//! say while a person's wish is carried out waits for its end.

use std::{mem, sync::Arc};

use gnoma_core::{
    Event,
    session::{NoticeLevel, SessionState},
};

use super::{
    Effects, Turn,
    phase::{Cause, Phase},
    protocol::{Effect, NotCompacted},
};
use crate::{
    compact::{Cut, FEW_MESSAGES},
    planned,
};

/// After so many failures in a row only a person starts it.
const MAX_FAILURES: u32 = 3;

impl Turn {
    /// Whether it may start by itself: once for each round.
    pub(super) fn may_compact(&self) -> bool {
        !self.has_compacted && self.compaction_failures < MAX_FAILURES
    }

    /// A person asks for it.
    pub(super) fn compact_as_asked(
        &mut self,
        phase: Phase,
        focus: String,
        fx: &mut Effects,
    ) -> Phase {
        match phase {
            Phase::Idle if !self.is_closing => self.compact(Cause::Asked, focus, fx),
            Phase::Idle => Phase::Idle,
            Phase::Compacting { .. } => {
                info("already compacting the conversation", fx);
                phase
            }
            busy => {
                let text = "cannot compact during a turn; wait for it to finish, or stop it first";
                warn(text.to_owned(), fx);
                busy
            }
        }
    }

    pub(super) fn compact(&mut self, cause: Cause, focus: String, fx: &mut Effects) -> Phase {
        let whatever_it_wins = !matches!(cause, Cause::Filled { .. });
        fx.push(Effect::Compact { focus, whatever_it_wins });
        Phase::Compacting { cause, cut: None }
    }

    /// Somebody was asked for the words.
    pub(super) fn compaction_begun(&mut self, cause: Cause, cut: Cut, fx: &mut Effects) -> Phase {
        self.has_compacted = true;
        match &cause {
            Cause::Asked => self.enter(SessionState::Active, fx),
            Cause::Filled { .. } => {
                info("the context window is almost full: compacting the conversation", fx);
            }
            Cause::Refused { .. } => {
                info("the conversation is too long for the model: compacting it", fx);
            }
        }
        Phase::Compacting { cause, cut: Some(cut) }
    }

    /// The words are there, or will not come.
    pub(super) fn compacted(
        &mut self,
        cause: Cause,
        cut: Option<&Cut>,
        words: Result<String, NotCompacted>,
        fx: &mut Effects,
    ) -> Phase {
        let shorter = words.and_then(|text| {
            let cut = cut.ok_or(NotCompacted::NothingToShorten)?;
            let text = planned::kept(text, &self.history);
            cut.summary(&text).map_err(|why| NotCompacted::Failed(why.to_owned()))
        });
        match shorter {
            Ok((words, message)) => {
                let messages = cut.map_or(0, |cut| cut.messages);
                self.summary = Some(Arc::new(message));
                self.told_from = messages;
                self.compaction_failures = 0;
                fx.push(Effect::Emit(Event::Compacted { summary: words, messages }));
                match cause {
                    Cause::Asked => self.rest(fx),
                    Cause::Filled { attempt } => self.reserve(attempt, fx),
                    Cause::Refused { attempt, .. } => self.reserve(attempt + 1, fx),
                }
            }
            Err(NotCompacted::Failed(why)) => self.not_compacted(cause, &why, fx),
            Err(not_begun @ (NotCompacted::NothingToShorten | NotCompacted::NobodyToAsk)) => {
                self.cannot_compact(cause, &not_begun, fx)
            }
        }
    }

    fn cannot_compact(&mut self, cause: Cause, why: &NotCompacted, fx: &mut Effects) -> Phase {
        match (cause, why) {
            (Cause::Asked, NotCompacted::NobodyToAsk) => {
                let text = "could not compact the conversation: no model is available to summarize it; `gnoma route` shows why each is excluded";
                warn(text.to_owned(), fx);
                self.rest(fx)
            }
            (Cause::Asked, _) => {
                let text = format!(
                    "nothing to compact: the conversation has at most {FEW_MESSAGES} messages"
                );
                info(&text, fx);
                self.rest(fx)
            }
            (Cause::Filled { attempt }, _) => self.reserve_with(attempt, false, fx),
            (Cause::Refused { attempt, error }, _) => {
                self.failed(attempt, super::answer::AnswerDraft::default(), error, fx)
            }
        }
    }

    fn not_compacted(&mut self, cause: Cause, why: &str, fx: &mut Effects) -> Phase {
        let mut text = format!("could not compact the conversation: {why}; nothing changed");
        if matches!(cause, Cause::Asked) {
            text.push_str(". Retry with /compact, or choose another model with /model.");
            warn(text, fx);
            return self.rest(fx);
        }
        self.compaction_failures += 1;
        if self.compaction_failures == MAX_FAILURES {
            text.push_str(". gnoma will not retry by itself; use /compact.");
        }
        warn(text, fx);
        match cause {
            Cause::Asked => self.rest(fx),
            Cause::Filled { attempt } => self.reserve(attempt, fx),
            Cause::Refused { attempt, error } => {
                let hint = "Use /compact, switch to a model with a larger window, or start over with /clear.";
                let error = if error.hint.is_some() { error } else { error.with_hint(hint) };
                self.failed(attempt, super::answer::AnswerDraft::default(), error, fx)
            }
        }
    }

    /// Somebody wants an end of it.
    pub(super) fn stop_compacting(&mut self, fx: &mut Effects) -> Phase {
        info("stopped; the conversation is unchanged", fx);
        self.rest(fx)
    }

    /// What a person asked for is over; what was said meanwhile is heard now.
    fn rest(&mut self, fx: &mut Effects) -> Phase {
        self.enter(SessionState::Idle, fx);
        let mut waiting = mem::take(&mut self.queued).into_iter();
        match waiting.next().filter(|_| !self.is_closing) {
            None => Phase::Idle,
            Some(first) => {
                self.queued = waiting.collect();
                self.start(first, fx)
            }
        }
    }
}

fn info(text: &str, fx: &mut Effects) {
    let level = NoticeLevel::Info;
    fx.push(Effect::Emit(Event::Notice { level, text: text.to_owned() }));
}

pub(super) fn warn(text: String, fx: &mut Effects) {
    fx.push(Effect::Emit(Event::Notice { level: NoticeLevel::Warning, text }));
}
