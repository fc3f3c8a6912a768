//! Network settings: proxies, certificates and time-outs.

use std::{path::PathBuf, time::Duration};

use crate::layer::MergedLayers;

/// Reaching servers and waiting for them.
#[derive(Clone, Debug)]
pub struct Network {
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest silence within an answer.
    pub idle_timeout: Duration,
    /// Longest silence before an answer begins.
    pub first_byte_timeout: Duration,
    /// Longest wait for the first byte of an answer of a server of the user's own.
    pub local_first_byte_timeout: Duration,
    /// File with certificate authorities that are trusted as well, in PEM.
    pub ca_file: Option<PathBuf>,
}

/// Longest silence before an answer begins, where nothing is said of it.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(120);

impl Network {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        let idle_timeout = layers.duration_at("network.idle_timeout");
        // None is shorter than a second.
        let said = |key| Some(layers.duration_at(key)).filter(|time| !time.is_zero());
        Self {
            connect_timeout: layers.duration_at("network.connect_timeout"),
            idle_timeout,
            first_byte_timeout: said("network.first_byte_timeout")
                .unwrap_or_else(|| FIRST_BYTE_TIMEOUT.min(idle_timeout)),
            local_first_byte_timeout: said("network.local_first_byte_timeout")
                .unwrap_or(idle_timeout),
            ca_file: layers.text_at("network.ca_file").map(PathBuf::from),
        }
    }
}
