//! The servers that the settings and `.mcp.json` files define.
//!
//! Both become a [`Definition`]. The caller reads variables and decides whether a file is trusted.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use gnoma_core::{Secret, json};
use serde_json::Value;

use super::naming::{self, ServerNameError};

/// The source that defines a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerOrigin {
    /// The configuration of the person.
    Configuration,
    /// A file of the project.
    File(PathBuf),
    /// The client of the session, such as an editor.
    Client,
}

impl fmt::Display for ServerOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration => f.write_str("config.toml"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Client => f.write_str("the client"),
        }
    }
}

/// The way in which a server is reached.
#[derive(Clone, Debug)]
pub enum ServerReach {
    /// A program that is started, and spoken to by its standard input and output.
    Process {
        /// The program to start.
        command: String,
        /// The arguments of the program.
        args: Vec<String>,
        /// The environment of the program, besides what every server gets.
        env: BTreeMap<String, Secret<String>>,
    },
    /// A server somewhere, spoken to by streamable HTTP.
    Http {
        /// The address of the server.
        url: String,
        /// The headers sent with each request.
        headers: BTreeMap<String, Secret<String>>,
    },
}

/// A server, as it is configured.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name of the server: letters, digits, `-` and `_`.
    pub name: String,
    /// The source that defines the server.
    pub origin: ServerOrigin,
    /// The way in which the server is reached.
    pub reach: ServerReach,
    /// The folder that its process starts in; `None` for the session's.
    pub cwd: Option<PathBuf>,
    /// Longest silence within a call; `None` for the usual.
    pub timeout: Option<Duration>,
    /// `true` if the server's process may use the network.
    pub network: bool,
    /// Folders besides the workspace that its process may write.
    pub writable: Vec<PathBuf>,
    /// Built-in tools that its tools take the place of, by its names for them.
    pub replaces: BTreeMap<String, String>,
    /// Arguments that are paths, by its names for its tools.
    pub path_args: BTreeMap<String, Vec<String>>,
}

impl Definition {
    /// Returns the text by which records of the server's tools identify it: another command, address or argument is
    /// another server. Values of variables and headers are not part of it.
    #[must_use]
    pub fn identity(&self) -> String {
        let mut parts = vec![self.name.clone(), self.origin.to_string()];
        match &self.reach {
            ServerReach::Process { command, args, env } => {
                parts.extend(["process".to_owned(), command.clone()]);
                parts.extend(args.iter().cloned());
                parts.extend(env.keys().cloned());
                parts.extend(self.cwd.iter().map(|cwd| format!("cwd={}", cwd.display())));
            }
            ServerReach::Http { url, .. } => parts.extend(["http".to_owned(), url.clone()]),
        }
        parts.join("\0")
    }

    /// Returns the command or address of the server, in one line without secrets.
    #[must_use]
    pub fn to_line(&self) -> String {
        match &self.reach {
            ServerReach::Process { command, args, .. } => {
                std::iter::once(command).chain(args).cloned().collect::<Vec<_>>().join(" ")
            }
            ServerReach::Http { url, .. } => {
                url.split(['?', '#']).next().unwrap_or_default().to_owned()
            }
        }
    }
}

/// The content of a file that names servers.
#[derive(Debug, Default)]
pub struct ServerFile {
    /// The servers that the file defines.
    pub servers: Vec<Definition>,
    /// The parts of the file that cannot be used, a sentence each.
    pub faults: Vec<String>,
    /// The file as a whole cannot be read.
    pub is_broken: bool,
}

/// Parses the text of an `.mcp.json` file: an object `mcpServers` of servers by name, each with `command`, `args`
/// and `env`, or with `type` (`http`), `url` and `headers`. Texts may contain `${NAME}` and `${NAME:-else}`. gnoma
/// also accepts `cwd`, `timeout` (milliseconds), `network` and `writable`. Paths stay as they are written.
#[must_use]
pub fn read_file(
    path: PathBuf,
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> ServerFile {
    let shown = path.display().to_string();
    let mut read = ServerFile::default();
    if text.trim().is_empty() {
        read.faults.push(format!("`{shown}` is empty"));
        read.is_broken = true;
        return read;
    }
    let document: Value = match json::from_hand(text) {
        Ok(document) => document,
        Err(error) => {
            read.faults.push(format!("`{shown}` is not valid JSON: {error}"));
            read.is_broken = true;
            return read;
        }
    };
    let Some(servers) = document.get("mcpServers").and_then(Value::as_object) else {
        let remedy = missing_servers_remedy(&document);
        read.faults.push(format!("`{shown}` has no object `mcpServers`{remedy}"));
        read.is_broken = true;
        return read;
    };
    let mut read = read_entries(&ServerOrigin::File(path), servers, variable);
    read.faults.extend(json::repeated_keys(text).into_iter().map(|key| {
        format!("`{shown}` has `{key}` more than once, and only the last one counts: merge or rename them")
    }));
    read
}

/// Returns what to do about a file that has its servers in another place, behind the sentence that says so.
fn missing_servers_remedy(document: &Value) -> &'static str {
    let is_server = |value: &Value| value.get("command").or_else(|| value.get("url")).is_some();
    if document.get("servers").is_some_and(Value::is_object) {
        return ": `servers` is VS Code's name for it; rename that";
    }
    let mut fields = document.as_object().into_iter().flat_map(serde_json::Map::values);
    if fields.any(is_server) { ": put one around its servers" } else { "" }
}

