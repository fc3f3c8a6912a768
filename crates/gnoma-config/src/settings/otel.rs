//! OpenTelemetry settings: the collector that telemetry is sent to.

use std::collections::BTreeMap;

use gnoma_core::Secret;

use crate::{layer::MergedLayers, value::Value};

/// Telemetry for an OpenTelemetry collector.
#[derive(Clone, Debug, Default)]
pub struct Otel {
    /// `true` if telemetry is sent.
    pub enabled: bool,
    /// The address of the collector.
    pub endpoint: Option<String>,
    /// Messages are written as JSON, not as protobuf.
    pub is_json: bool,
    /// Sent with each request.
    pub headers: BTreeMap<String, Secret<String>>,
    /// Spans have texts of people, models and tools.
    pub content: bool,
}

impl Otel {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        Self {
            enabled: layers.is_on("otel.enabled"),
            endpoint: layers.text_at("otel.endpoint"),
            is_json: layers.text_at("otel.protocol").is_some_and(|name| name == "http/json"),
            headers: gnoma_core::sort::to_map(layers.table_entries("otel.headers").filter_map(
                |(name, value)| match value {
                    Value::Secret(value) => Some((name.to_owned(), value.clone())),
                    _ => None,
                },
            )),
            content: layers.is_on("otel.content"),
        }
    }
}
