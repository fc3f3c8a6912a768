//! What a client of the Model Context Protocol writes in a line, and what it is answered. Pure.
//!
//! Both wires: the one with a handshake, and 2026-07-28, on which every request names its version.

use gnoma_core::json_value::json;
use serde_json::{Map, Value};

/// The versions with a handshake, the newest first.
const SHAKEN: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The protocol version without a handshake.
const STATELESS: &str = "2026-07-28";
/// The keys by which a request names its version and capabilities, and by which an answer names the server.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const INTERNAL_ERROR: i64 = -32_603;
const UNSUPPORTED_VERSION: i64 = -32_022;

const INSTRUCTIONS: &str = "`ask` gives a task to gnoma, a coding agent that works in this \
    project on its own; `continue` resumes its session, `status` says how it is doing, `cancel` \
    stops it. The file tools work under gnoma's permissions.";

/// A line from a client, parsed.
#[derive(Debug, PartialEq)]
pub(super) enum McpClientMessage {
    /// To be answered with this.
    Answered(Value),
    /// A tool is called.
    Call(ServedCall),
    /// The call of that id is no longer wanted.
    Cancelled(Value),
    /// The line needs no action.
    Nothing,
}

/// A call of a tool.
#[derive(Debug, PartialEq)]
pub(super) struct ServedCall {
    /// The id of the request.
    pub(super) id: Value,
    /// The name of the tool.
    pub(super) tool: String,
    /// The arguments of the call.
    pub(super) arguments: Map<String, Value>,
    /// True if the call came on the wire without a handshake.
    pub(super) is_stateless: bool,
}

/// The reason why a line is answered with an error of JSON-RPC.
#[derive(thiserror::Error)]
enum RequestFault {
    /// The line is not JSON.
    #[error(transparent)]
    NotJson(serde_json::Error),
    /// The line is JSON, but neither a request nor a notification nor an answer.
    #[error("it is not a JSON-RPC 2.0 request; batches are not supported")]
    NotARequest,
    /// The request names a version that is not the one without a handshake.
    #[error("that version is not supported")]
    UnsupportedVersion(String),
    /// The request names its version, but not what the client can do.
    #[error("`_meta` has no `{CAPABILITIES_KEY}`")]
    NoCapabilities,
    /// The request names no version, and the client has not begun with the handshake.
    #[error("`_meta` has no `{VERSION_KEY}`, and there was no `initialize`")]
    NoVersion,
    /// The method is unknown.
    #[error("`{}` is not offered", .0.escape_debug())]
    UnknownMethod(String),
    /// A call of a tool does not name one.
    #[error("`name` of the tool is missing")]
    NoTool,
    /// No tool has this name.
    #[error("there is no tool `{}`", .0.escape_debug())]
    UnknownTool(String),
    /// The arguments of a call are not an object.
    #[error("`arguments` is not an object")]
    BadArguments,
}

gnoma_core::debug_as_display!(RequestFault);

impl RequestFault {
    /// Returns JSON-RPC's code for the fault.
    fn code(&self) -> i64 {
        match self {
            Self::NotJson(_) => PARSE_ERROR,
            Self::NotARequest => INVALID_REQUEST,
            Self::UnsupportedVersion(_) => UNSUPPORTED_VERSION,
            Self::UnknownMethod(_) => METHOD_NOT_FOUND,
            Self::NoCapabilities
            | Self::NoVersion
            | Self::NoTool
            | Self::UnknownTool(_)
            | Self::BadArguments => INVALID_PARAMS,
        }
    }

    /// Builds the answer to the request with this id.
    fn to_answer(&self, id: &Value) -> McpClientMessage {
        let mut answer = error_response(id, self.code(), &self.to_string());
        if let Self::UnsupportedVersion(version) = self
            && let Some(error) = answer.get_mut("error").and_then(Value::as_object_mut)
        {
            let data = json!({ "supported": [STATELESS], "requested": version });
            error.insert("data".to_owned(), data);
        }
        McpClientMessage::Answered(answer)
    }
}