/// Reads servers by their names, as a file has them.
#[must_use]
pub(super) fn read_entries(
    origin: &ServerOrigin,
    servers: &serde_json::Map<String, Value>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> ServerFile {
    let mut read = ServerFile::default();
    let shown = origin.to_string();
    for (name, entry) in servers {
        let entry = FileEntry { entry, variable };
        match entry.to_definition(name, origin.clone()) {
            Ok(Some(definition)) => read.servers.push(definition),
            Ok(None) => (),
            Err(why) => {
                read.faults.push(format!("server `{name}` of `{shown}` is not used: {why}"));
            }
        }
    }
    read
}

/// The reason why a server of a file is not used.
#[derive(thiserror::Error)]
enum ServerEntryError {
    #[error(transparent)]
    Name(#[from] ServerNameError),
    #[error("its transport, `sse`, is outdated, and gnoma does not support it")]
    OldTransport,
    #[error("it has neither `command` nor `url`")]
    NoReach,
    #[error("`{field}` {form}")]
    Form { field: String, form: WrongFieldForm },
    #[error("the variable `{0}` is not set")]
    VariableNotSet(String),
}

/// The wrong form of a field, as what follows its name.
#[derive(thiserror::Error)]
enum WrongFieldForm {
    #[error("is not a string")]
    NoText,
    #[error("is not a list")]
    NoList,
    #[error("contains something other than strings and numbers")]
    OtherThanTexts,
    #[error("is not a table")]
    NoTable,
}

gnoma_core::debug_as_display!(ServerEntryError, WrongFieldForm);

impl ServerEntryError {
    fn of_field(field: &str, form: WrongFieldForm) -> Self {
        Self::Form { field: field.to_owned(), form }
    }
}

/// One server of a file.
struct FileEntry<'a> {
    entry: &'a Value,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl FileEntry<'_> {
    /// Converts the entry to a definition; `None` if it is switched off.
    fn to_definition(
        &self,
        name: &str,
        origin: ServerOrigin,
    ) -> Result<Option<Definition>, ServerEntryError> {
        naming::check_server(name)?;
        if self.entry.get("disabled").and_then(Value::as_bool) == Some(true) {
            return Ok(None);
        }
        let timeout = self.entry.get("timeout").and_then(Value::as_u64).map(Duration::from_millis);
        let writable = self.text_list("writable")?.into_iter().map(PathBuf::from).collect();
        let network = self.entry.get("network").and_then(Value::as_bool).unwrap_or(false);
        let reach = self.parse_reach()?;
        Ok(Some(Definition {
            name: name.to_owned(),
            origin,
            reach,
            cwd: self.text_field("cwd")?.filter(|cwd| !cwd.is_empty()).map(PathBuf::from),
            timeout,
            network,
            writable,
            replaces: BTreeMap::new(),
            path_args: BTreeMap::new(),
        }))
    }

    fn parse_reach(&self) -> Result<ServerReach, ServerEntryError> {
        let kind = self.entry.get("type").and_then(Value::as_str);
        if kind == Some("sse") {
            return Err(ServerEntryError::OldTransport);
        }
        if let Some(url) = self.text_field("url")? {
            let headers = self.secret_table("headers")?;
            return Ok(ServerReach::Http { url, headers });
        }
        let command = self.text_field("command")?.ok_or(ServerEntryError::NoReach)?;
        Ok(ServerReach::Process {
            command,
            args: self.text_list("args")?,
            env: self.secret_table("env")?,
        })
    }

    fn text_field(&self, key: &str) -> Result<Option<String>, ServerEntryError> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.expand_variables(text).map(Some),
            Some(_) => Err(ServerEntryError::of_field(key, WrongFieldForm::NoText)),
        }
    }

    fn text_list(&self, key: &str) -> Result<Vec<String>, ServerEntryError> {
        let wrong = |form| ServerEntryError::of_field(key, form);
        let Some(value) = self.entry.get(key) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(|| wrong(WrongFieldForm::NoList))?;
        let text = |item: &Value| match item {
            Value::String(text) => self.expand_variables(text),
            Value::Number(_) | Value::Bool(_) => Ok(item.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(wrong(WrongFieldForm::OtherThanTexts))
            }
        };
        items.iter().map(text).collect()
    }

    fn secret_table(
        &self,
        key: &str,
    ) -> Result<BTreeMap<String, Secret<String>>, ServerEntryError> {
        let Some(value) = self.entry.get(key) else { return Ok(BTreeMap::new()) };
        let wrong = || ServerEntryError::of_field(key, WrongFieldForm::NoTable);
        let fields = value.as_object().ok_or_else(wrong)?;
        let secret = |(name, value): (&String, &Value)| {
            let text = match value {
                Value::String(text) => self.expand_variables(text)?,
                // People write numbers and switches without quotes.
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    return Err(ServerEntryError::of_field(
                        &format!("{key}.{name}"),
                        WrongFieldForm::NoText,
                    ));
                }
            };
            Ok((name.clone(), Secret::new(text)))
        };
        fields.iter().map(secret).collect::<Result<Vec<_>, _>>().map(gnoma_core::sort::to_map)
    }

    /// The text with its variables filled in.
    fn expand_variables(&self, text: &str) -> Result<String, ServerEntryError> {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            whole.push_str(before);
            let Some((inside, after)) = after.split_once('}') else {
                whole.push_str("${");
                rest = after;
                continue;
            };
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            let value = (self.variable)(name).or_else(|| default.map(str::to_owned));
            let missing = || ServerEntryError::VariableNotSet(name.to_owned());
            whole.push_str(&value.ok_or_else(missing)?);
            rest = after;
        }
        whole.push_str(rest);
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ServerFile {
        let variable = |name: &str| (name == "HOME").then(|| "/home/a".to_owned());
        read_file(PathBuf::from(".mcp.json"), text, &variable)
    }

    #[test]
    fn mcp_json_of_other_programs_is_parsed() {
        let found = read(
            r#"{"mcpServers": {
                "files": {"command": "npx", "args": ["-y", "x", "${HOME}/notes"], "env": {"A": "${B:-b}"}},
                "far": {"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": "Bearer t"}},
                "off": {"command": "x", "disabled": true}
            }}"#,
        );
        assert_eq!(found.faults, [""; 0]);
        let [files, far] = &found.servers[..] else { panic!("{found:?}") };
        assert_eq!(files.to_line(), "npx -y x /home/a/notes");
        let ServerReach::Process { env, .. } = &files.reach else { panic!() };
        assert_eq!(env["A"].expose(), "b");
        assert!(!files.network && far.to_line() == "https://x.example/mcp");
    }

    #[test]
    fn mcp_json_accepts_numbers_and_booleans_as_args_and_env() {
        let found = read(
            r#"{"mcpServers": {"a": {"command": "x", "args": ["--port", 8080], "env": {"PORT": 8080, "DEBUG": true}},
                "b": {"command": "x", "env": {"LIST": [1]}}}}"#,
        );
        let [server] = &found.servers[..] else { panic!("{found:?}") };
        assert_eq!(server.to_line(), "x --port 8080");
        let ServerReach::Process { env, .. } = &server.reach else { panic!() };
        assert_eq!(
            (env["PORT"].expose().as_str(), env["DEBUG"].expose().as_str()),
            ("8080", "true")
        );
        assert!(found.faults[0].contains("`env.LIST` is not a string"), "{found:?}");
    }

    #[test]
    fn invalid_mcp_server_definitions_are_reported() {
        let found = read(
            r#"{"mcpServers": {"a b": {"command": "x"}, "n": {}, "v": {"command": "${NO}"}, "s": {"type": "sse", "url": "u"}}}"#,
        );
        assert!(found.servers.is_empty());
        for part in ["letters, digits", "neither", "`NO` is not set", "outdated"] {
            assert!(found.faults.iter().any(|fault| fault.contains(part)), "{part}: {found:?}");
        }
        assert!(read("{").faults[0].contains("not valid JSON"));
        assert!(read("{}").faults[0].ends_with("has no object `mcpServers`"));
        for (text, remedy) in [
            (r#"{"servers": {"a": {"command": "x"}}}"#, "`servers` is VS Code's name"),
            (r#"{"a": {"command": "x"}}"#, "put one around"),
        ] {
            assert!(read(text).faults[0].contains(remedy), "{text}");
        }
        let twice = read(r#"{"mcpServers": {"db": {"command": "old"}, "db": {"command": "new"}}}"#);
        assert_eq!(twice.servers[0].to_line(), "new");
        assert!(twice.faults[0].contains("`mcpServers.db` more than once"), "{twice:?}");
    }
}
