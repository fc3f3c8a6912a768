//! A project as one client sees it: what its settings say, what guards it, and where things are kept.

use std::sync::Arc;

use gnoma_config::Loaded;
use gnoma_core::protocol::{Environment, SessionSpec};
use gnoma_guard::firewall::Firewall;

use crate::{Notices, Result, guarding, keeping::Places, past::Past, wire};

/// What every command and every session of a folder stands on.
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
}

impl Project {
    /// Reads the settings that hold for `spec`.
    ///
    /// # Errors
    /// The folder is none, or the settings cannot be used.
    pub fn open(spec: SessionSpec, notices: Notices) -> Result<Self> {
        let (spec, loaded) = wire::load(spec, &notices)?;
        Self::with(spec, loaded, notices)
    }

    /// A project with settings that were read before.
    ///
    /// # Errors
    /// The settings about secrets cannot be used.
    pub fn with(spec: SessionSpec, loaded: Loaded, notices: Notices) -> Result<Self> {
        let firewall = guarding::firewall(&loaded.settings, &spec.environment)?;
        let places = Places::of(&loaded, &spec.environment, &spec.folder);
        Ok(Self { spec, loaded, firewall, places, notices })
    }

    /// The client's environment.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.spec.environment
    }

    /// What was kept, where there must be something.
    ///
    /// # Errors
    /// Nothing is kept, or it cannot be opened.
    pub fn past(&self) -> Result<Past> {
        Past::open(self)
    }

    /// What was kept, if there is something.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn find_past(&self) -> Result<Option<Past>> {
        Past::find(self)
    }
}
