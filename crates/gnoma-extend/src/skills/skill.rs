//! What a skill is.

use std::path::{Path, PathBuf};

use crate::places::BroughtBy;

/// What the tool is called by which a model loads one.
pub(super) const TOOL: &str = "skill";

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// What it is called: its folder's name.
    pub name: String,
    /// Who brought it along.
    pub by: BroughtBy,
    /// Its file; empty for a bundled one.
    pub path: PathBuf,
    /// Whether it is a folder, whose files can be read.
    pub has_folder: bool,
    /// What it is for.
    pub description: String,
    /// What is written behind its name.
    pub hint: String,
    /// The tools that its turn may use.
    pub tools: Option<Vec<String>>,
    /// The model that it wants.
    pub model: Option<String>,
    /// Only a person uses it.
    pub is_for_people: bool,
    /// Where it is done by a session of its own: how.
    pub fork: Option<SkillFork>,
    /// Names of what is written behind its name, in their order.
    pub arguments: Vec<String>,
    /// How it is done.
    pub body: String,
    /// Fields before it that change nothing here.
    pub unsupported: Vec<String>,
    /// What is wrong with it and does not stop it.
    pub warnings: Vec<String>,
}

/// How a skill is done by an elf (`context: fork`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillFork {
    /// The agent that the elf is, as it was written; may be none that is there.
    pub agent: Option<String>,
}

impl Skill {
    /// Its folder, if it has one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.path.parent().filter(|_| self.has_folder)
    }
}
