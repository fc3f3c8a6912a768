//! Servers of the Model Context Protocol.

use std::{collections::BTreeMap, time::Duration};

use gnoma_core::Secret;

use super::section::Section;
use crate::{layer::MergedLayers, value::Value};

/// The table of servers; each is written as an entry of a list that has a name.
const SERVERS: &str = "mcp_servers";

/// A server that offers tools: a program or an address.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// The name of the server, which is the middle of its tools' names.
    pub name: String,
    /// `true` if the server is used.
    pub enabled: bool,
    /// The program; `None` where it is reached by an address.
    pub command: Option<String>,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// The program's environment, besides what all of them get.
    pub env: BTreeMap<String, Secret<String>>,
    /// The address of the server.
    pub url: Option<String>,
    /// The headers sent with each request to the address.
    pub headers: BTreeMap<String, Secret<String>>,
    /// Longest silence within a call.
    pub timeout: Option<Duration>,
    /// The program may use the network.
    pub network: bool,
    /// Folders besides the workspace that the program may write.
    pub writable: Vec<String>,
    /// Built-in tools that its tools replace, by the names of its tools.
    pub replaces: BTreeMap<String, String>,
    /// Arguments that are paths, by the names of its tools.
    pub path_args: BTreeMap<String, Vec<String>>,
}

/// All servers, by name.
pub(super) fn read_servers(layers: &MergedLayers) -> Vec<McpServer> {
    let table = Section::from_key(layers, SERVERS);
    layers
        .table_names(SERVERS)
        .into_iter()
        .map(|name| read_server(name, &table.child_section(name)))
        .collect()
}

fn read_server(name: &str, server: &Section<'_>) -> McpServer {
    let secrets = |field: &str| {
        let entries = server.entries_below(field).into_iter();
        let secret = |(name, value)| match value {
            Value::Secret(secret) => Some((name, secret)),
            _ => None,
        };
        gnoma_core::sort::to_map(entries.filter_map(secret))
    };
    let replaces = server.entries_below("replace_default").into_iter();
    let path_args = server.entries_below("tool_policy").into_iter();
    McpServer {
        name: name.to_owned(),
        enabled: server.read_switch("enabled").unwrap_or(true),
        command: server.text("command"),
        args: server.texts("args"),
        env: secrets("env"),
        url: server.text("url"),
        headers: secrets("headers"),
        timeout: server.duration("timeout"),
        network: server.read_switch("network").unwrap_or(false),
        writable: server.texts("writable"),
        replaces: gnoma_core::sort::to_map(
            replaces.filter_map(|(name, value)| Some((name, value.into_text()?))),
        ),
        path_args: gnoma_core::sort::to_map(
            path_args.map(|(name, value)| (name, value.into_texts())),
        ),
    }
}
