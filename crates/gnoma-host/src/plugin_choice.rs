//! Plugins that a project wants, and plugins that were found.

use std::sync::{Arc, OnceLock};

use gnoma_extend::plugins::PluginScan;

/// The plugins that are enabled, and the ones that were found once they were searched for.
#[derive(Clone, Debug, Default)]
pub struct ProjectPlugins {
    /// The only enabled ones; empty for all.
    pub enabled: Vec<String>,
    /// The disabled ones.
    pub disabled: Vec<String>,
    pub(crate) found: Arc<OnceLock<PluginScan>>,
}

impl ProjectPlugins {
    /// Returns the plugins that the settings want.
    #[must_use]
    pub fn from_settings(enabled: Vec<String>, disabled: Vec<String>) -> Self {
        Self { enabled, disabled, found: Arc::default() }
    }
}
