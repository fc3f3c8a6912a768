//! The definition of one skill.

use std::path::{Path, PathBuf};

use crate::places::ExtensionSource;

/// The name of the tool by which a model loads a skill.
pub(super) const TOOL: &str = "skill";

/// Instructions for a kind of work, which a person or a model can load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The name of the skill: its folder's name.
    pub name: String,
    /// The party that provides the skill.
    pub by: ExtensionSource,
    /// The path of the skill's file; empty for a bundled one.
    pub path: PathBuf,
    /// `true` if the skill is a folder, whose files can be read.
    pub has_folder: bool,
    /// The description of the skill's purpose.
    pub description: String,
    /// The hint at what to write after its name.
    pub hint: String,
    /// The tools that its turn may use.
    pub tools: Option<Vec<String>>,
    /// The model that it wants.
    pub model: Option<String>,
    /// Only a person uses it.
    pub is_for_people: bool,
    /// The way in which an elf does the skill, if a session of its own does it.
    pub fork: Option<SkillFork>,
    /// Names of what is written behind its name, in their order.
    pub arguments: Vec<String>,
    /// The instructions of the skill.
    pub body: String,
    /// Fields before it that change nothing here.
    pub unsupported: Vec<String>,
    /// The faults of the skill that do not stop it.
    pub warnings: Vec<String>,
}

/// The way in which an elf does a skill (`context: fork`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillFork {
    /// The agent that the elf is, as it was written; may be none that is there.
    pub agent: Option<String>,
}

impl Skill {
    /// Returns the skill's folder, if it has one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.path.parent().filter(|_| self.has_folder)
    }
}
