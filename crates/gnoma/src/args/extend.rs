//! Arguments about extensions.

use std::path::PathBuf;

use clap::Subcommand;

/// What can be done with skills.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SkillsSub {
    /// List the skills that are found here.
    List,
    /// Print what a skill says.
    Show {
        /// The skill.
        name: String,
    },
    /// Check folders by the letter of the specification (agentskills.io). Exit code 1 when one is no
    /// valid skill.
    Validate {
        /// The folders; without one, those of the skills found here.
        folders: Vec<PathBuf>,
    },
}

/// What can be done with definitions of sub-agents.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AgentsSub {
    /// List those that are found here.
    List,
}