/// Parses a line. `tools`: the list of them. `is_greeted`: the client has begun with the handshake; before that
/// each request must name its version.
pub(super) fn parse_line(line: &str, tools: &Value, is_greeted: &mut bool) -> McpClientMessage {
    let message: Value = match gnoma_core::json::from_str(line) {
        Ok(message) => message,
        Err(error) => return RequestFault::NotJson(error).to_answer(&Value::Null),
    };
    let id = message.get("id").filter(|id| id.is_string() || id.is_number());
    let (id, method) = match (id, message.get("method").and_then(Value::as_str)) {
        (Some(id), Some(method)) => (id, method),
        (None, Some("notifications/cancelled")) => {
            let cancelled = message.pointer("/params/requestId").cloned();
            return cancelled.map_or(McpClientMessage::Nothing, McpClientMessage::Cancelled);
        }
        // Another notification, or an answer although the client was not asked anything.
        (None, Some(_)) | (Some(_), None) => return McpClientMessage::Nothing,
        (None, None) => return RequestFault::NotARequest.to_answer(&Value::Null),
    };
    let params = message.get("params").cloned().unwrap_or_default();
    check_version(method, &params, is_greeted)
        .and_then(|is_stateless| answer_method(id, method, &params, is_stateless, tools))
        .unwrap_or_else(|fault| fault.to_answer(id))
}

/// Checks the version that a request names. Returns whether the request is on the wire without a handshake.
fn check_version(
    method: &str,
    params: &Value,
    is_greeted: &mut bool,
) -> Result<bool, RequestFault> {
    let meta = |key: &str| params.get("_meta").and_then(|meta| meta.get(key));
    let Some(version) = meta(VERSION_KEY).and_then(Value::as_str) else {
        *is_greeted |= method == "initialize";
        let is_allowed = *is_greeted || method == "ping";
        return if is_allowed { Ok(false) } else { Err(RequestFault::NoVersion) };
    };
    if version != STATELESS {
        return Err(RequestFault::UnsupportedVersion(version.to_owned()));
    }
    match meta(CAPABILITIES_KEY) {
        Some(Value::Object(_)) => Ok(true),
        _ => Err(RequestFault::NoCapabilities),
    }
}

fn answer_method(
    id: &Value,
    method: &str,
    params: &Value,
    is_stateless: bool,
    tools: &Value,
) -> Result<McpClientMessage, RequestFault> {
    let result = match method {
        // A client that names the version in each request is on the wire that has no handshake.
        "initialize" if !is_stateless => initialize_result(params),
        "server/discover" => json!({
            "supportedVersions": [STATELESS], "capabilities": { "tools": {} }, "instructions": INSTRUCTIONS,
            "ttlMs": 0, "cacheScope": "private",
        }),
        "ping" if !is_stateless => json!({}),
        "tools/list" if is_stateless => {
            json!({ "tools": tools, "ttlMs": 0, "cacheScope": "private" })
        }
        "tools/list" => json!({ "tools": tools }),
        "tools/call" => {
            let (tool, arguments) = parse_tool_call(params, tools)?;
            let call = ServedCall { id: id.clone(), tool, arguments, is_stateless };
            return Ok(McpClientMessage::Call(call));
        }
        _ => return Err(RequestFault::UnknownMethod(method.to_owned())),
    };
    let is_newer = is_stateless || method == "server/discover";
    Ok(McpClientMessage::Answered(success_response(id, result, is_newer)))
}

/// Parses the tool that is called, and its arguments.
fn parse_tool_call(
    params: &Value,
    tools: &Value,
) -> Result<(String, Map<String, Value>), RequestFault> {
    let tool = params.get("name").and_then(Value::as_str).ok_or(RequestFault::NoTool)?;
    let is_known = tools.as_array().into_iter().flatten().any(|it| it["name"] == tool);
    if !is_known {
        return Err(RequestFault::UnknownTool(tool.to_owned()));
    }
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Err(RequestFault::BadArguments),
    };
    Ok((tool.to_owned(), arguments))
}

