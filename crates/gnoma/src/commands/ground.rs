//! What commands about the past stand on: settings, firewall, places.

use std::sync::Arc;

use anyhow::Result;
use gnoma_config::Loaded;
use gnoma_guard::firewall::Firewall;

use super::cwd;
use crate::{
    args::TurnArgs, guarding, keeping::Places, past::Past, surroundings::Surroundings, wire,
};

/// See the module.
pub(crate) struct Ground<'a> {
    pub around: &'a Surroundings,
    pub loaded: Loaded,
    pub firewall: Arc<Firewall>,
    pub places: Places,
}

impl<'a> Ground<'a> {
    /// Reads the settings of the project that `args` name.
    pub(super) fn of(args: &TurnArgs, around: &'a Surroundings) -> Result<Self> {
        let cwd = cwd(args, around)?;
        let loaded = wire::configuration(args, around, &cwd)?;
        let firewall = guarding::firewall(&loaded.settings, around)?;
        let places = Places::of(&loaded, around, &cwd);
        Ok(Self { around, loaded, firewall, places })
    }

    /// What was kept, where there must be something.
    pub(super) fn past(&self) -> Result<Past> {
        Past::open(self.places.clone(), &self.firewall)
    }

    /// What was kept, if there is something.
    pub(super) fn find(&self) -> Result<Option<Past>> {
        Past::find(self.places.clone(), &self.firewall)
    }
}
