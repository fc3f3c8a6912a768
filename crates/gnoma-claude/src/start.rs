//! From a program's flags to what its session is opened with.

use std::collections::BTreeMap;

use gnoma_config::settings::McpServer;
use gnoma_core::{
    RawJson, Secret,
    protocol::{Overrides, SessionSpec, Start},
};
use gnoma_extend::{
    hooks::{Callback, Callbacks, MAX_CALLBACKS},
    mcp::check_server,
};
use gnoma_front::ProcessEnvironment;
use serde_json::{Map, Value};

use super::{
    error::DriverError,
    flags::{self, Flags, SessionFlags},
    names,
};

/// Returns the specification with which a session is opened, except for the model, and what is not done, a sentence
/// each.
///
/// # Errors
/// The mode is none, or the schema is no JSON.
pub(super) fn session_spec(
    flags: &Flags,
    around: &ProcessEnvironment,
) -> Result<SessionSpec, DriverError> {
    let SessionFlags { resume, forks, mode, skips_permissions, .. } = &flags.session;
    let start = match resume {
        Some(id) => Start::Stored { id: id.clone(), fork: *forks },
        None if flags.session.continues => Start::Newest { fork: *forks },
        None => Start::New,
    };
    let mode = match mode.as_deref() {
        Some(name) => Some(names::parse_mode(name).ok_or_else(names::unknown_mode)?.0),
        None => None,
    };
    Ok(SessionSpec {
        folder: around.cwd.clone(),
        more_folders: flags.session.folders.iter().map(|it| around.cwd.join(it)).collect(),
        environment: around.environment.clone(),
        umask: around.umask,
        overrides: Overrides {
            mode: Some(mode.unwrap_or_default()),
            confirm_bypass: *skips_permissions,
            incognito: flags.session.keeps_nothing.then_some(true),
            max_rounds: flags.session.max_turns,
            ..Overrides::default()
        },
        system: flags.session.system.clone(),
        answer_schema: parse_answer_schema(flags)?,
        start,
        // The program answers; where it does not, what needs approval is denied by us.
        interactive: true,
        ..SessionSpec::default()
    })
}

/// The form that answers must have.
fn parse_answer_schema(flags: &Flags) -> Result<Option<RawJson>, DriverError> {
    let schema = flags.session.schema.as_ref().map(|schema| RawJson::parse(schema.as_str()));
    schema.transpose().map_err(|source| DriverError::InvalidJson { flag: "--json-schema", source })
}

/// MCP servers as they are passed.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// Those in the program itself.
    pub(super) in_program: Vec<String>,
    pub(super) others: Vec<McpServer>,
    /// The servers that cannot be used, a sentence each.
    pub(super) faults: Vec<String>,
}

/// The servers of `--mcp-config`: each a text or a file.
///
/// # Errors
/// One cannot be read.
pub(super) fn parse_mcp_servers(configured: &[String]) -> Result<Servers, DriverError> {
    let mut servers = Servers::default();
    for written in configured {
        let text = if written.trim_start().starts_with('{') {
            written.clone()
        } else {
            flags::read_named_file("--mcp-config", written)?
        };
        let value: Value = gnoma_core::json::from_hand(&text)
            .map_err(|source| DriverError::InvalidJson { flag: "--mcp-config", source })?;
        let all = value.get("mcpServers").and_then(Value::as_object);
        for (name, server) in all.into_iter().flatten() {
            servers.add(name, server);
        }
    }
    Ok(servers)
}

impl Servers {
    fn add(&mut self, name: &str, server: &Value) {
        if let Err(why) = check_server(name) {
            return self.faults.push(format!("the MCP server `{name}` is not used: {why}"));
        }
        let text = |field: &str| server.get(field).and_then(Value::as_str).map(str::to_owned);
        if text("type").as_deref() == Some("sdk") {
            return self.in_program.push(name.to_owned());
        }
        let (command, url) = (text("command"), text("url"));
        if command.is_none() == url.is_none() {
            let why = "it needs a `command` or a `url`";
            return self.faults.push(format!("the MCP server `{name}` is not used: {why}"));
        }
        let args = server.get("args").and_then(Value::as_array);
        self.others.push(McpServer {
            name: name.to_owned(),
            enabled: true,
            command,
            args: args.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            env: parse_secrets(server.get("env")),
            url,
            headers: parse_secrets(server.get("headers")),
            timeout: None,
            // The program cannot say so, and most of them need it.
            network: true,
            writable: Vec::new(),
            replaces: BTreeMap::new(),
            path_args: BTreeMap::new(),
        });
    }
}

