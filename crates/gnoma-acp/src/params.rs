//! The parameters of all methods. Each method takes those that it needs; what else there is is passed
//! over.

use std::{fmt, marker::PhantomData, path::PathBuf};

use gnoma_core::protocol::{ClientServer, Environment, ServerAddress};
use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::error::RpcError;

/// Most entries of a list: parts of a prompt, folders, MCP servers. More are not even read: as values they
/// would take many times the memory of their line.
const MAX_ENTRIES: usize = 1_024;

/// The parameters of a method, as far as the client gave them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Params {
    pub protocol_version: Option<u64>,
    pub client_capabilities: Option<ClientCapabilities>,
    pub method_id: Option<String>,
    pub session_id: Option<String>,
    cwd: Option<String>,
    #[serde(deserialize_with = "deserialize_entries")]
    additional_directories: Option<Vec<String>>,
    #[serde(deserialize_with = "deserialize_entries")]
    mcp_servers: Option<Vec<EditorServer>>,
    #[serde(deserialize_with = "deserialize_entries")]
    pub prompt: Option<Vec<PromptBlock>>,
    pub mode_id: Option<String>,
    pub config_id: Option<String>,
    pub value: Option<Box<RawValue>>,
    pub cursor: Option<String>,
    pub request_id: Option<Box<RawValue>>,
}

/// A list that is not too long; `None` where it is null.
fn deserialize_entries<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(Entries(PhantomData))
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = Option<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX_ENTRIES} entries")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            if entries.len() == MAX_ENTRIES {
                return Err(de::Error::invalid_length(MAX_ENTRIES + 1, &self));
            }
            entries.push(entry);
        }
        Ok(Some(entries))
    }
}

/// The capabilities of the client, as far as the agent makes use of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClientCapabilities {
    fs: Option<FileAbilities>,
    session: Option<SessionAbilities>,
    auth: Option<AuthAbilities>,
    elicitation: Option<ElicitationAbilities>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FileAbilities {
    read_text_file: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SessionAbilities {
    notices: Option<IgnoredAny>,
    compaction: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct AuthAbilities {
    terminal: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ElicitationAbilities {
    form: Option<IgnoredAny>,
}

impl ClientCapabilities {
    /// Reports whether the client shows files as they are in the editor.
    pub(crate) fn reads_files(&self) -> bool {
        self.fs.as_ref().and_then(|fs| fs.read_text_file).unwrap_or(false)
    }

    /// Reports whether the client shows notices.
    pub(crate) fn shows_notices(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.notices.is_some())
    }

    /// Reports whether the client shows that a conversation was compacted.
    pub(crate) fn shows_compaction(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.compaction.is_some())
    }

    /// Reports whether the client can run the agent at a terminal.
    pub(crate) fn terminal_auth(&self) -> bool {
        self.auth.as_ref().and_then(|auth| auth.terminal).unwrap_or(false)
    }

    /// Reports whether the client can ask the user to fill in a form.
    pub(crate) fn supports_forms(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|elicitation| elicitation.form.is_some())
    }
}

/// A part of a prompt, of any type.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PromptBlock {
    #[serde(rename = "type")]
    pub kind: String,
    pub text: Option<String>,
    pub data: Option<String>,
    pub mime_type: Option<String>,
    pub uri: Option<String>,
    pub name: Option<String>,
    pub resource: Option<Resource>,
}

/// A resource that a prompt brings along.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Resource {
    pub uri: String,
    pub text: Option<String>,
    pub blob: Option<String>,
    pub mime_type: Option<String>,
}

/// An MCP server of any transport.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EditorServer {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: String,
    command: Option<String>,
    args: Vec<String>,
    env: Vec<NameValue>,
    url: Option<String>,
    headers: Vec<NameValue>,
}

#[derive(Debug, Deserialize)]
struct NameValue {
    name: String,
    value: String,
}

impl Params {
    /// Reads them; where there are none, none is set.
    pub(crate) fn from_raw(params: Option<&RawValue>) -> Result<Self, RpcError> {
        let Some(params) = params else { return Ok(Self::default()) };
        if params.get().starts_with('[') {
            return Err(RpcError::invalid_params("`params` is an array; send an object"));
        }
        gnoma_core::json::from_str(params.get()).map_err(|why| {
            RpcError::invalid_params(format!("the parameters cannot be read: {why}"))
        })
    }

    /// The session that is meant.
    pub(crate) fn required_session(&self) -> Result<&str, RpcError> {
        self.session_id.as_deref().ok_or_else(|| missing_parameter("sessionId"))
    }

    /// Returns the session's working folder.
    pub(crate) fn required_folder(&self) -> Result<PathBuf, RpcError> {
        let cwd = self.cwd.as_deref().ok_or_else(|| missing_parameter("cwd"))?;
        parse_absolute_path("cwd", cwd)
    }

