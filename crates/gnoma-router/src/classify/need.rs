//! From what a task is taken for to what it must have and is worth.

use super::{Classification, TaskType};
use crate::task::Need;

/// Micro-dollars that a right result of a normal task is worth where nobody says otherwise: ten dollars, the worth
/// that the shipped tuning was measured with.
pub const DEFAULT_TASK_MICRO_USD: u64 = 10_000_000;
const PERCENT: u128 = 100;

/// Returns how much a task of this type matters, in percent of a normal one.
fn priority_percent(kind: TaskType) -> u32 {
    match kind {
        TaskType::SecurityReview | TaskType::Orchestration => 200,
        TaskType::Debug
        | TaskType::UnitTest
        | TaskType::Review
        | TaskType::Refactor
        | TaskType::Planning
        | TaskType::Explain
        | TaskType::Boilerplate
        | TaskType::Generation => 100,
    }
}

/// The facts about a turn beside its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnFacts {
    /// Pictures are among what is sent.
    pub images: bool,
    /// Tokens of context it takes.
    pub context_tokens: u64,
    /// True if nothing may leave this machine.
    pub local_only: bool,
    /// Thinking was asked for.
    pub thinking: bool,
    /// The answer must follow a schema.
    pub structured_output: bool,
    /// Micro-dollars that each second of waiting costs; 0 when nobody waits.
    pub second_micro_usd: u64,
    /// Micro-dollars that a right result of a normal task is worth.
    pub task_micro_usd: u64,
}

impl Default for TurnFacts {
    fn default() -> Self {
        Self {
            images: false,
            context_tokens: 0,
            local_only: false,
            thinking: false,
            structured_output: false,
            second_micro_usd: 0,
            task_micro_usd: DEFAULT_TASK_MICRO_USD,
        }
    }
}

impl TurnFacts {
    fn value_micro_usd(&self, kind: TaskType) -> u64 {
        let percents = u128::from(priority_percent(kind)) * u128::from(kind.value_percent());
        let value = u128::from(self.task_micro_usd) * percents / (PERCENT * PERCENT);
        u64::try_from(value).unwrap_or(u64::MAX)
    }
}

impl Classification {
    /// Returns what the task must have, and what it is worth.
    #[must_use]
    pub fn to_need(&self, facts: &TurnFacts) -> Need {
        Need {
            kind: self.kind.task_kind(),
            value_micro_usd: facts.value_micro_usd(self.kind),
            second_micro_usd: facts.second_micro_usd,
            tools: self.needs_tools,
            vision: self.needs_vision || facts.images,
            thinking: facts.thinking,
            structured_output: facts.structured_output,
            context_tokens: facts.context_tokens,
            local_only: facts.local_only,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::classify_text;

    #[test]
    fn task_value_is_priority_times_task_type() {
        let worth = |text: &str| classify_text(text).to_need(&TurnFacts::default()).value_micro_usd;
        assert_eq!(worth("fix the crash"), 12_000_000);
        assert_eq!(worth("security audit"), 40_000_000);
        let absurd = TurnFacts { task_micro_usd: u64::MAX, ..TurnFacts::default() };
        assert_eq!(classify_text("security audit").to_need(&absurd).value_micro_usd, u64::MAX);
    }

    #[test]
    fn attached_images_require_a_vision_model() {
        let facts = TurnFacts { images: true, ..TurnFacts::default() };
        assert!(classify_text("make it blue").to_need(&facts).vision);
        assert!(!classify_text("make it blue").to_need(&TurnFacts::default()).vision);
    }
}
