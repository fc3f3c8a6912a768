//! Arguments about extensions.

use std::path::PathBuf;

use clap::Subcommand;

/// What can be done with skills.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SkillsSub {
    /// List skills.
    #[command(alias = "ls")]
    List,
    /// Print a skill's text.
    #[group(skip)]
    Show {
        /// The skill.
        name: String,
    },
    /// Check skills strictly against the specification (agentskills.io). Exits with 1 if one is not valid.
    #[group(skip)]
    Validate {
        /// Folders of skills [default: those of all skills].
        folders: Vec<PathBuf>,
    },
}

/// What can be done with definitions of sub-agents.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AgentsSub {
    /// List agents.
    #[command(alias = "ls")]
    List,
}
