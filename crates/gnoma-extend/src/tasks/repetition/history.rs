//! The past of a project as the detector sees it: what was said and done in each turn, without results.

use serde::{Deserialize, Serialize};

/// One stored session of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastSession {
    /// The id of the session.
    pub id: String,
    /// The id of the session that this one and all its other forks began as; its own id if it is no fork.
    pub family: String,
    /// The time at which the session was last changed, in milliseconds since 1970.
    pub at_ms: i64,
    /// The turns, in order. Turns that a fork copied of its parent are left out.
    pub turns: Vec<PastTurn>,
}

/// A message of the person and the work on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastTurn {
    /// The index of the turn in its session, from 0.
    pub index: u32,
    /// The message of the person.
    pub message: String,
    /// The calls that change something or run a command, in order.
    pub calls: Vec<PastCall>,
    /// `true` if the turn was completed, its checks did not fail, and it was not rewound.
    pub ended_well: bool,
}

/// A call that can be a step of a chore.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PastCall {
    /// A command for the shell.
    #[serde(rename = "c")]
    Command(String),
    /// A change of a file, by its path relative to the project.
    #[serde(rename = "e")]
    Edit(String),
    /// A new or replaced file, by its path relative to the project.
    #[serde(rename = "w")]
    Write(String),
}

/// A command, skill or task that exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingRecipe {
    /// The name that people run it by.
    pub name: String,
    /// The text of the recipe.
    pub text: String,
}

impl ExistingRecipe {
    /// Returns whether a message runs the recipe: `/release v1.2.0`, `/task release v1.2.0`, or the element that
    /// Claude Code writes for the former.
    pub(super) fn was_run_by(&self, message: &str) -> bool {
        let message = message.trim_start();
        let line = match message.split_once("<command-name>") {
            Some((_, name)) => name.split('<').next().unwrap_or_default(),
            None => message,
        };
        let Some(line) = line.strip_prefix('/') else { return false };
        let mut words = line.split_whitespace();
        match words.next() {
            Some("task") => words.next() == Some(&self.name),
            first => first == Some(&self.name),
        }
    }
}
