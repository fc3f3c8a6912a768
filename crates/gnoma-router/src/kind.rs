//! Names of types of tasks.

use std::sync::Arc;

use gnoma_core::text_truncation;
use serde::{Deserialize, Serialize};

/// Stands between a kind and the step of a task.
const STEP_MARK: char = '/';
/// Most characters of a step's name that tell its kind from others.
const MAX_STEP_CHARS: usize = 60;

/// The type of a task, such as `fix`. Any name will do: a new one starts from what the others taught.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskKind(pub Arc<str>);

impl TaskKind {
    /// A kind by its name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The kind of one step of a saved task, such as `fix/release/Write the entry`. It starts from what is known of this
    /// kind, and learns by itself.
    #[must_use]
    pub fn of_step(&self, step: &str) -> Self {
        let step = text_truncation::head_chars(step, MAX_STEP_CHARS);
        Self(format!("{}{STEP_MARK}{step}", self.0).into())
    }

    /// Returns the kind that it starts from, if it is the kind of a step.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.split_once(STEP_MARK).map(|(parent, _)| Self::new(parent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_a_step_has_the_kind_of_its_prompt_as_parent() {
        let fix = TaskKind::new("fix");
        let step = fix.of_step("release/Write a/b");
        assert_eq!((&*step.0, step.parent()), ("fix/release/Write a/b", Some(fix.clone())));
        assert_eq!(fix.parent(), None);
        assert_eq!(fix.of_step(&"é".repeat(100)).0.chars().count(), 4 + MAX_STEP_CHARS);
    }
}
