//! Opinions about a call or its parts, and how they combine into a verdict.

use gnoma_core::session::PermissionMode;

use super::rule::Rule;

/// Most rules that one answer of "always" adds.
const MAX_ALWAYS: usize = 8;

/// The beginning of a reason that people must see. Front ends know it by this.
const LOUD: &str = "CONFIRMED BYPASS";

/// From the freest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Decision {
    Allow,
    Ask,
    Deny,
}

/// A decision with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opinion {
    pub(crate) decision: Decision,
    /// The reason for the decision, in one line.
    pub(crate) reason: String,
    /// The rules that would answer the question for good; `None` where no rule may.
    pub(crate) always: Option<Vec<Rule>>,
    /// Running it where nothing comes of it would answer the question.
    pub(crate) can_be_tried: bool,
    /// The parts of a question that name a danger, without the name of the mode that asks.
    pub(crate) dangers: Vec<String>,
}

impl Opinion {
    pub(crate) fn allow(reason: impl Into<String>) -> Self {
        Self::with_decision(Decision::Allow, reason)
    }

    pub(crate) fn deny(reason: impl Into<String>) -> Self {
        Self::with_decision(Decision::Deny, reason)
    }

    /// A question that has to be asked every time.
    pub(crate) fn ask(reason: impl Into<String>) -> Self {
        Self::with_decision(Decision::Ask, reason)
    }

    fn with_decision(decision: Decision, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { decision, reason, always: None, can_be_tried: false, dangers: Vec::new() }
    }

    /// Marks a question as one about a danger: something is lost, leaves the machine, or is not what it seems.
    pub(crate) fn mark_danger(mut self, mode: PermissionMode) -> Self {
        if self.decision == Decision::Ask {
            let prefix = format!("mode {mode}: ");
            let words = self.reason.strip_prefix(&prefix).unwrap_or(&self.reason);
            self.dangers = vec![words.to_owned()];
        }
        self
    }

    pub(crate) fn with_always(mut self, rules: Option<Vec<Rule>>) -> Self {
        self.always = rules.filter(|rules| !rules.is_empty() && rules.len() <= MAX_ALWAYS);
        self
    }

    /// The same, where running it on trial would answer it.
    pub(crate) fn unless_tried(self, can_be_tried: bool) -> Self {
        Self { can_be_tried, ..self }
    }

    /// Allows what only a confirmed bypass allows, with a reason that people must see.
    pub(crate) fn loudly_allow(reason: &str) -> Self {
        Self::allow(format!("{LOUD}: {reason}"))
    }

    fn is_loud(&self) -> bool {
        self.reason.starts_with(LOUD)
    }

    /// The stricter of two; of two questions the first, for good only with the rules of both.
    pub(crate) fn merge_stricter(self, other: Self) -> Self {
        let is_answered =
            |opinion: &Self| opinion.decision == Decision::Allow || opinion.can_be_tried;
        let can_be_tried = is_answered(&self) && is_answered(&other);
        match self.decision.cmp(&other.decision) {
            std::cmp::Ordering::Less => Self { can_be_tried, ..other },
            std::cmp::Ordering::Greater => Self { can_be_tried, ..self },
            std::cmp::Ordering::Equal => {
                let louder = other.is_loud() && !self.is_loud();
                let both = self.always.zip(other.always).map(|(mut rules, more)| {
                    for rule in more {
                        if !rules.contains(&rule) {
                            rules.push(rule);
                        }
                    }
                    rules
                });
                let reason = if louder { other.reason } else { self.reason };
                let mut dangers = self.dangers;
                for danger in other.dangers {
                    if !dangers.contains(&danger) {
                        dangers.push(danger);
                    }
                }
                let decision = self.decision;
                Self { decision, reason, always: None, can_be_tried, dangers }.with_always(both)
            }
        }
    }
}
