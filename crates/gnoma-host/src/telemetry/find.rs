//! Finds the destination of a project's telemetry.

use std::sync::Arc;

use gnoma_config::settings::Otel;
use gnoma_core::protocol::Environment;
use gnoma_guard::firewall::Firewall;
use gnoma_otel::{AttributeValue, ExportOptions, ExportSettings, Format};

use super::process::Telemetry;
use crate::{Notices, project_settings::RoutingSettings, shared::ProcessResources};

/// Returns the options that say where telemetry of a project goes.
///
/// # Errors
/// What is wrong with an address or a protocol.
fn export_options(
    otel: &Otel,
    environment: &Environment,
) -> Result<Option<ExportOptions>, gnoma_otel::OptionError> {
    if !otel.enabled {
        return Ok(None);
    }
    let headers = otel.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let settings = ExportSettings {
        endpoint: otel.endpoint.clone(),
        format: if otel.is_json { Format::Json } else { Format::Protobuf },
        headers: headers.collect(),
    };
    ExportOptions::new(&settings, |name| environment.get(name))
}

/// The hosts that telemetry of a project goes to, as scheme, name and port; none if it is off.
///
/// # Errors
/// What is wrong with an address or a protocol.
pub fn export_hosts(
    otel: &Otel,
    environment: &Environment,
) -> Result<Vec<String>, gnoma_otel::OptionError> {
    let mut hosts: Vec<String> = Vec::new();
    for host in export_options(otel, environment)?.iter().flat_map(ExportOptions::hosts) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// Finds the telemetry of a project among that of its process; `None` if it has none.
pub(crate) fn find_telemetry(
    otel: &Otel,
    environment: &Environment,
    (routing, firewall): (&RoutingSettings, &Firewall),
    shared: &ProcessResources,
    notices: &Notices,
) -> Option<Arc<Telemetry>> {
    if !otel.enabled || routing.privacy.incognito {
        return None;
    }
    let mut options = match export_options(otel, environment) {
        Ok(options) => options?,
        Err(error) => {
            notices.warning(format_args!("no telemetry is sent: {error}"));
            return None;
        }
    };
    options.warnings.iter().for_each(|text| notices.warning(text));
    for (_, value) in &mut options.resource {
        if let AttributeValue::Text(text) = value {
            *text = firewall.redact_text(text).into_owned();
        }
    }
    let make = || {
        let http = shared.http(&routing.network);
        Telemetry::new(options.clone(), otel.content, shared.clock().clone(), http)
    };
    let is_meant = |known: &Telemetry| known.matches_options(&options, otel.content);
    Some(shared.find_or_make_telemetry(is_meant, make))
}
