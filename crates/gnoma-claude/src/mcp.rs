//! Tools that live in the program that drives the session: each server's messages go over the control
//! channel.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    json_value::json,
    message::{Image, ResultPart},
    tool::{Access, BoxFuture, Tier, ToolKind, ToolOutput},
};
use gnoma_extend::mcp::tool_name;
use serde_json::Value;
use tokio::time::timeout;

use super::{control::ControlChannel, error::DriverError};

/// The longest time that a server may take to list what it offers.
const MAX_HANDSHAKE: Duration = Duration::from_secs(30);
/// The longest time that a call may take.
const MAX_CALL: Duration = Duration::from_secs(60 * 60);
/// Most pages of a list, and most tools of a server.
const MAX_PAGES: usize = 20;
const MAX_TOOLS: usize = 500;
/// Longest description of a tool, in characters.
const MAX_DESCRIPTION_CHARS: usize = 4_096;
/// The version of the protocol that is asked for.
const VERSION: &str = "2025-06-18";

/// A server in the program, and how it is.
#[derive(Clone, Default)]
pub(super) struct SdkServer {
    /// The name of the server.
    pub(super) name: String,
    /// The tools that the server offers.
    pub(super) tools: Vec<Arc<dyn Tool>>,
    /// The reason why the server cannot be used.
    pub(super) fault: Option<String>,
}

/// Asks the servers of these names what they have, all at once.
pub(super) async fn connect_servers(control: &ControlChannel, names: &[String]) -> Vec<SdkServer> {
    let asked = names.iter().map(|name| async move {
        let listed = timeout(MAX_HANDSHAKE, list_tools(control, name)).await;
        let listed = listed.unwrap_or_else(|_| Err(DriverError::NoAnswer));
        let name = name.clone();
        match listed {
            Ok(tools) => SdkServer { name, tools, fault: None },
            Err(why) => SdkServer { name, fault: Some(why.to_string()), ..SdkServer::default() },
        }
    });
    futures_util::future::join_all(asked).await
}

async fn list_tools(
    control: &ControlChannel,
    server: &str,
) -> Result<Vec<Arc<dyn Tool>>, DriverError> {
    let client = json!({"name": "gnoma", "version": env!("CARGO_PKG_VERSION")});
    let hello = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
    call_server(control, server, "initialize", hello).await?;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    send_message(control, server, ready, None).await?;
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = call_server(control, server, "tools/list", params).await?;
        let described = page.get("tools").and_then(Value::as_array);
        for described in described.into_iter().flatten() {
            if tools.len() < MAX_TOOLS
                && let Some(tool) = SdkTool::new(control, server, described)
            {
                tools.push(Arc::new(tool));
            }
        }
        match page.get("nextCursor") {
            Some(Value::String(cursor)) => params = json!({"cursor": cursor}),
            _ => break,
        }
    }
    Ok(tools)
}

/// A request to a server; gives its result.
async fn call_server(
    control: &ControlChannel,
    server: &str,
    method: &str,
    params: Value,
) -> Result<Value, DriverError> {
    // Each is answered on its own, so that one number is as good as another.
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    parse_response(&send_message(control, server, message, None).await?)
}

async fn send_message(
    control: &ControlChannel,
    server: &str,
    message: Value,
    call: Option<&str>,
) -> Result<Value, DriverError> {
    let mut request = json!({"subtype": "mcp_message", "server_name": server, "message": message});
    if let (Some(call), Some(fields)) = (call, request.as_object_mut()) {
        fields.insert("tool_use_id".to_owned(), call.into());
    }
    let answer = control.send_request(request).await?;
    Ok(answer.get("mcp_response").cloned().unwrap_or_default())
}

fn parse_response(response: &Value) -> Result<Value, DriverError> {
    if let Some(error) = response.get("error") {
        let why = error.get("message").and_then(Value::as_str);
        let why = why.unwrap_or("it failed and gave no reason");
        return Err(DriverError::ServerFailed(why.to_owned()));
    }
    response.get("result").cloned().ok_or(DriverError::NoResult)
}

/// A tool of a server in the program. What the server says of it decides nothing: every call is judged as
/// one that may do anything.
struct SdkTool {
    spec: ToolSpec,
    server: String,
    name: String,
    control: ControlChannel,
}

