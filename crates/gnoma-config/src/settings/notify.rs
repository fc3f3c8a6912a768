//! Settings of notifications: a command of the person's, or ntfy.

use std::time::Duration;

use gnoma_core::Secret;

use crate::{key::KeyPath, layer::MergedLayers, value::Value};

/// Notifications by a command or by ntfy.
#[derive(Clone, Debug, Default)]
pub struct NotifySettings {
    /// The shell line that gets each notification.
    pub command: Option<String>,
    /// The address of a topic of ntfy.
    pub ntfy: Option<String>,
    /// The access token for that address.
    pub ntfy_token: Option<Secret<String>>,
    /// The time that a turn takes, and a question waits, before the person is told.
    pub after: Duration,
}

impl NotifySettings {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        let token = layers.value_at(&KeyPath::from_dotted("notify.ntfy_token"));
        Self {
            command: layers.text_at("notify.command"),
            ntfy: layers.text_at("notify.ntfy"),
            ntfy_token: token.and_then(|value| match value {
                Value::Secret(token) => Some(token),
                _ => None,
            }),
            after: layers.duration_at("notify.after"),
        }
    }
}
