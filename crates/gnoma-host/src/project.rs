//! A project as one client sees it: what its settings say, what guards it, and where things are kept.

use std::sync::Arc;

use gnoma_config::{Loaded, settings::Sandbox};
use gnoma_core::protocol::{Environment, SessionSpec};
use gnoma_guard::firewall::Firewall;

use crate::{
    HostError, Notices, Result, guarding, key_command, places::Places, shared::Shared, wire,
};

/// What every command and every session of a folder stands on.
#[derive(Clone)]
pub struct Project {
    /// What the client wants; its folders exist and are free of symbolic links.
    pub spec: SessionSpec,
    /// The settings, with their origins.
    pub loaded: Loaded,
    /// What keeps secrets in.
    pub firewall: Arc<Firewall>,
    /// Where sessions and files are kept.
    pub places: Places,
    /// Where what is said by the way goes.
    pub notices: Notices,
    /// What it shares with the other sessions of the process.
    pub shared: Shared,
}

impl Project {
    /// Reads the settings that hold for `spec`.
    ///
    /// # Errors
    /// The folder is none, or the settings cannot be used.
    pub fn open(spec: SessionSpec, notices: Notices) -> Result<Self> {
        let (spec, mut loaded) = wire::load(spec, &notices)?;
        key_command::fill(&mut loaded, &spec.environment, &notices);
        Self::with(spec, loaded, notices)
    }

    /// A project with settings that were read before.
    ///
    /// # Errors
    /// The settings about secrets cannot be used.
    pub fn with(spec: SessionSpec, loaded: Loaded, notices: Notices) -> Result<Self> {
        let firewall = guarding::firewall(&loaded.settings, &spec.environment)?;
        let places = Places::of(&loaded, &spec.environment, &spec.folder);
        Ok(Self { spec, loaded, firewall, places, notices, shared: Shared::default() })
    }

    /// The project in a process that has others.
    #[must_use]
    pub fn sharing(self, shared: Shared) -> Self {
        Self { shared, ..self }
    }

    /// The client's environment.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.spec.environment
    }

    /// Refuses to work in the whole system, unless there are no walls that would be void there.
    ///
    /// # Errors
    /// The folder is the whole system.
    pub fn refuse_whole_system(&self) -> Result<()> {
        if self.spec.folder.parent().is_some() || self.loaded.settings.sandbox.mode == Sandbox::Off
        {
            return Ok(());
        }
        let text =
            "cannot work in the root folder; change to a project's folder, or name one with --cwd";
        Err(HostError::usage(text))
    }
}
