//! Names of types of tasks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
}
