//! What is asked of the router and what it is told afterwards. Plain data.

use std::sync::Arc;

use crate::arm::{Arm, ArmId, Offer};
pub use crate::kind::TaskKind;

/// The requirements of a task, and its worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The type of the task.
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
    /// True if nothing may leave this machine.
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
    pub fn unmet_by(&self, offer: &Offer) -> Option<UnmetNeed> {
        if let Some(reason) = &offer.barred {
            return Some(UnmetNeed::Barred(reason.clone()));
        }
        let Arm { tools, vision, thinking, structured_output, context_window, stays_here, .. } =
            *offer.arm;
        let too_long = context_window.is_some_and(|window| u64::from(window) < self.context_tokens);
        [
            (self.tools && !tools, UnmetNeed::Tools),
            (self.vision && !vision, UnmetNeed::Vision),
            (self.thinking && !thinking, UnmetNeed::Thinking),
            (self.structured_output && !structured_output, UnmetNeed::Schema),
            (too_long, UnmetNeed::Context),
            (self.local_only && !stays_here, UnmetNeed::Local),
        ]
        .into_iter()
        .find_map(|(lacks, what)| lacks.then_some(what))
    }
}

/// The requirement that an offer does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnmetNeed {
    /// The arm may not be used now, for this reason.
    Barred(Arc<str>),
    /// The arm calls no tools.
    Tools,
    /// The arm sees no pictures.
    Vision,
    /// The arm does not think.
    Thinking,
    /// The arm follows no schema.
    Schema,
    /// The arm's window is too small.
    Context,
    /// The arm is elsewhere, and nothing may leave this machine.
    Local,
}

impl UnmetNeed {
    /// In words that follow an arm's name.
    #[must_use]
    pub fn reason_text(&self) -> Arc<str> {
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
    /// The arm that made the attempt.
    pub arm: ArmId,
    /// The verdict of the verifier; `None` when the attempt was not checked.
    pub verdict: Option<bool>,
    /// The cost of the attempt in micro-dollars, check included.
    pub cost_micro_usd: u64,
}

/// The state of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// The requirements of the task.
    pub need: Need,
    /// The attempts made so far.
    pub attempts: Vec<Attempt>,
    /// The number of attempts that may still be made.
    pub attempts_left: usize,
    /// True if attempts are checked before they are delivered.
    pub verified: bool,
}

/// An attempt, and what turned out.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptResult {
    /// The attempt that was made.
    pub attempt: Attempt,
    /// `true` if the attempt was right; `None` when that is not known.
    pub right: Option<bool>,
    /// The part of the work that was this arm's own, above 0 and up to 1: so much is learnt from it.
    pub weight: f64,
}

/// A task that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskOutcome {
    /// The type of the task.
    pub kind: TaskKind,
    /// All tries, in order.
    pub tried: Vec<AttemptResult>,
}
