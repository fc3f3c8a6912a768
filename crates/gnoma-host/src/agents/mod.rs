//! Other programs' agents as arms: they run in the sandbox, speak the Agent Client Protocol, and appear as models
//! that call tools.
//!
//! An agent works in turns of its own; a session works in rounds. When an agent takes a step that a person should
//! see or judge, the round ends with a call of a tool that only agents have ([`tools`]), and the agent waits under
//! that call ([`desk`]) until the next round brings its result. So the session's own gate judges an agent's
//! requests, its own checkpoints save the files, and its own history tells the next model what was done.

mod agent_error;
mod brief;
mod idle_agents;
mod live_agent;
mod program;
mod provider;
mod steps;
mod tools;

use std::{fmt, path::PathBuf, sync::Arc};

use gnoma_config::settings::CliAgent;
use gnoma_core::Provider;

pub use self::agent_error::AgentProgramError;
use self::provider::AgentProvider;
pub(crate) use self::{
    program::{AgentProgram, PROVIDER},
    tools::{AgentPlace, build_tools},
};

/// The agents of a project's settings. Clones are the same.
#[derive(Clone, Default)]
pub struct Agents(Arc<[Arc<AgentProgram>]>);

impl Agents {
    /// Those that the settings name and do not switch off. Starts none.
    pub(crate) fn from_settings(settings: Vec<CliAgent>) -> Self {
        let used = settings.into_iter().filter(|agent| agent.enabled);
        Self(used.map(|settings| Arc::new(AgentProgram::new(settings))).collect())
    }

    /// The agent of that name.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<&Arc<AgentProgram>> {
        self.iter().find(|agent| agent.settings.name == name)
    }

    /// Iterates over all agent programs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<AgentProgram>> {
        self.0.iter()
    }

    /// Iterates over the names of all agents, each with the path of its program on these paths.
    pub fn locate_programs(
        &self,
        paths: &str,
    ) -> impl Iterator<Item = (&str, Result<PathBuf, AgentProgramError>)> {
        self.iter().map(move |agent| (agent.settings.name.as_str(), agent.locate_program(paths)))
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|agent| &agent.settings.name)).finish()
    }
}

/// The agent as a provider of one model.
pub(crate) fn agent_provider(agent: &Arc<AgentProgram>) -> Arc<dyn Provider> {
    Arc::new(AgentProvider(Arc::clone(agent)))
}
