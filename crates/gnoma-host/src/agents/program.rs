//! An agent as the settings name it.

use std::{path::PathBuf, sync::Arc};

use gnoma_config::settings::CliAgent;

use super::{agent_error::AgentProgramError, idle_agents::IdleAgents};

/// The provider that agents are models of.
pub(crate) const PROVIDER: &str = "agent";

/// Another program's agent, and its processes.
pub(crate) struct AgentProgram {
    pub(crate) settings: CliAgent,
    pub(super) desk: Arc<IdleAgents>,
}

impl AgentProgram {
    pub(super) fn new(settings: CliAgent) -> Self {
        Self { settings, desk: Arc::default() }
    }

    /// Returns the path of the agent's program; `paths` as in the variable `PATH`.
    ///
    /// # Errors
    /// It is not there.
    pub(super) fn locate_program(&self, paths: &str) -> Result<PathBuf, AgentProgramError> {
        let command = &self.settings.command;
        if command.contains('/') {
            // Found, or not, where it is started.
            return Ok(PathBuf::from(command));
        }
        let found = std::env::split_paths(paths).map(|folder| folder.join(command));
        found
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| AgentProgramError { command: command.clone() })
    }
}
