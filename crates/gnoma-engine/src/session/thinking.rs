//! Thinking levels: translates the person's choice for each arm and task.

use std::collections::HashSet;

use gnoma_core::{Effort, ModelRef, ThinkingMode};
use gnoma_router::{Arm, choice::Task, classify};

/// Up to this many tokens of thinking are a low effort where a model knows nothing but efforts.
const LOW_TOKENS: u32 = 4_096;
/// Up to this many are a medium one.
const MEDIUM_TOKENS: u32 = 12_288;
/// From this complexity on, in percent, a task is worth a medium effort.
const MEDIUM_PERCENT: u8 = 30;
/// From this one on, it is worth a high one, and a model that can think.
const HIGH_PERCENT: u8 = 60;

/// The amount that models think in a session.
#[derive(Debug, Default)]
pub(super) struct Thinking {
    /// The mode that the person has chosen; `None` leaves it to the settings of each arm.
    pub(super) mode: Option<ThinkingMode>,
    /// Arms that cannot do it, which was said.
    told: HashSet<ModelRef>,
}

impl Thinking {
    pub(super) fn set_mode(&mut self, mode: Option<ThinkingMode>) {
        self.mode = mode;
        self.told.clear();
    }

    /// Reports whether the task needs a model that can think.
    pub(super) fn is_needed(&self, words: &str) -> bool {
        match self.mode {
            None | Some(ThinkingMode::Off) => false,
            Some(ThinkingMode::Tokens(_)) => true,
            Some(ThinkingMode::Adaptive) => estimate_complexity(words) >= HIGH_PERCENT,
        }
    }

    /// Returns the effort and the thinking mode that an arm is asked for.
    pub(super) fn effort_for(
        &self,
        arm: &Arm,
        task: Option<&Task>,
    ) -> (Option<Effort>, Option<ThinkingMode>) {
        let Some(mode) = self.mode else { return (arm.effort, None) };
        let effort = match mode {
            ThinkingMode::Off => Effort::None,
            _ if !arm.thinking => return (None, None),
            ThinkingMode::Adaptive => match task.map_or(0, |task| estimate_complexity(&task.words))
            {
                HIGH_PERCENT.. => Effort::High,
                MEDIUM_PERCENT.. => Effort::Medium,
                _ => Effort::Low,
            },
            ThinkingMode::Tokens(tokens) if tokens <= LOW_TOKENS => Effort::Low,
            ThinkingMode::Tokens(tokens) if tokens <= MEDIUM_TOKENS => Effort::Medium,
            ThinkingMode::Tokens(_) => Effort::High,
        };
        (Some(effort), Some(mode))
    }

    /// Describes the part of the choice that an arm cannot follow, once for each arm.
    pub(super) fn describe_unsupported(&mut self, arm: &Arm) -> Option<String> {
        let name = arm.id.clone();
        let text = match self.mode? {
            ThinkingMode::Off if arm.always_thinks => {
                format!("{name} cannot turn thinking off; it thinks as little as possible")
            }
            ThinkingMode::Adaptive | ThinkingMode::Tokens(_) if !arm.thinking => {
                format!("{name} does not support thinking, so the setting has no effect")
            }
            ThinkingMode::Off | ThinkingMode::Adaptive | ThinkingMode::Tokens(_) => return None,
        };
        self.told.insert(name).then_some(text)
    }
}

fn estimate_complexity(words: &str) -> u8 {
    classify::classify_text(words).complexity
}