fn parse_secrets(fields: Option<&Value>) -> BTreeMap<String, Secret<String>> {
    let fields = fields.and_then(Value::as_object).cloned().unwrap_or_default();
    let one = |(name, value): (String, Value)| match value {
        Value::String(text) => Some((name, Secret::new(text))),
        _ => None,
    };
    gnoma_core::sort::to_map(fields.into_iter().filter_map(one))
}

/// The hooks of an `initialize` request; and what is not done, a sentence each.
///
/// # Errors
/// Some of them could never be called, though they may be there to deny calls.
pub(super) fn parse_callbacks(
    hooks: Option<&Value>,
) -> Result<(Vec<Callback>, Vec<String>), DriverError> {
    let (mut callbacks, mut faults) = (Vec::new(), Vec::new());
    let none = Map::new();
    let events = hooks.and_then(Value::as_object).unwrap_or(&none);
    for (event, groups) in events {
        if !Callbacks::is_known_event(event) {
            faults.push(format!("gnoma has no event `{event}`, so its hooks are never called"));
            continue;
        }
        for group in groups.as_array().into_iter().flatten() {
            let ids = group.get("hookCallbackIds").and_then(Value::as_array);
            let failure = group.get("onFailure").and_then(Value::as_str);
            let matcher = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
            if !Callbacks::is_valid_matcher(matcher) {
                let (matcher, event) = (matcher.to_owned(), event.clone());
                return Err(DriverError::InvalidMatcher { matcher, event });
            }
            for id in ids.into_iter().flatten().filter_map(Value::as_str) {
                callbacks.push(Callback {
                    event: event.clone(),
                    matcher: matcher.to_owned(),
                    id: id.to_owned(),
                    timeout: group.get("timeout").and_then(Value::as_f64),
                    fails_closed: failure.is_some_and(|failure| failure != "continue"),
                });
            }
        }
    }
    if callbacks.len() > MAX_CALLBACKS {
        return Err(DriverError::TooManyHooks { max: MAX_CALLBACKS });
    }
    Ok((callbacks, faults))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_of_all_kinds_are_read() {
        let text = json!({"mcpServers": {
            "calc": {"type": "sdk", "name": "calc"},
            "git": {"command": "git-mcp", "args": ["-v"], "env": {"A": "b"}},
            "web": {"type": "http", "url": "https://x.example/mcp", "headers": {"K": "v"}},
            "none": {}, "a__b": {"command": "x"},
        }});
        let found = parse_mcp_servers(&[text.to_string()]).unwrap();
        assert_eq!(found.in_program, ["calc"]);
        assert_eq!(found.others.len(), 2);
        assert_eq!(found.faults.len(), 2, "{:?}", found.faults);
        assert!(
            parse_mcp_servers(&["{".to_owned()]).is_err()
                && parse_mcp_servers(&["/no/file".to_owned()]).is_err()
        );
    }

    #[test]
    fn hooks_are_read() {
        let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h0", "h1"],
            "timeout": 2, "onFailure": "block"}], "TeammateIdle": [{"hookCallbackIds": ["h2"]}]});
        let (callbacks, faults) = super::parse_callbacks(Some(&hooks)).unwrap();
        assert_eq!(callbacks.len(), 2);
        assert!(callbacks[0].fails_closed && callbacks[0].matcher == "Bash");
        assert_eq!(faults.len(), 1);
        assert!(super::parse_callbacks(Some(&Value::Null)).unwrap().0.is_empty());
        // A hook that denies would never be asked.
        let broken = json!({"PreToolUse": [{"matcher": "Bash(", "hookCallbackIds": ["h0"]}]});
        assert!(super::parse_callbacks(Some(&broken)).is_err());
    }
}
