//! What is asked of the router and what it is told afterwards. Plain data.

use std::sync::Arc;

use crate::arm::{ArmId, Capabilities, Offer};
pub use crate::kind::TaskKind;

/// What a task must have, and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// Its type.
    pub kind: TaskKind,
    /// Micro-dollars that a right result is worth.
    pub value_micro_usd: u64,
    /// Micro-dollars that each second of waiting costs; 0 when nobody waits.
    pub second_micro_usd: u64,
    /// Tools must be called.
    pub tools: bool,
    /// Pictures must be seen.
    pub vision: bool,
    /// Thinking is asked for.
    pub thinking: bool,
    /// The answer must follow a schema.
    pub structured_output: bool,
    /// Tokens of context the task takes.
    pub context_tokens: u64,
    /// Nothing may leave this machine.
    pub local_only: bool,
}

impl Need {
    /// A task of this kind and value that asks for nothing special.
    #[must_use]
    pub fn new(kind: TaskKind, value_micro_usd: u64) -> Self {
        Self {
            kind,
            value_micro_usd,
            second_micro_usd: 0,
            tools: false,
            vision: false,
            thinking: false,
            structured_output: false,
            context_tokens: 0,
            local_only: false,
        }
    }

    /// The first thing the offer lacks.
    #[must_use]
    pub fn unmet_by(&self, offer: &Offer) -> Option<Unmet> {
        if let Some(reason) = &offer.barred {
            return Some(Unmet::Barred(reason.clone()));
        }
        let Capabilities { tools, vision, thinking, structured_output, context_window, local } =
            offer.capabilities;
        let too_long = context_window.is_some_and(|window| window < self.context_tokens);
        [
            (self.tools && !tools, Unmet::Tools),
            (self.vision && !vision, Unmet::Vision),
            (self.thinking && !thinking, Unmet::Thinking),
            (self.structured_output && !structured_output, Unmet::Schema),
            (too_long, Unmet::Context),
            (self.local_only && !local, Unmet::Local),
        ]
        .into_iter()
        .find_map(|(lacks, what)| lacks.then_some(what))
    }
}

/// What an offer lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// It may not be used now, for this reason.
    Barred(Arc<str>),
    /// It calls no tools.
    Tools,
    /// It sees no pictures.
    Vision,
    /// It does not think.
    Thinking,
    /// It follows no schema.
    Schema,
    /// Its window is too small.
    Context,
    /// It is elsewhere, and nothing may leave this machine.
    Local,
}

impl Unmet {
    /// In words that follow an arm's name.
    #[must_use]
    pub fn words(&self) -> Arc<str> {
        match self {
            Self::Barred(reason) => reason.clone(),
            Self::Tools => "cannot call tools".into(),
            Self::Vision => "cannot see pictures".into(),
            Self::Thinking => "cannot think".into(),
            Self::Schema => "cannot follow a schema".into(),
            Self::Context => "has too small a context window".into(),
            Self::Local => "is not local, and nothing may leave this machine".into(),
        }
    }
}

/// One try at the task by one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Who.
    pub arm: ArmId,
    /// What the verifier said; `None` when nobody looked.
    pub verdict: Option<bool>,
    /// What it cost, check included.
    pub cost_micro_usd: u64,
}

/// Where a task stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// The task.
    pub need: Need,
    /// What was tried.
    pub attempts: Vec<Attempt>,
    /// How often one may still try.
    pub attempts_left: usize,
    /// Whether attempts are checked before they are delivered.
    pub verified: bool,
}

/// An attempt, and what turned out.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The try.
    pub attempt: Attempt,
    /// Whether it was right; `None` when nobody knows.
    pub right: Option<bool>,
    /// The part of the work that was this arm's own, above 0 and up to 1: so much is learnt from it.
    pub weight: f64,
}

/// A task that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskOutcome {
    /// Its type.
    pub kind: TaskKind,
    /// All tries, in order.
    pub tried: Vec<Tried>,
}
