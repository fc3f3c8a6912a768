//! Other programs' agents as arms: they are started in walls, spoken to by the Agent Client Protocol, and
//! shown as models that call tools.
//!
//! An agent works in turns of its own; a session works in rounds. Where an agent takes a step that a person
//! should see or judge, the round ends with a call of a tool that only agents have ([`tools`]), and the agent
//! waits under that call ([`desk`]) until the next round brings its result. So the session's own gate judges
//! what an agent asks for, its own checkpoints keep the files, and its own history tells the next model
//! what was done.

mod brief;
mod desk;
mod live;
mod provider;
mod steps;
mod tools;

use std::{fmt, path::PathBuf, sync::Arc};

use gnoma_config::settings::CliAgent;
use gnoma_core::Provider;

pub(crate) use self::tools::{AgentPlace, tools};
use self::{desk::Desk, provider::AgentProvider};

/// The provider that agents are models of.
pub(crate) const PROVIDER: &str = "agent";

/// The agents of a project's settings. Clones are the same.
#[derive(Clone, Default)]
pub struct Agents(Arc<[Arc<Agent>]>);

/// One of them, and its processes.
pub(crate) struct Agent {
    pub(crate) settings: CliAgent,
    desk: Desk,
}

impl Agents {
    /// Those that the settings name and do not switch off. Starts none.
    pub(crate) fn of(settings: Vec<CliAgent>) -> Self {
        let used = settings.into_iter().filter(|agent| agent.enabled);
        Self(used.map(|settings| Arc::new(Agent { settings, desk: Desk::default() })).collect())
    }

    /// The agent of that name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Agent>> {
        self.iter().find(|agent| agent.settings.name == name)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.0.iter()
    }

    /// The name of each, and whether its program is found on these paths.
    pub fn programs(&self, paths: &str) -> impl Iterator<Item = (&str, Result<PathBuf, String>)> {
        self.iter().map(move |agent| (agent.settings.name.as_str(), agent.program(paths)))
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|agent| &agent.settings.name)).finish()
    }
}

impl Agent {
    /// The agent as a provider of one model.
    pub(crate) fn provider(self: &Arc<Self>) -> Arc<dyn Provider> {
        Arc::new(AgentProvider(Arc::clone(self)))
    }

    /// Its program; `paths` as in the variable `PATH`.
    ///
    /// # Errors
    /// It is not there: what to do.
    fn program(&self, paths: &str) -> Result<PathBuf, String> {
        let command = &self.settings.command;
        if command.contains('/') {
            // Found, or not, where it is started.
            return Ok(PathBuf::from(command));
        }
        let found = std::env::split_paths(paths).map(|folder| folder.join(command));
        found.into_iter().find(|path| path.is_file()).ok_or_else(|| {
            format!(
                "the program `{command}` is not installed, or not in a folder of `PATH`; install it, or name \
                 another as `command` under `[[cli_agents]]`"
            )
        })
    }
}
