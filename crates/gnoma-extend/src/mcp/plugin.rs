//! Servers that plugins bring along.

use serde_json::Value;

use super::{
    definition::{ServerFile, ServerOrigin, ServerReach, read_entries},
    naming,
};
use crate::plugin::PluginPlace;

/// The servers of a plugin, under names that say whose they are. A relative program is one of the
/// plugin's folder.
#[must_use]
pub fn of_plugin(plugin: &PluginPlace, variable: &dyn Fn(&str) -> Option<String>) -> ServerFile {
    let mut all = ServerFile::default();
    let variable = |name: &str| plugin.root_variable(name).or_else(|| variable(name));
    for (path, document) in &plugin.servers {
        // Plugins write the servers with and without the name around them.
        let servers = document.get("mcpServers").unwrap_or(document);
        let Some(servers) = servers.as_object() else {
            all.faults
                .push(format!("the MCP servers of the plugin `{}` are not an object", plugin.name));
            continue;
        };
        let renamed = servers.iter().map(|(name, entry): (&String, &Value)| {
            (naming::of_plugin(&plugin.name, name), entry.clone())
        });
        let origin = ServerOrigin::File(path.clone());
        let mut read = read_entries(&origin, &renamed.collect(), &variable);
        for server in &mut read.servers {
            if let ServerReach::Process { command, .. } = &mut server.reach
                && let Some(below) = command.strip_prefix("./")
            {
                *command = plugin.root.join(below).to_string_lossy().into_owned();
            }
            server.cwd = server.cwd.take().map(|cwd| plugin.root.join(cwd));
        }
        all.servers.extend(read.servers);
        all.faults.extend(read.faults);
    }
    all
}