impl SdkTool {
    /// `None` where it is not described as a tool is.
    fn new(control: &ControlChannel, server: &str, described: &Value) -> Option<Self> {
        let text = |name: &str| described.get(name).and_then(Value::as_str);
        let name = text("name").filter(|name| !name.is_empty())?;
        let schema = described.get("inputSchema").filter(|schema| schema.is_object());
        let schema = schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
        let description = text("description").unwrap_or_default();
        let spec = ToolSpec {
            name: tool_name(server, name),
            description: description.chars().take(MAX_DESCRIPTION_CHARS).collect(),
            parameters: RawJson::from_value(&schema).ok()?,
            access: Access::Execute,
            touches: Arc::default(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        };
        let (server, name) = (server.to_owned(), name.to_owned());
        Some(Self { spec, server, name, control: control.clone() })
    }
}

impl Tool for SdkTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let (control, server, name) =
            (self.control.clone(), self.server.clone(), self.name.clone());
        Box::pin(async move {
            let arguments: Value = call.arguments.read().unwrap_or_default();
            let params = json!({"name": name, "arguments": arguments,
                "_meta": {"claudecode/toolUseId": call.id}});
            let message =
                json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
            let id = call.id.as_str().to_owned();
            let called = timeout(MAX_CALL, send_message(&control, &server, message, Some(&id)));
            let answer = tokio::select! {
                biased;
                () = cx.stop.cancelled() => return ToolOutcome::Interrupted(String::new()),
                answer = called => answer,
            };
            let answer = answer.unwrap_or_else(|_| Err(DriverError::TimedOut));
            match answer.and_then(|answer| parse_response(&answer)) {
                Ok(result) => parse_tool_outcome(&result),
                Err(why) => ToolOutcome::failure_text(why.to_string()),
            }
        })
    }
}

fn parse_tool_outcome(result: &Value) -> ToolOutcome {
    let content = result.get("content").and_then(Value::as_array);
    let mut parts: Vec<ResultPart> = content.into_iter().flatten().map(parse_result_part).collect();
    if let (true, Some(structured)) = (parts.is_empty(), result.get("structuredContent")) {
        parts.push(ResultPart::Text { text: structured.to_string() });
    }
    let output = ToolOutput { parts, diff: None, report: None };
    match result.get("isError").and_then(Value::as_bool) {
        Some(true) => ToolOutcome::Failed(output),
        _ => ToolOutcome::Done(output),
    }
}

fn parse_result_part(content: &Value) -> ResultPart {
    let text = |path: &str| content.pointer(path).and_then(Value::as_str).map(str::to_owned);
    match (text("/type").as_deref(), text("/text"), text("/data"), text("/mimeType")) {
        (Some("text"), Some(text), ..) => ResultPart::Text { text },
        (Some("image"), _, Some(data), Some(mime)) => {
            ResultPart::Image(Image { mime, base64: data.into() })
        }
        _ => {
            ResultPart::Text { text: text("/resource/text").unwrap_or_else(|| content.to_string()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[test]
    fn mcp_results_become_text_and_images() {
        let result = json!({"isError": true, "content": [
            {"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x", "text": "b"}}, {"type": "new"}]});
        let ToolOutcome::Failed(output) = parse_tool_outcome(&result) else {
            panic!("it is an error")
        };
        assert_eq!(output.parts[0], ResultPart::Text { text: "a".into() });
        assert!(matches!(&output.parts[1], ResultPart::Image(image) if image.mime == "image/png"));
        assert_eq!(output.parts[2], ResultPart::Text { text: "b".into() });
        assert_eq!(output.parts.len(), 4);
    }

    #[tokio::test]
    async fn sdk_mcp_tools_are_listed_over_the_control_channel() {
        let (control, mut out) = ControlChannel::new();
        let program = control.clone();
        let mut answering = JoinSet::new();
        answering.spawn(async move {
            while let Some(outgoing) = out.recv().await {
                let request = outgoing.message;
                let result = match request["request"]["message"]["method"].as_str().unwrap() {
                    "initialize" => json!({"serverInfo": {"name": "calc"}}),
                    "tools/list" if request["request"]["message"]["params"]["cursor"].is_null() => {
                        json!({"tools": [{"name": "add", "description": "adds",
                            "inputSchema": {"type": "object"}}, {"no": "name"}], "nextCursor": "2"})
                    }
                    _ => json!({"tools": [{"name": "sub"}]}),
                };
                let response =
                    json!({"mcp_response": {"jsonrpc": "2.0", "id": 1, "result": result}});
                program.on_response(&json!({"response": {"subtype": "success",
                    "request_id": request["request_id"], "response": response}}));
            }
        });
        let found = connect_servers(&control, &["calc".to_owned()]).await;
        let names: Vec<_> = found[0].tools.iter().map(|tool| tool.spec().name.clone()).collect();
        assert_eq!(names, ["mcp__calc__add", "mcp__calc__sub"]);
    }
}
