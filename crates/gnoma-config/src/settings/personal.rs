//! Settings of the person, which are about what they see and count and not about how gnoma works.

use super::notify::NotifySettings;
use crate::{
    key::KeyPath,
    layer::MergedLayers,
    money::DOLLAR,
    schema::{FEATURES, Feature},
    value::Value,
};

/// Settings of the person.
#[derive(Clone, Debug, Default)]
pub struct Personal {
    /// `true` if used features are counted in a file of the person's.
    pub counts_features: bool,
    /// The currency that people see costs in, in capitals, and the dollars for one unit of it; `None` for the dollar.
    pub currency: Option<(String, f64)>,
    /// Notifications outside of the terminal.
    pub notify: NotifySettings,
    /// The shell line that writes the line at the bottom of the terminal.
    pub status_command: Option<String>,
    /// The parts that this line shows besides: `today`, `week`, `cap`.
    pub status_parts: Vec<String>,
    /// The name of the theme.
    pub theme: String,
    /// The name of the output style of answers.
    pub output_style: Option<String>,
    /// `true` if the composer has vim keys.
    pub vim: bool,
    /// `true` if models are told what `/memory` says.
    pub uses_memory: bool,
    /// `true` if repeated work is offered as a task.
    pub suggests_tasks: bool,
    /// The keys of the features that are on.
    features: Vec<&'static str>,
}

impl Personal {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        let is_on =
            |feature: &&Feature| match layers.value_at(&KeyPath::from_dotted(feature.setting)) {
                Some(Value::Bool(truth)) => truth,
                Some(Value::Text(word)) => feature.words.is_some_and(|[_, on]| word == on),
                _ => false,
            };
        let currency = layers.text_at("usage.currency").and_then(|code| {
            let code = code.to_uppercase();
            layers.exchange_rate(&code).filter(|_| code != DOLLAR).map(|rate| (code, rate))
        });
        Self {
            counts_features: layers.is_on("analytics.local"),
            currency,
            notify: NotifySettings::from_layers(layers),
            status_command: layers.text_at("status.command"),
            status_parts: layers.texts_at("status.show"),
            theme: layers.text_at("tui.theme").unwrap_or_default(),
            output_style: layers.text_at("answers.style"),
            vim: layers.is_on("tui.vim"),
            uses_memory: layers.is_on("memory.enabled"),
            suggests_tasks: layers.text_at("tasks.suggest").is_none_or(|word| word != "off"),
            features: FEATURES.iter().filter(is_on).map(|feature| feature.key).collect(),
        }
    }

    /// Reports whether a feature is on.
    #[must_use]
    pub fn has_feature(&self, feature: &Feature) -> bool {
        self.features.contains(&feature.key)
    }
}
