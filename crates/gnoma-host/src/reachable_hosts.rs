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
    let mut uses = HostUses::default();
    uses.add_models(project);
    uses.add_extensions(project);
    if let Some(url) = &project.personal.notify.ntfy {
        uses.add(url, "notifications".to_owned());
    }
    if !project.is_incognito() {
        let collectors = telemetry::export_hosts(otel, project.environment());
        for host in collectors.unwrap_or_default() {
            uses.add(&host, "telemetry".to_owned());
        }
    }
    uses.0.into_iter().map(|(host, uses)| ReachableHost { host, uses }).collect()
}

/// The parts of gnoma that contact a host, by host.
#[derive(Default)]
struct HostUses(BTreeMap<String, Vec<String>>);

impl HostUses {
    fn add(&mut self, url: &str, what: String) {
        let uses = self.0.entry(telemetry::host_of(url)).or_default();
        if !uses.contains(&what) {
            uses.push(what);
        }
    }

    /// Adds the providers of models.
    fn add_models(&mut self, project: &Project) {
        let provider = &project.routing.provider;
        for name in providers::configured_providers(provider) {
            if let Ok(profile) = crate_options::provider_profile(provider, &name) {
                self.add(&profile.base_url, format!("models of `{name}`"));
            }
        }
        for known in KNOWN.iter().filter(|known| known.local && !known.base_url.is_empty()) {
            if !provider.endpoints.contains_key(known.name) {
                self.add(known.base_url, format!("models of `{}`, if it runs here", known.name));
            }
        }
        let slm = &project.routing.slm;
        if let Some(url) = slm.base_url.as_deref().filter(|_| slm.enabled) {
            self.add(url, "the small model of `slm.base_url`".to_owned());
        }
    }

    /// Adds the MCP servers and the hooks that are reached over HTTP.
    fn add_extensions(&mut self, project: &Project) {
        for server in mcp::find_servers(project).0 {
            if let ServerReach::Http { url, .. } = &server.reach {
                let name = &server.name;
                let what =
                    format!("MCP server `{name}`, which may name another host for its login");
                self.add(url, what);
            }
        }
        for hook in extensions::found_hooks(project).0 {
            if matches!(hook.kind, HookKind::Http { .. }) {
                self.add(&hook.command, format!("hook `{}`", hook.name));
            }
        }
    }
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