/// Builds the answer to a handshake: with the version that the client wants, if it is spoken here.
fn initialize_result(params: &Value) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let version = SHAKEN.iter().find(|version| wanted == Some(version)).unwrap_or(&SHAKEN[0]);
    json!({
        "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

fn server_info() -> Value {
    json!({ "name": "gnoma", "version": env!("CARGO_PKG_VERSION") })
}

/// Builds a successful answer to a request.
pub(super) fn success_response(id: &Value, mut result: Value, is_stateless: bool) -> Value {
    if let Some(fields) = result.as_object_mut().filter(|_| is_stateless) {
        fields.insert("resultType".to_owned(), "complete".into());
        fields.insert("_meta".to_owned(), json!({ SERVER_KEY: server_info() }));
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn error_response(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// The answer to a line that is not read.
pub(super) fn too_long(max_bytes: usize) -> Value {
    let text = format!("a line may have at most {} MiB", max_bytes >> 20);
    error_response(&Value::Null, INVALID_REQUEST, &text)
}

/// The answer to a call under the id of one that runs. It has no id: under that one the other call is answered.
pub(super) fn duplicate_id_response(id: &Value) -> Value {
    let text = format!("a call with the id {id} is already running; each request needs its own id");
    error_response(&Value::Null, INVALID_REQUEST, &text)
}

/// The answer to a call that ended without any.
pub(super) fn crashed_call_response(id: &Value) -> Value {
    error_response(id, INTERNAL_ERROR, "the call crashed; this is a bug in gnoma")
}

/// The result of a call.
pub(super) fn tool_result(text: &str, is_error: bool, facts: Option<Value>) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": is_error });
    if let (Some(facts), Some(fields)) = (facts, result.as_object_mut()) {
        fields.insert("structuredContent".to_owned(), facts);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: &Value) -> Value {
        answer_to(message, true)
    }

    fn answer_to(message: &Value, mut is_greeted: bool) -> Value {
        let tools = json!([{ "name": "ask" }]);
        match parse_line(&message.to_string(), &tools, &mut is_greeted) {
            McpClientMessage::Answered(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mcp_serve_speaks_handshake_and_stateless_protocol() {
        let hello = |version: &str| {
            let params = json!({ "protocolVersion": version, "capabilities": {} });
            answer(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
        };
        assert_eq!(hello("2025-03-26")["result"]["protocolVersion"], "2025-03-26");
        assert_eq!(hello("1999-01-01")["result"]["protocolVersion"], "2025-11-25");
        assert!(hello("2025-11-25")["result"].get("resultType").is_none());
        let asked = |method: &str, meta: Value| {
            answer(&json!({"id": "a", "method": method, "params": {"_meta": meta}}))
        };
        let meta = |version: &str| json!({ VERSION_KEY: version, CAPABILITIES_KEY: {} });
        let list = |version: &str| asked("tools/list", meta(version));
        assert_eq!(list(STATELESS)["result"]["resultType"], "complete");
        assert_eq!(list("2030-01-01")["error"]["code"], UNSUPPORTED_VERSION);
        let bare = asked("tools/list", json!({ VERSION_KEY: STATELESS }));
        assert_eq!(bare["error"]["code"], INVALID_PARAMS);
        for gone in ["initialize", "ping"] {
            assert_eq!(asked(gone, meta(STATELESS))["error"]["code"], METHOD_NOT_FOUND);
        }
        let discover = answer(&json!({"id": 3, "method": "server/discover"}));
        assert_eq!(discover["result"]["supportedVersions"][0], STATELESS);
    }

    #[test]
    fn before_a_handshake_each_request_names_its_version() {
        for method in ["tools/list", "tools/call", "server/discover"] {
            let refused = answer_to(&json!({"id": 1, "method": method}), false);
            assert_eq!(refused["error"]["code"], INVALID_PARAMS, "{method}");
        }
        let mut is_greeted = false;
        let hello = r#"{"id": 1, "method": "initialize"}"#;
        assert!(matches!(
            parse_line(hello, &json!([]), &mut is_greeted),
            McpClientMessage::Answered(_)
        ));
        assert!(is_greeted);
    }

    #[test]
    fn mcp_serve_refuses_or_ignores_invalid_requests() {
        let tools = json!([{ "name": "ask" }]);
        let code = |message: &Value| answer(message)["error"]["code"].clone();
        assert_eq!(code(&json!({"id": 1, "method": "resources/list"})), METHOD_NOT_FOUND);
        let call = |params: Value| json!({"id": 1, "method": "tools/call", "params": params});
        assert_eq!(code(&call(json!({"name": "x"}))), INVALID_PARAMS);
        assert_eq!(code(&call(json!({"name": "ask", "arguments": []}))), INVALID_PARAMS);
        assert_eq!(code(&json!([])), INVALID_REQUEST);
        let McpClientMessage::Answered(broken) = parse_line("{", &tools, &mut true) else {
            panic!()
        };
        assert_eq!(broken["error"]["code"], PARSE_ERROR);
        for quiet in ["{\"method\":\"notifications/initialized\"}", "{\"id\":7,\"result\":{}}"] {
            assert_eq!(parse_line(quiet, &tools, &mut true), McpClientMessage::Nothing);
        }
        let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":4}}"#;
        assert_eq!(parse_line(cancelled, &tools, &mut true), McpClientMessage::Cancelled(json!(4)));
    }
}
