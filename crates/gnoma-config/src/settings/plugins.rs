//! Settings of plugins: which of them are loaded.

use crate::layer::MergedLayers;

/// The choice of plugins that are loaded.
#[derive(Clone, Debug)]
pub struct Plugins {
    /// The only ones that are; empty for all.
    pub enabled: Vec<String>,
    /// Those that are not.
    pub disabled: Vec<String>,
}

impl Plugins {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        Self {
            enabled: layers.texts_at("plugins.enabled"),
            disabled: layers.texts_at("plugins.disabled"),
        }
    }
}
