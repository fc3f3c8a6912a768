//! The hosts that gnoma itself contacts with a project's settings, for people who want to know where data may go. What
//! programs contact that it starts (commands, agents, MCP servers that are processes) is not known here.

use std::collections::BTreeMap;

use gnoma_config::settings::Otel;
use gnoma_extend::{hooks::HookKind, mcp::ServerReach};
use gnoma_llm::KNOWN;

use crate::{Project, crate_options, extensions, mcp, providers, telemetry};

/// A host that gnoma contacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachableHost {
    /// Scheme, name and port, without credentials.
    pub host: String,
    /// The parts of gnoma that contact it, such as "MCP server `web`".
    pub uses: Vec<String>,
}

/// Lists the hosts that gnoma may contact for a project, each once. Contacts none.
#[must_use]
pub fn list_hosts(project: &Project, otel: &Otel) -> Vec<ReachableHost> {
    let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |url: &str, what: String| {
        let uses = hosts.entry(telemetry::host_of(url)).or_default();
        if !uses.contains(&what) {
            uses.push(what);
        }
    };
    let provider = &project.routing.provider;
    for name in providers::configured_providers(provider) {
        if let Ok(profile) = crate_options::provider_profile(provider, &name) {
            add(&profile.base_url, format!("models of `{name}`"));
        }
    }
    for known in KNOWN.iter().filter(|known| known.local && !known.base_url.is_empty()) {
        if !provider.endpoints.contains_key(known.name) {
            add(known.base_url, format!("models of `{}`, if it runs here", known.name));
        }
    }
    let slm = &project.routing.slm;
    if let Some(url) = slm.base_url.as_deref().filter(|_| slm.enabled) {
        add(url, "the small model of `slm.base_url`".to_owned());
    }
    for server in mcp::find_servers(project).0 {
        if let ServerReach::Http { url, .. } = &server.reach {
            add(
                url,
                format!("MCP server `{}`, which may name another host for its login", server.name),
            );
        }
    }
    for hook in extensions::found_hooks(project).0 {
        if matches!(hook.kind, HookKind::Http { .. }) {
            add(&hook.command, format!("hook `{}`", hook.name));
        }
    }
    if let Some(url) = &project.personal.notify.ntfy {
        add(url, "notifications".to_owned());
    }
    if !project.is_incognito() {
        let collectors = telemetry::export_hosts(otel, project.environment());
        for host in collectors.unwrap_or_default() {
            add(&host, "telemetry".to_owned());
        }
    }
    hosts.into_iter().map(|(host, uses)| ReachableHost { host, uses }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_no_credentials_and_no_path() {
        for (url, host) in [
            ("https://me:key@host.example:8443/v1?key=x", "https://host.example:8443"),
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
            ("https://host.example?token=x", "https://host.example"),
        ] {
            assert_eq!(telemetry::host_of(url), host);
        }
    }
}