    /// The working folder, where one is named.
    pub(crate) fn folder_if_any(&self) -> Result<Option<PathBuf>, RpcError> {
        self.cwd.as_deref().map(|cwd| parse_absolute_path("cwd", cwd)).transpose()
    }

    /// Returns the further folders of the session.
    pub(crate) fn more_folders(&self) -> Result<Vec<PathBuf>, RpcError> {
        let folders = self.additional_directories.as_deref().unwrap_or_default();
        folders.iter().map(|folder| parse_absolute_path("additionalDirectories", folder)).collect()
    }

    /// Takes the MCP servers that the client names.
    pub(crate) fn take_servers(&mut self) -> Result<Vec<ClientServer>, RpcError> {
        let servers = self.mcp_servers.take().unwrap_or_default();
        servers.into_iter().map(parse_server).collect()
    }
}

/// A parameter is not there.
pub(crate) fn missing_parameter(name: &str) -> RpcError {
    RpcError::invalid_params(format!("`{name}` is missing"))
}

fn parse_absolute_path(name: &str, path: &str) -> Result<PathBuf, RpcError> {
    if path.starts_with('/') && !path.contains('\0') {
        return Ok(PathBuf::from(path));
    }
    Err(RpcError::invalid_params(format!("`{name}` is not an absolute path: `{path}`")))
}

fn parse_server(server: EditorServer) -> Result<ClientServer, RpcError> {
    let EditorServer { kind, name, command, args, env, url, headers } = server;
    let name = tool_name(&name);
    let address = match (kind.as_deref(), command, url) {
        (None | Some("stdio"), Some(command), _) => {
            ServerAddress::Program { command, args, environment: to_environment(env) }
        }
        (Some("http"), _, Some(url)) => {
            ServerAddress::Http { url, headers: to_environment(headers) }
        }
        (Some("sse"), ..) => {
            let text = format!("MCP server `{name}`: SSE is not supported; use HTTP or stdio");
            return Err(RpcError::invalid_params(text));
        }
        _ => {
            let text =
                format!("MCP server `{name}` has neither a `command` nor type `http` and a `url`");
            return Err(RpcError::invalid_params(text));
        }
    };
    Ok(ClientServer { name, address })
}

/// A name that can be a part of tools' names: editors let people write anything.
fn tool_name(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    name.trim().chars().map(fit).collect()
}

fn to_environment(pairs: Vec<NameValue>) -> Environment {
    let pairs = pairs.into_iter().map(|NameValue { name, value }| (name, value));
    Environment::new(gnoma_core::sort::to_map(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Params, RpcError> {
        Params::from_raw(Some(&RawValue::from_string(json.to_owned()).unwrap()))
    }

    #[test]
    fn mcp_servers_are_parsed_from_session_new() {
        let mut params = read(
            r#"{"cwd":"/p","mcpServers":[
                {"name":"My files","command":"/bin/x","args":["-a"],"env":[{"name":"K","value":"v"}]},
                {"type":"http","name":"far","url":"https://x","headers":[{"name":"A","value":"b"}]}
            ]}"#,
        )
        .unwrap();
        let servers = params.take_servers().unwrap();
        assert_eq!(servers[0].name, "My-files");
        assert!(matches!(&servers[0].address, ServerAddress::Program { environment, .. }
            if environment.get("K") == Some("v")));
        assert!(
            matches!(&servers[1].address, ServerAddress::Http { url, .. } if url == "https://x")
        );
        let mut old =
            read(r#"{"mcpServers":[{"type":"sse","name":"s","url":"u","headers":[]}]}"#).unwrap();
        assert!(old.take_servers().unwrap_err().message.contains("SSE"));
    }

    #[test]
    fn invalid_params_are_refused_and_unknown_fields_ignored() {
        for wrong in
            [r#"{"sessionId":5}"#, r#"{"prompt":"text"}"#, "[1]", r#"{"protocolVersion":"1"}"#]
        {
            assert_eq!(read(wrong).unwrap_err().code, RpcError::INVALID_PARAMS, "{wrong}");
        }
        let params =
            read(r#"{"cwd":"rel","_meta":{"a":[1]},"additionalDirectories":["x"]}"#).unwrap();
        assert!(params.required_folder().is_err() && params.more_folders().is_err());
        assert!(params.required_session().is_err());
    }

    #[test]
    fn only_declared_client_capabilities_are_used() {
        let read = |json: &str| serde_json::from_str::<ClientCapabilities>(json).unwrap();
        let none = read(
            r#"{"session":{"notices":null},"elicitation":{"form":null},"fs":{"readTextFile":true}}"#,
        );
        assert!(
            !none.shows_notices()
                && !none.supports_forms()
                && !none.terminal_auth()
                && !none.shows_compaction()
        );
        let all = read(
            r#"{"session":{"notices":{},"compaction":{}},"elicitation":{"form":{}},"auth":{"terminal":true}}"#,
        );
        assert!(
            all.shows_notices()
                && all.supports_forms()
                && all.terminal_auth()
                && all.shows_compaction()
        );
    }
}
